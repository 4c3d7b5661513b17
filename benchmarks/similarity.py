"""MS-SSIM with gradient: banded matrices (ours) against the convolutions of pytorch-msssim.

python benchmarks/similarity.py
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from pytorch_msssim import ms_ssim as reference
from ratio import compare
from torch import Tensor

from igd.method.similarity import PATCH, WHOLE_IMAGE, Similarity, ms_ssim


def with_gradient(
    similarity: Callable[[Tensor, Tensor], Tensor], count: int, side: int
) -> Callable[[], None]:
    image = torch.rand(count, 3, side, side)
    other = torch.rand(count, 3, side, side, requires_grad=True)

    def run() -> None:
        similarity(image, other).sum().backward()

    return run


def main() -> None:
    print(f"{'MS-SSIM, forward and backward':<52} {'ours':>12} {'reference':>12}   faster")
    for name, setting, count, side in (
        ("11 x 11, 5 scales, 8 images of 256 x 256", WHOLE_IMAGE, 8, 256),
        ("3 x 3, 4 scales, 64 patches of 48 x 48", PATCH, 64, 48),  # the reference refuses 32 x 32
    ):
        compare(
            name,
            with_gradient(ours(setting), count, side),
            with_gradient(theirs(setting), count, side),
        )


def ours(setting: Similarity) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda image, other: ms_ssim(image, other, setting)


def theirs(setting: Similarity) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda image, other: reference(
        image,
        other,
        data_range=setting.data_range,
        win_size=setting.window,
        weights=list(setting.weights),
        size_average=False,
    )


if __name__ == "__main__":
    main()

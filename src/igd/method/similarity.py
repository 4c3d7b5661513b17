"""SSIM and MS-SSIM (supplement, eq. S1), as a score for each image and as a map the size of the
image.

The filter of a map, which must keep the size of the image, differs from that of a score only by the
rows kept of its matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from igd.ops.filters import gaussian_matrix, halve, resize

# Contrast terms are clamped here before a fractional power: below 0 it is NaN, at 0 its gradient
# is.
SMALLEST = 1e-6


@dataclass(frozen=True)
class Similarity:
    """A setting of MS-SSIM; the defaults are the paper's for whole images."""

    window: int = 11  # side of the Gaussian window, in pixels
    # Beta_m = gamma_m, finest scale first.
    weights: tuple[float, ...] = (
        0.0448,
        0.2856,
        0.3001,
        0.2363,
        0.1333,
    )
    sigma: float = 1.5  # of the Gaussian window, in pixels
    data_range: float = 4.7579  # L: range of an ImageNet-normalised image
    k1: float = 0.01  # C1 = (K1 L)^2
    k2: float = 0.03  # C2 = (K2 L)^2, and C3 = C2 / 2, which makes c_m s_m one fraction

    @property
    def smallest_side(self) -> int:
        """Shortest image side on which every scale still holds one whole window."""
        return smallest_side(self.window, len(self.weights))


def smallest_side(window: int, scales: int) -> int:
    """Each scale halves the side, and the coarsest must still hold the window."""
    return int((window - 1) * 2 ** (scales - 1) + 1)


WHOLE_IMAGE = Similarity()
PATCH = Similarity(window=3, weights=(0.0516, 0.3295, 0.3463, 0.2726))


def ssim(image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE) -> Tensor:
    """Mean structural similarity of each pair of images: (b, c, h, w) -> (b,)."""
    (compared,) = _compare(image, other, setting, scales=1, same_size=False)
    return (compared.luminance() * compared.contrast()).mean(dim=(1, 2, 3))


def ms_ssim(image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE) -> Tensor:
    """Multi-scale structural similarity of each pair of images, in [0, 1]: (b, c, h, w) -> (b,).

    m = l_M^{alpha_M} prod_m (c_m s_m)^{beta_m}, each factor the mean over the image: eq. S1.

    >>> image = torch.rand(2, 3, 32, 32)
    >>> ms_ssim(image, image, PATCH)
    tensor([1., 1.])
    """
    factors = _factors(_compare(image, other, setting, same_size=False))
    return _product(_powers([factor.mean(dim=(2, 3)) for factor in factors], setting)).mean(dim=1)


def ms_ssim_and_map(
    image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE, *, product: bool = True
) -> tuple[Tensor, Tensor]:
    """`ms_ssim`, and the same around each pixel, from one comparison: (b, c, h, w) -> (b,), (b, h,
    w).

    The map is eq. S1 at each pixel: means over channels, the coarser scales enlarged to the size of
    the image. With `product=False` the scales are added instead of multiplied, each with its
    weight: what the authors' code does.
    """
    compared, reach = _compare(image, other, setting, same_size=True), setting.window // 2
    factors = _factors(compared)
    inside = [factor[..., reach:-reach, reach:-reach].mean(dim=(2, 3)) for factor in factors]
    score = _product(_powers(inside, setting)).mean(dim=1)
    if product:
        powers = _powers([factor.mean(dim=1, keepdim=True) for factor in factors], setting)
        return score, _product([_enlarge(power, image) for power in powers])[:, 0]
    each = [(scale.luminance() * scale.contrast()).mean(dim=1, keepdim=True) for scale in compared]
    weighted = [
        weight * _enlarge(scale, image) for weight, scale in zip(setting.weights, each, strict=True)
    ]
    return score, torch.cat(weighted, dim=1).sum(dim=1)


class _Compared:
    """Two images around each pixel, at one scale: luminance l and contrast-structure c s, from one
    filtering.
    """

    def __init__(
        self, image: Tensor, other: Tensor, setting: Similarity, *, same_size: bool
    ) -> None:
        self.setting = setting
        rows, columns = (
            gaussian_matrix(length, setting.window, setting.sigma).to(image)
            for length in image.shape[-2:]
        )
        if not same_size:  # keep the rows that hold the whole window
            reach = setting.window // 2
            rows, columns = rows[reach:-reach], columns[reach:-reach]
        blurred = (
            rows
            @ torch.stack([image, other, image.square() + other.square(), image * other])
            @ columns.T
        )
        mean, other_mean, energy, product = blurred
        self.energy: Tensor = energy
        self.product: Tensor = product
        self.mean_energy: Tensor = mean.square() + other_mean.square()
        self.mean_product: Tensor = mean * other_mean

    def luminance(self) -> Tensor:
        c1 = (self.setting.k1 * self.setting.data_range) ** 2
        return (2 * self.mean_product + c1) / (self.mean_energy + c1)

    def contrast(self) -> Tensor:
        c2 = (self.setting.k2 * self.setting.data_range) ** 2
        return (2 * (self.product - self.mean_product) + c2) / (self.energy - self.mean_energy + c2)


def _compare(
    image: Tensor, other: Tensor, setting: Similarity, *, same_size: bool, scales: int | None = None
) -> list[_Compared]:
    """Two images at each scale, the finest first."""
    scales = scales or len(setting.weights)
    _check_side(image, setting, scales)
    # Matrices like rows, where convolutions like channels last.
    image, other = (
        image.contiguous(),
        other.contiguous(),
    )
    compared = [_Compared(image, other, setting, same_size=same_size)]
    for _ in range(1, scales):
        image, other = halve(image), halve(other)
        compared.append(_Compared(image, other, setting, same_size=same_size))
    return compared


def _factors(compared: list[_Compared]) -> list[Tensor]:
    """c_m s_m of each scale, that of the coarsest times l_M."""
    *finer, coarsest = compared
    return [*(scale.contrast() for scale in finer), coarsest.luminance() * coarsest.contrast()]


def _powers(factors: list[Tensor], setting: Similarity) -> list[Tensor]:
    return [
        factor.clamp(min=SMALLEST) ** weight
        for factor, weight in zip(factors, setting.weights, strict=True)
    ]


def _product(factors: list[Tensor]) -> Tensor:
    return reduce(torch.mul, factors)


def _enlarge(factor: Tensor, image: Tensor) -> Tensor:
    return (
        resize(factor, (image.shape[-2], image.shape[-1]), "bilinear")
        if factor.shape[-2:] != image.shape[-2:]
        else factor
    )


def _check_side(image: Tensor, setting: Similarity, scales: int) -> None:
    needed = smallest_side(setting.window, scales)
    side = min(image.shape[-2:])
    if side < needed:
        raise ValueError(
            f"an image side of {side} pixels is too short for {scales} scales of an "
            f"{setting.window}x{setting.window} window: at least {needed} are needed"
        )

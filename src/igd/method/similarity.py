"""SSIM and MS-SSIM (supplement, eq. S1), as a score for each image and as a map the size of the image.

A separable filter is two matrix products, `rows @ image @ columns.T`, with banded matrices. On a CPU that is
twice as fast as depthwise convolutions (benchmarks/similarity.py), it needs no padding mode, and the filter of a map,
which must keep the size of the image, differs from that of a score only by the rows kept of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST = 1e-6  # contrast terms are clamped here before a fractional power: below 0 it is NaN, at 0 its gradient is


@dataclass(frozen=True)
class Similarity:
    """A setting of MS-SSIM; the defaults are the paper's for whole images."""

    window: int = 11  # side of the Gaussian window, in pixels
    weights: tuple[float, ...] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # beta_m = gamma_m, finest scale first
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
    _check_side(image, setting, scales=1)
    luminance, contrast = _compare(image, other, setting, same_size=False)
    return (luminance * contrast).mean(dim=(1, 2, 3))


def ssim_map(image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE) -> Tensor:
    """Structural similarity around each pixel, mean over channels: (b, c, h, w) -> (b, h, w)."""
    _check_side(image, setting, scales=1)
    luminance, contrast = _compare(image, other, setting, same_size=True)
    return (luminance * contrast).mean(dim=1)


def ms_ssim(image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE) -> Tensor:
    """Multi-scale structural similarity of each pair of images, in [0, 1]: (b, c, h, w) -> (b,).

    m = l_M^{alpha_M} prod_m (c_m s_m)^{beta_m}, each factor the mean over the image: eq. S1.

    >>> image = torch.rand(2, 3, 32, 32)
    >>> ms_ssim(image, image, PATCH)
    tensor([1., 1.])
    """
    _check_side(image, setting, scales=len(setting.weights))
    similarity = torch.ones_like(image[:, :, 0, 0])
    for scale, weight in enumerate(setting.weights):
        if scale:
            image, other = _halve(image), _halve(other)
        luminance, contrast = _compare(image, other, setting, same_size=False)
        factor = contrast if scale < len(setting.weights) - 1 else luminance * contrast
        similarity = similarity * factor.mean(dim=(2, 3)).clamp(min=SMALLEST) ** weight
    return similarity.mean(dim=1)


def ms_ssim_map(image: Tensor, other: Tensor, setting: Similarity = WHOLE_IMAGE, *, product: bool = True) -> Tensor:
    """Multi-scale structural similarity around each pixel: (b, c, h, w) -> (b, h, w).

    Eq. S1 at each pixel, the coarser scales enlarged to the size of the image. With `product=False` the scales are
    added instead of multiplied, each with its weight: what the authors' code does.
    """
    _check_side(image, setting, scales=len(setting.weights))
    size = image.shape[-2:]
    similarity = torch.ones_like(image) if product else torch.zeros_like(image)
    for scale, weight in enumerate(setting.weights):
        if scale:
            image, other = _halve(image), _halve(other)
        luminance, contrast = _compare(image, other, setting, same_size=True)
        last = scale == len(setting.weights) - 1
        factor = luminance * contrast if last or not product else contrast
        factor = F.interpolate(factor, size=size, mode="bilinear", align_corners=False).clamp(min=SMALLEST)
        similarity = similarity * factor**weight if product else similarity + weight * factor
    return similarity.mean(dim=1)


def _compare(image: Tensor, other: Tensor, setting: Similarity, *, same_size: bool) -> tuple[Tensor, Tensor]:
    """Luminance l and contrast-structure c s around each pixel, from one filtering of what both share."""
    rows, columns = (gaussian_matrix(length, setting.window, setting.sigma).to(image) for length in image.shape[-2:])
    if not same_size:  # keep the rows that hold the whole window
        reach = setting.window // 2
        rows, columns = rows[reach:-reach], columns[reach:-reach]
    blurred = rows @ torch.cat([image, other, image.square() + other.square(), image * other], dim=1) @ columns.T
    mean, other_mean, energy, product = blurred.chunk(4, dim=1)
    mean_energy, mean_product = mean.square() + other_mean.square(), mean * other_mean

    c1, c2 = (setting.k1 * setting.data_range) ** 2, (setting.k2 * setting.data_range) ** 2
    luminance = (2 * mean_product + c1) / (mean_energy + c1)
    contrast = (2 * (product - mean_product) + c2) / (energy - mean_energy + c2)
    return luminance, contrast


def gaussian_matrix(length: int, window: int, sigma: float) -> Tensor:
    """A Gaussian window as a banded matrix, (length, length): row i averages the pixels around pixel i.

    Near an edge the window is cut and its weights rescaled, so that a constant stays what it is.
    """
    position = torch.arange(length, dtype=torch.float64)
    offset = position[:, None] - position[None, :]
    weight = torch.exp(-offset.square() / (2 * sigma**2)) * (offset.abs() <= window // 2)
    return weight / weight.sum(dim=1, keepdim=True)


def _halve(image: Tensor) -> Tensor:
    return F.avg_pool2d(image, kernel_size=2, ceil_mode=True, count_include_pad=False)


def _check_side(image: Tensor, setting: Similarity, scales: int) -> None:
    needed = smallest_side(setting.window, scales)
    side = min(image.shape[-2:])
    if side < needed:
        raise ValueError(
            f"an image side of {side} pixels is too short for {scales} scales of an "
            f"{setting.window}x{setting.window} window: at least {needed} are needed"
        )

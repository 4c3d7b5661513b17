"""Filters as matrices do what torch and SciPy do."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import ndimage

from igd.ops.filters import halve, resize, smooth


def test_smoothing_is_a_gaussian_and_keeps_a_constant() -> None:
    maps = torch.zeros(1, 41, 61)
    maps[0, 20, 30] = 1
    expected = ndimage.gaussian_filter(maps.numpy(), (0, 2, 2))
    np.testing.assert_allclose(smooth(maps, 2.0), expected, atol=1e-6)
    torch.testing.assert_close(smooth(torch.full((1, 9, 9), 0.3), 2.0), torch.full((1, 9, 9), 0.3))
    assert smooth(maps, 0) is maps


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resizing_is_that_of_torch(mode: str) -> None:
    images = torch.rand(2, 3, 20, 31) * 255
    theirs = F.interpolate(images, (32, 17), mode=mode, align_corners=False)
    torch.testing.assert_close(resize(images, (32, 17), mode), theirs, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(
        resize(images, (32, 17), mode, 2.0)[:, 0], smooth(theirs[:, 0], 2.0), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resizing_in_several_blocks_is_that_of_torch(mode: str) -> None:
    images = torch.rand(2, 3, 90, 151, dtype=torch.float64) * 255
    theirs = F.interpolate(images, (200, 130), mode=mode, align_corners=False)
    torch.testing.assert_close(resize(images, (200, 130), mode), theirs)
    torch.testing.assert_close(
        resize(images, (200, 130), mode, 2.0)[:, 0], smooth(theirs[:, 0], 2.0)
    )


@pytest.mark.parametrize("size", [(8, 8), (7, 10)])
def test_halving_is_pooling(size: tuple[int, int]) -> None:
    images = torch.rand(2, 3, *size)
    torch.testing.assert_close(
        halve(images), F.avg_pool2d(images, 2, ceil_mode=True, count_include_pad=False)
    )

"""What an encoder sees at every depth, and what an image shows without one."""

import math

import pytest
import torch
from torch import Tensor

from igd.scales.encoder_statistics import (
    LEAST_DETAIL,
    EncoderStatistics,
    channel_statistics,
    detail,
)


def maps(image: Tensor) -> list[Tensor]:
    """Two blocks of something like an encoder: 2 and 3 channels."""
    pooled = torch.nn.functional.avg_pool2d(image, 2)
    return [torch.cat([image, image.square()], 1), torch.cat([pooled, -pooled, pooled.exp()], 1)]


def images(count: int, contrast: float = 1.0, seed: int = 0) -> Tensor:
    return contrast * torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


def learnt() -> EncoderStatistics:
    statistics = EncoderStatistics()
    statistics.learn((part, maps(part)) for part in images(300).split(100))
    return statistics


def test_statistics_are_mean_and_deviation_of_each_channel() -> None:
    image = images(4)
    found = channel_statistics(maps(image))
    first, second = maps(image)
    expected = [
        value
        for block in (first, second)
        for value in (block.mean((2, 3)), block.std((2, 3), correction=0))
    ]
    torch.testing.assert_close(found, torch.cat(expected, 1))


def test_a_map_of_one_position_and_a_flat_image_have_statistics() -> None:
    assert torch.equal(channel_statistics([torch.ones(2, 3, 1, 1)])[:, 3:], torch.zeros(2, 3))
    flat = detail(torch.full((2, 3, 8, 8), 0.4))
    torch.testing.assert_close(flat, torch.full((2, 3), math.log(LEAST_DETAIL)))


def test_detail_tells_contrast_and_differences_along_each_axis() -> None:
    rows = (torch.arange(8) % 2).float().expand(1, 1, 8, 8)  # changes along the columns alone
    contrast, down, across = detail(rows)[0].exp()
    torch.testing.assert_close(contrast, torch.tensor(0.5))
    torch.testing.assert_close(across, torch.tensor(1.0))
    torch.testing.assert_close(down, torch.tensor(LEAST_DETAIL))
    # Twice the light is as far along each axis.
    torch.testing.assert_close(
        detail(2 * images(5)) - detail(images(5)), torch.full((5, 3), 0.6931), rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("contrast", [0.3, 3.0])
def test_less_and_more_than_normal_both_deviate(contrast: float) -> None:
    statistics = learnt()
    usual, other = (images(40, each, seed=1) for each in (1.0, contrast))
    for name, distance in statistics.distances(other, maps(other)).items():
        assert distance.min() > statistics.distances(usual, maps(usual))[name].median(), name


def test_what_is_stored_measures_the_same() -> None:
    statistics, restored, others = learnt(), EncoderStatistics(), images(5, seed=2)
    restored.restore(statistics.tensors())
    again = restored.distances(others, maps(others))
    for name, distance in statistics.distances(others, maps(others)).items():
        assert torch.equal(distance, again[name])

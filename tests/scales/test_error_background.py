"""What is usual at each position of maps of errors, and what is not."""

import pytest
import torch

from igd.scales.error_background import (
    FEWEST_MAPS,
    LEAST_SPREAD,
    background_tensors,
    describe_background,
    read_background,
)
from igd.scales.position_moments import PositionDescriptor, PositionMoments, excess

SIDE = 32


def maps(count: int) -> torch.Tensor:
    """Errors that are large in the left half of every map, and noisy everywhere."""
    usual = torch.where(torch.arange(SIDE) < SIDE // 2, 0.8, 0.1).expand(count, SIDE, SIDE)
    return usual + 0.02 * torch.randn(count, SIDE, SIDE)


def measured_on(seen: torch.Tensor) -> PositionDescriptor | None:
    moments = PositionMoments()
    moments.update(seen[:, None])
    return describe_background(moments)


def test_what_is_usual_at_its_place_is_not_shown() -> None:
    background = measured_on(maps(50))
    new = maps(1)
    new[0, 20:24, 24:28] += 0.2  # less than the usual error on the left, unusual here
    anomaly_map = excess(new, background)
    row, column = divmod(int(anomaly_map.argmax()), SIDE)
    assert 20 <= row < 24
    assert 24 <= column < 28
    assert anomaly_map[0, :, : SIDE // 2].mean() < 1


def test_less_error_than_usual_is_nothing() -> None:
    background = measured_on(maps(50))
    assert excess(torch.zeros(1, SIDE, SIDE), background).max() == 0


def test_places_that_agree_by_chance_keep_a_spread() -> None:
    seen = torch.full((FEWEST_MAPS, SIDE, SIDE), 0.5)
    anomaly_map = excess(seen[:1] + 0.5 * LEAST_SPREAD, measured_on(seen))
    torch.testing.assert_close(anomaly_map, torch.ones_like(anomaly_map), rtol=1e-3, atol=0)


def test_too_few_maps_tell_nothing() -> None:
    assert measured_on(maps(FEWEST_MAPS - 1)) is None


def test_what_is_stored_shows_the_same_and_fits_its_maps() -> None:
    background, new = measured_on(maps(9)), maps(1)
    restored = read_background(background_tensors(background), SIDE)
    assert torch.equal(excess(new, restored), excess(new, background))
    assert read_background(background_tensors(None), SIDE) is None
    with pytest.raises(ValueError, match="wrong shape"):
        read_background(background_tensors(background), 2 * SIDE)

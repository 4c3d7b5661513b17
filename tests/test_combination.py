"""One score of several parts: in (0, 1), rising, and each part by its own measure."""

import pytest
import torch

from igd.combination import ALARMING, LEAST_SPREAD, Unit, combined, squashed


def test_squashed_rises_everywhere_between_zero_and_one() -> None:
    spreads = torch.linspace(-1000, 1000, 4001, dtype=torch.float64)
    score = squashed(spreads)
    assert (score.diff() > 0).all()
    assert score.min() > 0
    assert score.max() < 1


def test_squashed_is_a_half_where_it_becomes_alarming() -> None:
    assert squashed(torch.tensor(ALARMING)).item() == 0.5
    assert squashed(torch.tensor(0.0)).item() == 0.25


def test_what_is_alarming_can_be_said() -> None:
    assert squashed(torch.tensor(7.5), alarming=7.5).item() == 0.5
    spreads = torch.linspace(-50, 50, 101)
    assert torch.equal(squashed(spreads, 7.5).argsort(), squashed(spreads).argsort())


def test_a_far_outlier_still_beats_a_near_one() -> None:
    near, far = squashed(torch.tensor([1e3, 1e4]))
    assert near < far < 1


def test_unit_measures_in_spreads_of_a_gaussian() -> None:
    unit = Unit.measured(5 + 0.5 * torch.randn(20_000))
    assert unit.middle == pytest.approx(5, abs=0.02)
    assert unit.spread == pytest.approx(0.5, rel=0.03)
    torch.testing.assert_close(unit(torch.tensor([unit.middle, unit.middle + 2 * unit.spread])), torch.tensor([0.0, 2.0]))


def test_unit_hardly_moves_for_an_outlier() -> None:
    values = 5 + 0.5 * torch.randn(101)
    unit, spoilt = Unit.measured(values), Unit.measured(torch.cat([values, torch.tensor([1e6])]))
    assert spoilt.middle == pytest.approx(unit.middle, abs=0.1)
    assert spoilt.spread == pytest.approx(unit.spread, rel=0.1)


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_values_that_are_all_the_same_leave_a_spread(value: float) -> None:
    unit = Unit.measured(torch.full((5,), value))
    assert unit.spread == pytest.approx(max(LEAST_SPREAD * abs(value), 1e-9))
    assert unit(torch.tensor([value, value + 1])).isfinite().all()


def test_without_units_it_is_the_weighted_mean() -> None:
    parts = [(torch.tensor([0.2, 0.4]), 1.0), (torch.tensor([0.8, 0.0]), 3.0)]
    torch.testing.assert_close(combined(parts, None), torch.tensor([0.65, 0.1]))
    torch.testing.assert_close(combined(parts[:1], None), parts[0][0])


def test_with_units_the_range_of_a_part_does_not_matter() -> None:
    one, other = torch.rand(50), torch.rand(50)
    plain = combined([(one, 0.5), (other, 0.5)], [Unit.measured(one), Unit.measured(other)])
    stretched = 1000 * other
    again = combined([(one, 0.5), (stretched, 0.5)], [Unit.measured(one), Unit.measured(stretched)])
    torch.testing.assert_close(plain, again, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(plain, combined([(other, 2.0), (one, 2.0)], [Unit.measured(other), Unit.measured(one)]))


def test_a_part_alone_keeps_its_order() -> None:
    values = torch.rand(100)
    assert torch.equal(combined([(values, 0.7)], [Unit.measured(values)]).argsort(), values.argsort())


def test_parts_and_units_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        combined([(torch.zeros(1), 1.0)], [Unit(0, 1), Unit(0, 1)])

"""One score of several parts: in (0, 1), rising, and each part by its own measure."""

import pytest
import torch
from torch import Tensor

from igd.scales.base import ScaleOutput
from igd.scales.fusion import DEFAULT_THRESHOLD, LEAST_MAD, Fusion, RobustScaler, softsign


def test_softsign_rises_everywhere_between_zero_and_one() -> None:
    deviations = torch.linspace(-1000, 1000, 4001, dtype=torch.float64)
    score = softsign(deviations)
    assert (score.diff() > 0).all()
    assert score.min() > 0
    assert score.max() < 1


def test_softsign_is_a_half_at_the_threshold() -> None:
    assert softsign(torch.tensor(DEFAULT_THRESHOLD)).item() == 0.5
    assert softsign(torch.tensor(0.0)).item() == 0.25


def test_the_threshold_can_be_set() -> None:
    assert softsign(torch.tensor(7.5), threshold=7.5).item() == 0.5
    deviations = torch.linspace(-50, 50, 101)
    assert torch.equal(softsign(deviations, 7.5).argsort(), softsign(deviations).argsort())


def test_a_far_outlier_still_beats_a_near_one() -> None:
    near, far = softsign(torch.tensor([1e3, 1e4]))
    assert near < far < 1


def test_logarithms_that_agree_by_chance_keep_a_deviation_of_their_own() -> None:
    """Zero on their axis is nowhere in particular, and so is a share of the median."""
    for value in (-3.0, 0.001):
        assert RobustScaler.fit(torch.full((2,), value), least=0.2).mad == 0.2
    assert RobustScaler.fit(torch.tensor([0.0, 1.0, 2.0]), least=0.2).mad > 1


def test_scaler_measures_in_deviations_of_a_gaussian() -> None:
    scaler = RobustScaler.fit(5 + 0.5 * torch.randn(20_000))
    assert scaler.median == pytest.approx(5, abs=0.02)
    assert scaler.mad == pytest.approx(0.5, rel=0.03)
    torch.testing.assert_close(
        scaler(torch.tensor([scaler.median, scaler.median + 2 * scaler.mad])),
        torch.tensor([0.0, 2.0]),
    )


def test_scaler_hardly_moves_for_an_outlier() -> None:
    values = 5 + 0.5 * torch.randn(101)
    scaler, spoilt = (
        RobustScaler.fit(values),
        RobustScaler.fit(torch.cat([values, torch.tensor([1e6])])),
    )
    assert spoilt.median == pytest.approx(scaler.median, abs=0.1)
    assert spoilt.mad == pytest.approx(scaler.mad, rel=0.1)


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_values_that_are_all_the_same_leave_a_deviation(value: float) -> None:
    scaler = RobustScaler.fit(torch.full((5,), value))
    assert scaler.mad == pytest.approx(max(LEAST_MAD * abs(value), 1e-9))
    assert scaler(torch.tensor([value, value + 1])).isfinite().all()


def output(parts: list[Tensor], weights: list[float]) -> ScaleOutput:
    return ScaleOutput(parts, weights, {}, [torch.zeros(len(parts[0]), 2, 2)], [1.0])


def scaled(*parts: Tensor) -> Fusion:
    return Fusion([RobustScaler.fit(part) for part in parts])


def test_without_scalers_it_is_the_weighted_mean() -> None:
    one, other = torch.tensor([0.2, 0.4]), torch.tensor([0.8, 0.0])
    torch.testing.assert_close(
        Fusion().score([output([one, other], [1.0, 3.0])]), torch.tensor([0.65, 0.1])
    )
    torch.testing.assert_close(Fusion().score([output([one], [1.0])]), one)


def test_scales_count_alike_whatever_they_are_made_of() -> None:
    one, other, third = torch.rand(3, 5)
    score = Fusion().score([output([one, other], [0.1, 0.9]), output([third], [1.0])])
    torch.testing.assert_close(score, (0.1 * one + 0.9 * other + third) / 2)


def test_the_range_of_a_part_does_not_matter() -> None:
    one, other = torch.rand(50), torch.rand(50)
    plain = scaled(one, other).score([output([one, other], [0.5, 0.5])])
    stretched = 1000 * other
    again = scaled(one, stretched).score([output([one, stretched], [0.5, 0.5])])
    torch.testing.assert_close(plain, again, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(plain, scaled(other, one).score([output([other, one], [2.0, 2.0])]))


def test_a_part_alone_keeps_its_order() -> None:
    values = torch.rand(100)
    assert torch.equal(scaled(values).score([output([values], [0.7])]).argsort(), values.argsort())


def test_parts_and_scalers_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        Fusion([RobustScaler(0, 1), RobustScaler(0, 1)]).score([output([torch.zeros(1)], [1.0])])


def soft(*parts: Tensor) -> Fusion:
    return Fusion([RobustScaler.fit_upper(part, 0.9) for part in parts], sharpness=0.5)


def test_upper_deviations_are_a_gaussians_too() -> None:
    scaler = RobustScaler.fit_upper(5 + 0.5 * torch.randn(20_000), 0.9)
    assert scaler.median == pytest.approx(5, abs=0.02)
    assert scaler.mad == pytest.approx(0.5, rel=0.05)


def test_one_strongly_deviating_part_is_not_diluted() -> None:
    """A mean over five parts would need five times the deviation."""
    normal = [torch.randn(500) for _ in range(5)]
    fusion = soft(*normal)
    quiet = fusion.deviation([output(normal, [1.0] * 5)])
    one = [torch.full((1,), 12.0), *(torch.zeros(1) for _ in range(4))]
    assert fusion.deviation([output(one, [1.0] * 5)]) > quiet.max()
    assert torch.stack(one).mean() < torch.stack(normal).max()


def test_many_slightly_deviating_parts_count_together() -> None:
    normal = [torch.randn(500) for _ in range(5)]
    together, alone = torch.full((1,), 3.0), torch.full((1,), 3.0)
    zeros = [torch.zeros(1)] * 4
    deviation = soft(*normal).deviation
    assert deviation([output([together] * 5, [1.0] * 5)]) > deviation(
        [output([alone, *zeros], [1.0] * 5)]
    )


def test_maps_count_by_their_weights() -> None:
    one, other = torch.rand(2, 3, 4, 4)
    outputs = [ScaleOutput([torch.zeros(3)], [1.0], {}, [one, other], [2.0, 1.0])]
    torch.testing.assert_close(Fusion().map(outputs), (2 * one + other) / 3)

"""The simulation of a day's images: what must hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pipeline import Plant, simulate

SMALL = Plant(images_per_day=2e6, workers=4, images_per_second=10, hours=1, shard=64, swing=0.0)


def test_with_room_to_spare_nothing_waits() -> None:
    outcome = simulate(replace(SMALL, failures_per_day=0.0))
    assert outcome.failures == 0
    assert outcome.wait_p50 == pytest.approx(6.4)  # a shard's own time
    assert outcome.busy == pytest.approx(2e6 / 86_400 / 40, rel=0.05)
    assert outcome.images == pytest.approx(2e6 / 24, rel=0.05)


def test_too_few_workers_fall_behind() -> None:
    outcome = simulate(replace(SMALL, workers=2))
    assert outcome.busy > 0.97
    behind = (2e6 / 86_400 - 20) * 3600
    assert outcome.waiting_at_the_end == pytest.approx(behind, rel=0.1)


def test_failures_cost_second_attempts_and_nothing_else() -> None:
    calm, rough = (simulate(replace(SMALL, failures_per_day=n)) for n in (0.0, 100.0))
    assert rough.failures > 5
    assert 0 < rough.scored_twice < 0.05
    assert rough.images == pytest.approx(calm.images, rel=0.02)
    assert rough.busy == pytest.approx(calm.busy, rel=0.02)

"""The protocols of the robustness tables: how many images go where, and which."""

import pytest

from igd.benchmark.protocols import Protocol, Split
from igd.data.samples import Sample

SPLIT = Split(
    [Sample(f"train {n}", None) for n in range(50)],  # type: ignore[arg-type]
    [Sample(f"test {n}", None, label=int(n % 3 > 0)) for n in range(60)],  # type: ignore[arg-type]
)


def names(samples: list[Sample]) -> list[str]:
    return [sample.identifier for sample in samples]


def test_the_standard_protocol_changes_nothing() -> None:
    assert Protocol().apply(SPLIT, 0) == SPLIT


@pytest.mark.parametrize(("share", "count"), [(0.2, 10), (0.6, 30)])
def test_a_small_training_set(share: float, count: int) -> None:
    small = Protocol(training_share=share).apply(SPLIT, 0)
    assert len(small.train) == count
    assert set(names(small.train)) < set(names(SPLIT.train))
    assert small.test == SPLIT.test


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.05, 2), (0.1, 4)])
def test_contamination_moves_test_anomalies_into_training(share: float, count: int) -> None:
    dirty = Protocol(contamination=share).apply(SPLIT, 0)
    moved = dirty.train[50:]
    assert dirty.train[:50] == SPLIT.train
    assert len(moved) == count
    assert all(sample.label for sample in moved)
    assert sorted(names(dirty.test) + names(moved)) == sorted(names(SPLIT.test))


@pytest.mark.parametrize("protocol", [Protocol(0.2), Protocol(contamination=0.1)])
def test_chance_depends_on_the_seed_alone(protocol: Protocol) -> None:
    assert protocol.apply(SPLIT, 3) == protocol.apply(SPLIT, 3)
    assert protocol.apply(SPLIT, 3) != protocol.apply(SPLIT, 4)

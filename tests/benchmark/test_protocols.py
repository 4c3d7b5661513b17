"""A run's protocol reaches its data."""

from pathlib import Path

from igd.benchmark.datasets import find_data
from igd.benchmark.protocols import Protocol


def test_the_standard_protocol_changes_nothing(categories: Path) -> None:
    dataset = find_data("mvtec").read(categories, "bottle", Protocol(), 0)
    assert (len(dataset.train), len(dataset.test), dataset.steps) == (60, 20, ())


def test_less_to_learn_from(categories: Path) -> None:
    dataset = find_data("mvtec").read(categories, "bottle", Protocol(training_share=0.2), 0)
    assert (len(dataset.train), len(dataset.test)) == (12, 20)


def test_anomalies_move_into_training_by_seed(digits: Path) -> None:
    def moved(seed: int) -> list[str]:
        dataset = find_data("mnist").read(digits, "1", Protocol(contamination=0.2), seed)
        assert (len(dataset.training_samples()), len(dataset.test_samples())) == (22, 18)
        return dataset.steps[-1].moved

    assert moved(3) == moved(3)
    assert moved(3) != moved(4)

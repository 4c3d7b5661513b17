"""The order of the samples and the rate of the steps."""

import pytest
import torch

from igd.method.schedule import Training, epoch_order, learning_rate_factor


@pytest.mark.parametrize(
    ("available", "epoch_size", "batch_size"),
    [(209, None, 64), (65, None, 64), (1000, 100, 64), (300, 200, 64), (3, None, 64)],
)
def test_every_batch_holds_a_pair_and_every_sample_is_seen(
    available: int, epoch_size: int | None, batch_size: int
) -> None:
    training = Training(epoch_size=epoch_size, batch_size=batch_size)
    order = epoch_order(training, available, 0)
    batches = order.tensor_split(training.steps_in_epoch(available))
    assert min(map(len, batches)) > 1
    assert max(map(len, batches)) <= batch_size
    assert len(order.unique()) == training.samples_in_epoch(available)
    assert not torch.equal(order, epoch_order(training, available, 1))


@pytest.mark.parametrize("schedule", ["constant", "polynomial", "cosine"])
def test_schedules(schedule) -> None:
    training = Training(schedule=schedule)
    factors = [learning_rate_factor(training, progress) for progress in (0.0, 0.5, 0.999)]
    assert factors[0] == 1
    assert factors == sorted(factors, reverse=True)
    if schedule != "constant":
        assert factors[-1] < 0.01
    if schedule == "polynomial":
        assert factors[1] == pytest.approx(0.5**0.9)

"""The training loop: it learns, it can be stopped anywhere, and it does not depend on how it is cut
into pieces.
"""

import copy
from collections.abc import Callable

import pytest
import torch
from lightning_fabric import Fabric

from igd.method.em import train
from igd.method.gaussian import keep_off_zero
from igd.method.networks import AutoEncoder, Critic
from igd.method.objective import OBJECTIVES
from igd.method.schedule import Training
from igd.method.similarity import PATCH
from igd.method.training_state import RECORDED, Batch, TrainingState, start_training
from igd.rng import generator
from igd.training.checkpoint import restore_state, state_tensors

SAMPLES = 40


class Stripes:
    """Float images of stripes, as training samples."""

    def __init__(self) -> None:
        phase = torch.rand(SAMPLES, 1, 1, 1, generator=generator(0, "stripes")) * 8
        self.images = (
            torch.sin((torch.arange(32) + phase) * torch.pi / 4)
            .expand(SAMPLES, 1, 32, 32)
            .contiguous()
        )

    def __len__(self) -> int:
        return SAMPLES

    def encoder_input(self, indices: torch.Tensor) -> torch.Tensor:
        return self.images[indices]

    def batch(self, indices: torch.Tensor, mirrored: torch.Tensor | None = None) -> Batch:
        image = self.images[indices]
        if mirrored is not None:
            image = torch.where(mirrored.view(-1, 1, 1, 1), image.flip(-1), image)
        return Batch(image, image)


class Stopped(Exception):
    pass


def fresh(training: Training, objective: str = "igd") -> TrainingState:
    torch.manual_seed(0)
    autoencoder = AutoEncoder(32, 1, width=4, latent_size=16, bias=OBJECTIVES[objective].bias)
    return start_training(autoencoder, Critic(32, 1, 4), Stripes(), training)


def run(
    state: TrainingState,
    training: Training,
    fabric: Fabric,
    objective: str = "igd",
    stop_at: int | None = None,
) -> TrainingState:
    def after_step(state: TrainingState) -> None:
        if state.step == stop_at:
            raise Stopped

    return train(state, Stripes(), OBJECTIVES[objective], PATCH, training, fabric, after_step)


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_every_objective_trains_and_lowers_its_loss(objective: str, fabric: Fabric) -> None:
    training = Training(steps=40, batch_size=10, learning_rate=1e-3)
    assert training.steps
    state = fresh(training, objective)
    before = copy.deepcopy(state.autoencoder.encoder.state_dict())
    run(state, training, fabric, objective)
    column = RECORDED.index(
        "reconstruction" if OBJECTIVES[objective].reconstruction else "classification"
    )
    losses = state.history[round(OBJECTIVES[objective].warm_up * training.steps) :, column]
    assert losses[-8:].mean() < losses[:4].mean()
    assert any(
        not torch.equal(value, before[name])
        for name, value in state.autoencoder.encoder.state_dict().items()
    )
    assert state.descriptor is not None


@pytest.mark.parametrize("objective", ["igd", "dsvdd"])
@pytest.mark.parametrize("stop_at", [1, 7, 12])
def test_stopped_and_resumed_equals_uninterrupted(
    objective: str, stop_at: int, fabric: Fabric
) -> None:
    training = Training(
        steps=14,
        batch_size=10,
        online_rate=0.1,
        balance=0.1,
        clip=0.1,
        schedule="cosine",
        flip=True,
    )
    whole = run(fresh(training, objective), training, fabric, objective)
    stopped = fresh(training, objective)
    with pytest.raises(Stopped):
        run(stopped, training, fabric, objective, stop_at)
    saved = {name: value.clone() for name, value in state_tensors(stopped).items()}
    resumed = fresh(training, objective)
    restore_state(resumed, saved)
    assert resumed.step == stop_at
    run(resumed, training, fabric, objective)
    expected, actual = state_tensors(whole), state_tensors(resumed)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        assert torch.equal(value, actual[name]), name


def test_same_seed_same_numbers_other_seed_other_numbers(fabric: Fabric) -> None:
    first, second, other = (
        run(fresh(training), training, fabric).history
        for training in (
            Training(steps=4, batch_size=10),
            Training(steps=4, batch_size=10),
            Training(steps=4, batch_size=10, seed=1),
        )
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_dsvdd_first_learns_to_reconstruct_and_then_sets_its_centre(fabric: Fabric) -> None:
    training, centres = Training(steps=20, batch_size=10, learning_rate=1e-3, online_rate=0.1), []
    warm = torch.zeros(())

    @torch.no_grad()
    def after_step(state: TrainingState) -> None:
        nonlocal warm
        assert state.descriptor is not None
        centres.append(state.descriptor.mean)
        if state.step == 10:
            warm = state.autoencoder(Stripes().images, decode=False).latent.mean(dim=0)

    state = fresh(training, "dsvdd")
    train(state, Stripes(), OBJECTIVES["dsvdd"], PATCH, training, fabric, after_step)
    classification, reconstruction = state.history[:, 0], state.history[:, 1]
    assert (classification[:10] == 0).all()
    assert reconstruction[9] < reconstruction[0]
    assert (reconstruction[10:] == 0).all()
    assert classification[19] < classification[10]
    torch.testing.assert_close(centres[10], keep_off_zero(warm, 0.1))
    assert all(torch.equal(centre, centres[10]) for centre in centres[10:])


def test_a_diverging_training_says_so(fabric: Fabric) -> None:
    training = Training(steps=20, batch_size=10, learning_rate=1e12)
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        run(fresh(training), training, fabric)


def _count_calls(module: torch.nn.Module, calls: list[int]) -> Callable[[], None]:
    return module.register_forward_hook(lambda *_: calls.append(1)).remove


def test_a_step_encodes_and_decodes_once(fabric: Fabric) -> None:
    training = Training(steps=8, batch_size=10)
    state = fresh(training)
    encoded: list[int] = []
    decoded: list[int] = []
    _count_calls(state.autoencoder.encoder, encoded)
    _count_calls(state.autoencoder.decoder, decoded)
    run(state, training, fabric)
    e_steps = 3  # one an epoch of 4 steps, and the last; each encodes 4 batches
    assert len(encoded) == 8 + 4 * e_steps
    assert len(decoded) == 8


def test_clipping_bounds_the_gradient(fabric: Fabric) -> None:
    training = Training(steps=1, batch_size=10, clip=1e-3)
    state = run(fresh(training), training, fabric)
    norms = [
        parameter.grad.norm()
        for parameter in state.autoencoder.parameters()
        if parameter.grad is not None
    ]
    assert 0 < torch.stack(norms).norm() <= 1e-3 * (1 + 1e-4)

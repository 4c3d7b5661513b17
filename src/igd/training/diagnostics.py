"""Alarms: a training that went wrong without crashing must not look like one that went well."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from igd.method.networks import AutoEncoder
from igd.method.objective import SMALLEST_VARIANCE, Objective
from igd.method.reconstruction import reconstruction_error
from igd.method.similarity import Similarity
from igd.method.training_state import RECORDED, Batch, TrainingState

CONSTANT_CRITIC = 5 / 96  # l_d of the best critic that ignores its input: it answers 1/8

SATURATED = 0.97  # mean l_h of training images above which hardly any gradient is left
# Mean l_h below which latents have shrunk instead of taking a shape: about 0.5 is usual, whatever
# the scale of z, as long as sigma^2 follows it.
VANISHED = 0.1

# Reconstruction error; below it, one good reconstruction may well serve images that are all alike.
POOR = 0.2
FEWEST = 8  # images: the median of fewer resembles each of them too much to compare with
# Own reconstruction error over another image's, above which the decoder does not use the latent.
IGNORED = 0.97


class TrainingFailed(RuntimeError):
    """The trained model can't tell images apart; its scores would mean nothing."""


def snapshot(state: TrainingState) -> dict[str, Tensor]:
    """The encoder's parameters before training, for `check_training` to compare with."""
    return {
        name: value.detach().clone() for name, value in state.autoencoder.encoder.named_parameters()
    }


def check_training(
    state: TrainingState, before: dict[str, Tensor], objective: Objective, limited: bool = False
) -> list[str]:
    """Warnings about a finished training; raises `TrainingFailed` where it changed nothing.

    `limited` is l_h's pull on the latents where the decoder gives them their shape, as in `fast`:
    there they may shrink without harm.
    """
    assert state.descriptor is not None
    moved = {
        name: value
        for name, value in state.autoencoder.encoder.named_parameters()
        if value.requires_grad
    }
    if moved and all(torch.equal(value, before[name]) for name, value in moved.items()):
        raise TrainingFailed("training did not change the encoder: no gradient reached it")

    warnings = []
    floor = SMALLEST_VARIANCE * len(state.descriptor.mean)
    if objective.classifier and state.descriptor.variance <= floor:
        warnings.append(
            f"the normal latents collapsed to a point (sigma^2 is at its floor of {floor:g}): "
            "the Gaussian classifier can't tell images apart; train for fewer epochs or with a "
            "reconstruction term"
        )
    if objective.classifier == "gaussian":
        late = _late_mean(state, "classification")
        if late > SATURATED:
            warnings.append(
                f"the Gaussian loss was saturated (mean {late:.3f} over the second half of "
                f"training): the encoder moves "
                "faster than the E-step follows; lower the learning rate, run the E-step more "
                "often, or set online_rate"
            )
        elif late < VANISHED and not limited:
            floor = objective.variance_floor * len(state.descriptor.mean)
            warnings.append(
                f"the Gaussian loss vanished (mean {late:.3f} over the second half of training, "
                f"sigma^2 is {state.descriptor.variance.item():.2g}, its floor in training "
                f"{floor:.2g}): the latents shrank, which l_h can't tell from becoming more "
                "normal; limit its pull, as the recipe fast does, or train for fewer epochs"
            )
    if objective.interpolation:
        late = _late_mean(state, "critic")
        if late >= CONSTANT_CRITIC:
            warnings.append(
                f"the critic predicts alpha no better than a constant does (loss {late:.4f}, "
                f"constant {CONSTANT_CRITIC:.4f}): "
                "the interpolation constraint had no effect; train for longer"
            )
    return warnings


@torch.no_grad()
def check_decoder(autoencoder: AutoEncoder, batch: Batch, setting: Similarity) -> list[str]:
    """A warning where another image's latent reconstructs an image as well as its own does, or one
    picture for all, their median at each pixel, would do better.
    """
    image, decoded = batch.image, autoencoder(batch.encoder_input).reconstruction
    median = image.median(dim=0).values
    own, other, constant = (
        reconstruction_error(image, shown, setting).mean().item()
        for shown in (decoded, decoded.roll(1, dims=0), median.expand_as(image))
    )
    if own < POOR:
        return []
    if own >= IGNORED * other:
        return [
            f"the decoder ignores the latent: it gives every image the same reconstruction (error "
            f"{own:.3f}, with another "
            f"image's latent {other:.3f}); train for longer"
        ]
    if len(image) >= FEWEST and own >= constant:
        return [
            f"the decoder is worse than a constant: images resemble their median (error "
            f"{constant:.3f}) more than their reconstructions ({own:.3f}); train for longer"
        ]
    return []


def check_scores(scores: NDArray[np.floating]) -> None:
    """Raise `TrainingFailed` where every image gets the same score, or none at all."""
    if not np.isfinite(scores).all():
        raise TrainingFailed(
            "some scores are not finite numbers: training diverged; lower the learning rate"
        )
    if len(scores) > 1 and bool((scores == scores[0]).all()):
        raise TrainingFailed(
            f"all {len(scores)} images get the same score ({scores[0]:.6f}): the model learnt "
            f"nothing"
        )


def _late_mean(state: TrainingState, column: str) -> float:
    recorded = state.history[: state.step, RECORDED.index(column)]
    return recorded[len(recorded) // 2 :].mean().item()

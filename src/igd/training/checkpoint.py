"""What a run is known by, who watches and stops it, and its state as tensors that it can be resumed
from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from igd.data.store import Pixels
from igd.files.checkpoint_file import Checkpoint, learner_tensors, restore_learner, stopped
from igd.method.gaussian import GaussianDescriptor
from igd.method.training_state import TrainingState
from igd.progress import Progress
from igd.training.distributed import any_of

if TYPE_CHECKING:
    from lightning_fabric import Fabric

FINGERPRINTED = 64  # images at a time


class Controls(NamedTuple):
    """Who watches a run, who may stop it, the checkpoint it is kept in, and the processes that
    share it.
    """

    progress: Progress
    stop: Callable[[], bool]
    saved: Checkpoint | None
    fabric: Fabric | None = None  # None: this process alone, where a device is needed at all

    def end_if_stopped(self) -> None:
        """End where nothing has to be kept first: what was learnt before is in the checkpoint."""
        if any_of(self.fabric, self.stop()):
            raise stopped(self.saved)


def fingerprint(settings: dict[str, Any], pixels: Pixels) -> str:
    """Identity of a run: its settings and its images, to the pixel."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for batch in pixels.split(FINGERPRINTED):
        digest.update(batch.contiguous().numpy().data)
    return digest.hexdigest()


def state_tensors(state: TrainingState) -> dict[str, Tensor]:
    """A training state as named tensors."""
    tensors = {"step": torch.tensor(state.step), "history": state.history}
    if state.descriptor is not None:
        tensors |= {
            "omega.mean": state.descriptor.mean,
            "omega.variance": state.descriptor.variance,
        }
    learnt = learner_tensors("autoencoder", state.autoencoder, "adam", state.optimizer)
    return (
        tensors
        | learnt
        | learner_tensors("critic", state.critic, "critic_adam", state.critic_optimizer)
    )


def restore_state(state: TrainingState, tensors: dict[str, Tensor]) -> None:
    """The reverse of `state_tensors`, into a state of the same shape."""
    state.step, state.history = int(tensors["step"]), tensors["history"]
    if "omega.mean" in tensors:
        state.descriptor = GaussianDescriptor(tensors["omega.mean"], tensors["omega.variance"])
    restore_learner("autoencoder", state.autoencoder, "adam", state.optimizer, tensors)
    restore_learner("critic", state.critic, "critic_adam", state.critic_optimizer, tensors)

"""Training that can be stopped and taken up again: all that a run has changed so far, in one file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.data.store import Pixels
from igd.errors import UserError
from igd.method.em import TrainingState
from igd.method.gaussian import GaussianDescriptor
from igd.tensorfiles import read_tensors, write_tensors

FORMAT = 1
KIND = "checkpoint"
FINGERPRINTED = 64  # images at a time


def fingerprint(settings: dict[str, Any], pixels: Pixels) -> str:
    """Identity of a run: its settings and its images, to the pixel."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for batch in pixels.split(FINGERPRINTED):
        digest.update(batch.contiguous().numpy().data)
    return digest.hexdigest()


class Checkpoint:
    """The states of a run's scales, kept in step with a file."""

    def __init__(self, path: Path, run: str, settings: dict[str, Any]) -> None:
        self.path, self.run, self.settings = path, run, json.loads(json.dumps(settings))
        self.tensors: dict[str, Tensor] = {}

    def load(self) -> bool:
        """Read what an earlier run left; False where there is nothing."""
        if not self.path.exists():
            return False
        header, self.tensors = read_tensors(self.path, KIND, FORMAT)
        if header.get("run") != self.run:
            raise UserError(
                f"{self.path}: belongs to a training with other {self._differing(header.get('settings'))}; "
                "give the same ones again, or delete this file to start anew"
            )
        return True

    def _differing(self, before: Any) -> str:
        """What tells that training from this one: a run is its settings and its images."""
        if not isinstance(before, dict) or not isinstance(before.get("parameters"), dict):
            return "images or settings"
        now = self.settings["parameters"]
        changed = [f"{name} was {value}" for name, value in before["parameters"].items() if value != now.get(name)]
        changed = changed or [name for name, value in before.items() if value != self.settings.get(name)]
        return f"settings ({', '.join(changed)})" if changed else "images"

    def restore(self, scale: str, state: TrainingState) -> None:
        """Set a fresh state to where the file left this scale; nothing where it had not begun."""
        own = {name.removeprefix(f"{scale}/"): value for name, value in self.tensors.items() if name.startswith(f"{scale}/")}
        if own:
            restore_state(state, own)

    def save(self, scale: str, state: TrainingState) -> None:
        """Write this scale's state beside what is known of the others."""
        self.tensors |= {f"{scale}/{name}": value for name, value in state_tensors(state).items()}
        header = {"kind": KIND, "format": FORMAT, "run": self.run, "settings": self.settings}
        write_tensors(self.path, header, self.tensors)


def state_tensors(state: TrainingState) -> dict[str, Tensor]:
    """A training state as named tensors."""
    tensors = {"step": torch.tensor(state.step), "history": state.history}
    if state.descriptor is not None:
        omega = state.descriptor
        tensors |= {"omega.mean": omega.mean, "omega.variance": omega.variance, "omega.radius": omega.radius}
    for name, module in (("autoencoder", state.autoencoder), ("critic", state.critic)):
        tensors |= {f"{name}.{key}": value.clone() for key, value in module.state_dict().items()}
    for name, optimizer in (("adam", state.optimizer), ("critic_adam", state.critic_optimizer)):
        for index, moments in optimizer.state_dict()["state"].items():
            tensors |= {f"{name}.{index}.{key}": value.clone() for key, value in moments.items()}
    return tensors


def restore_state(state: TrainingState, tensors: dict[str, Tensor]) -> None:
    """The reverse of `state_tensors`, into a state of the same shape."""
    state.step, state.history = int(tensors["step"]), tensors["history"]
    if "omega.mean" in tensors:
        omega = (tensors[f"omega.{name}"] for name in ("mean", "variance", "radius"))
        state.descriptor = GaussianDescriptor(*omega)
    state.autoencoder.load_state_dict(_under("autoencoder", tensors))
    state.critic.load_state_dict(_under("critic", tensors))
    for name, optimizer in (("adam", state.optimizer), ("critic_adam", state.critic_optimizer)):
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in _under(name, tensors).items():
            index, moment = key.split(".")
            moments.setdefault(int(index), {})[moment] = value
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
        for weight, own in optimizer.state.items():  # a fused step walks through memory: all must lie there in one order
            own.update({key: torch.empty_like(weight).copy_(own[key]) for key in ("exp_avg", "exp_avg_sq")})


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): value for name, value in tensors.items() if name.startswith(f"{prefix}.")}

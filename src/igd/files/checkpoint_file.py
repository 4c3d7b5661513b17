"""Training that can be stopped and taken up again: all that a run has changed so far, in one
file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from igd.errors import Interrupted, UserError
from igd.files.tensors import read_tensors, write_tensors
from igd.progress import Progress

FORMAT = 1
KIND = "checkpoint"
SECONDS = 30.0  # between two checkpoints


class Checkpoint:
    """The states of a run's parts, kept in step with a file."""

    def __init__(self, path: Path, run: str, settings: dict[str, Any], writes: bool = True) -> None:
        """Of the processes that share a run, one writes."""
        self.writes = writes
        self.path, self.run, self.settings = path, run, json.loads(json.dumps(settings))
        self.tensors: dict[str, Tensor] = {}
        self.there = False  # whether the file holds this run
        self.written = time.monotonic()  # when it last was

    def load(self) -> bool:
        """Read what an earlier run left; False where there is nothing."""
        if not self.path.exists():
            return False
        header, self.tensors = read_tensors(self.path, KIND, FORMAT)
        if header.get("run") != self.run:
            raise UserError(
                f"{self.path}: belongs to a training with other "
                f"{self._differing(header.get('settings'))}; "
                "give the same ones again, or delete this file to start anew"
            )
        self.there = True
        return True

    def _differing(self, before: Any) -> str:
        """What tells that training from this one: a run is its settings and its images."""
        if not isinstance(before, dict) or not isinstance(before.get("parameters"), dict):
            return "images or settings"
        now = self.settings["parameters"]
        changed = [
            f"{name} was {value}"
            for name, value in before["parameters"].items()
            if value != now.get(name)
        ]
        changed = changed or [
            name for name, value in before.items() if value != self.settings.get(name)
        ]
        return f"settings ({', '.join(changed)})" if changed else "images"

    def restore(self, name: str, take_up: Callable[[dict[str, Tensor]], None]) -> None:
        """Give a part's tensors to what goes on from them, if the part had begun."""
        begun = self.part(name)
        if not begun:
            return
        try:
            take_up(begun)
        except (KeyError, RuntimeError, ValueError):  # they don't fit the networks of today
            raise UserError(
                f"{self.path}: was written by another version of igd; delete it to start anew"
            ) from None

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part of the run, such as a scale; none where it had not begun."""
        return under(f"{name}/", self.tensors)

    def keep(
        self, name: str, state: Callable[[], dict[str, Tensor]], progress: Progress, at_once: bool
    ) -> None:
        """Write a part's state beside what is known of the others: at once, or where it was last
        written SECONDS ago.
        """
        if not self.writes or (not at_once and time.monotonic() - self.written < SECONDS):
            return
        others = {
            key: value for key, value in self.tensors.items() if not key.startswith(f"{name}/")
        }
        self.tensors = others | {f"{name}/{key}": value for key, value in state().items()}
        header = {"kind": KIND, "format": FORMAT, "run": self.run, "settings": self.settings}
        try:
            write_tensors(self.path, header, self.tensors)
            self.there = True
        except OSError as error:  # training goes on; what is in memory is not lost
            progress.say(f"{self.path}: no checkpoint written ({error})")
        self.written = time.monotonic()


def stopped(saved: Checkpoint | None) -> Interrupted:
    """What to raise where a run is to stop, with the way on if there is one."""
    return Interrupted("stopped; go on with --resume" if saved and saved.there else "stopped")


def learner_tensors(
    name: str, network: nn.Module, moments: str, optimizer: torch.optim.Optimizer | None
) -> dict[str, Tensor]:
    """A network and the state of its optimizer as named tensors; of one that has learnt all, the
    network.
    """
    tensors = {f"{name}.{key}": value.clone() for key, value in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items() if optimizer else ():
        tensors |= {f"{moments}.{index}.{key}": value.clone() for key, value in state.items()}
    return tensors


def restore_learner(
    name: str,
    network: nn.Module,
    moments: str,
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, Tensor],
) -> None:
    """The reverse of `learner_tensors`."""
    network.load_state_dict(under(f"{name}.", tensors))
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in under(f"{moments}.", tensors).items():
        index, moment = key.split(".")
        state.setdefault(int(index), {})[moment] = value
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those of the tensors whose names begin so, without that beginning."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }

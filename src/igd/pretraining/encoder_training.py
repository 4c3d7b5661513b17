"""The training that distillation and contrast share: a loss a step, a rate that falls to 0, a
checkpoint to go on from.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from igd.files.checkpoint import Checkpoint, learner_tensors, restore_learner, stopped
from igd.progress import Progress

PART = "encoder"  # of a checkpoint
STEEPEST = 1.0  # largest norm of a step's gradient in the encoder; heads learn unhindered


def fit_encoder(
    learner: nn.Sequential,  # the encoder, then its head
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[int], Tensor],  # of a step; what it draws depends on the step alone
    steps: int,
    doing: str,
    progress: Progress,
    stop: Callable[[], bool],
    saved: Checkpoint | None = None,
    watch: Callable[[int], None] = lambda _: None,  # is told each step that is done
) -> Tensor:
    """Train from the start, or from where a checkpoint left off; returns the losses (steps,)."""
    rate, done, losses = optimizer.param_groups[0]["lr"], 0, torch.zeros(steps)
    begun = saved.part(PART) if saved else {}
    if begun:
        done, losses = int(begun["step"]), begun["losses"]
        restore_learner("learner", learner, "moments", optimizer, begun)

    def state() -> dict[str, Tensor]:
        kept = optimizer if done < steps else None  # what follows needs the encoder alone
        learnt = learner_tensors("learner", learner, "moments", kept)
        return {"step": torch.tensor(done), "losses": losses, **learnt}

    progress.start(steps, doing, done)
    try:
        for step in range(done, steps):
            for group in optimizer.param_groups:
                group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            loss = loss_of(step)
            if not loss.isfinite():
                raise FloatingPointError(
                    f"{doing} diverged at step {step + 1}: lower the learning rate of pre-training"
                )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learner[0].parameters(), STEEPEST)
            optimizer.step()
            losses[step], done = loss.detach(), step + 1
            progress.advance(loss=losses[step].item())
            stopping = stop()
            if saved:
                saved.keep(PART, state, progress, at_once=stopping or done == steps)
            if stopping:
                raise stopped(saved)
            watch(done)
    finally:
        progress.finish()
    return losses

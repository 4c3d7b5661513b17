"""From images to trained scales: what a frozen backbone sees is computed once, then each scale learns from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from igd.checkpoint import Checkpoint, restore_state, state_tensors, stopped
from igd.data.pixels import moved
from igd.data.store import Pixels
from igd.errors import UserError
from igd.health import snapshot
from igd.looking import SeenSamples
from igd.method.em import TrainingState, generator
from igd.pixelscale import PixelScale
from igd.pretraining.features import FrozenBackbone
from igd.progress import Progress
from igd.rows import Rows
from igd.scale import Scale

AT_ONCE = 32  # images that the backbone looks at before progress is shown

AnyModel = Scale | PixelScale
Stop = Callable[[], bool]
Change = Callable[[Tensor], Tensor]  # of a batch of images


def see(
    frozen: FrozenBackbone,
    scales: list[AnyModel],
    pixels: Pixels,
    progress: Progress,
    stop: Stop,
    saved: Checkpoint | None = None,
) -> dict[str, Tensor]:
    """Look at every image: pixel scales learn on the way, of the others' features (and mirrored ones) a tensor each.

    Once is enough, but for sets so small that a pixel scale looks again at turned and shifted copies.
    """
    trained = [scale for scale in scales if isinstance(scale, Scale)]
    pixelwise = [scale for scale in scales if isinstance(scale, PixelScale)]

    def look(
        doing: str, change: Change, wanted: list[Scale], learning: list[PixelScale], copies: int = 0
    ) -> dict[str, Tensor]:
        seen_by = {scale.settings.name: Rows() for scale in wanted}
        batches = max(1, copies) * torch.arange(len(pixels)).split(AT_ONCE)
        for indices in progress.track(batches, len(batches), f"looking at {doing}"):
            if stop():
                raise stopped(saved)
            seen = frozen(change(pixels[indices]), remember=not copies)
            for scale in wanted:
                seen_by[scale.settings.name].add(scale.features_of(seen))
            for pixel_scale in learning:
                pixel_scale.update(seen)
        return {name: rows.all for name, rows in seen_by.items()}

    flipped = [scale for scale in trained if scale.settings.training.flip]
    plain = look("images", lambda images: images, trained, pixelwise)
    mirrored = look("mirror images", lambda images: images.flip(-1), flipped, []) if flipped else {}
    for pixel_scale in pixelwise:
        settings = pixel_scale.settings
        again = settings.enough // len(pixels) - 1
        if again > 0:
            move = partial(moved, shift=settings.shift, turn=settings.turn, chance=generator(0, "move"))
            look("turned and shifted images", move, [], [pixel_scale], again)
        pixel_scale.finish()
    return {**plain, **{f"{name} mirrored": value for name, value in mirrored.items()}}


def train_scale(
    scale: Scale, samples: SeenSamples, saved: Checkpoint | None, device: str, precision: str, progress: Progress, stop: Stop
) -> list[str]:
    """Train one scale, from its checkpoint where there is one; returns warnings."""
    state = scale.start(samples)
    before = snapshot(state)
    begun = saved.part(scale.settings.name) if saved else {}
    if begun:
        restore_state(state, begun)

    def after_step(state: TrainingState) -> None:
        last = state.history[state.step - 1]
        progress.advance(rec=last[1].item(), gauss=last[0].item(), critic=last[3].item())
        stopping = stop()
        if saved:
            done = state.step == len(state.history)
            saved.keep(scale.settings.name, partial(state_tensors, state), progress, at_once=done or stopping)
        if stopping:
            raise stopped(saved)

    from lightning_fabric import Fabric  # a third of the time that importing a detector would take

    try:
        fabric = Fabric(accelerator=device, devices=1, precision=precision)  # type: ignore[arg-type]
    except Exception as error:  # whatever Fabric says about a device or a precision it can't have
        raise UserError(f"device {device!r} with precision {precision!r} can't be used here: {error}") from None
    progress.start(len(state.history), f"training {scale.settings.name} model", state.step)
    try:
        return scale.fit(state, before, samples, fabric, after_step)
    finally:
        progress.finish()

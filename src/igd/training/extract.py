"""The frozen backbone's pass over the training images: every scale's features, computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from igd.backbones.features import Features, FrozenBackbone
from igd.data.row_buffer import RowBuffer
from igd.data.store import Pixels
from igd.files.checkpoint_file import stopped, under
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.base import FeatureScale, Scale
from igd.scales.embedding import EmbeddingScale
from igd.training.checkpoint import Controls
from igd.training.distributed import any_of, gathered_rows

AT_ONCE = 32  # images that pass through the backbone before progress is shown
PART = "features"  # of a checkpoint
MIRRORED = " mirrored"  # behind an auto-encoder's name: features of its mirrored samples
LEVEL = "level "  # before a number: feature maps of whole images
VECTOR = "vector"  # of whole images

Reading = Callable[[Features], Tensor]  # what is kept of the features of a batch


@dataclass
class Pass:
    """The training images once, changed in some way, and what is kept of their features."""

    what: str
    change: Callable[[Tensor], Tensor]
    kept: dict[str, Reading] = field(default_factory=dict)


def extract_features(
    backbone: FrozenBackbone | None, scales: list[Scale], pixels: Pixels, controls: Controls
) -> dict[str, Tensor]:
    """Features of the training samples of every auto-encoder, by its name, and the levels that
    scales on features learn from.
    """
    if backbone is None:
        return {}
    extraction = Extraction(backbone, pixels, controls)
    extraction.run(_passes(scales, len(backbone.blocks)))
    return {name: buffer.all for name, buffer in extraction.rows.items()}


def features_of_images(kept: dict[str, Tensor]) -> Features:
    """What scales on features learn from, of what was kept."""
    count = sum(name.startswith(LEVEL) for name in kept)
    return Features([kept[f"{LEVEL}{number}"] for number in range(count)], kept.get(VECTOR))


def _passes(scales: list[Scale], levels: int) -> list[Pass]:
    trained = [scale for scale in scales if isinstance(scale, AutoEncoderScale)]
    kept: dict[str, Reading] = {scale.settings.name: scale.patch_features for scale in trained}
    if any(isinstance(scale, FeatureScale) for scale in scales):
        kept |= {f"{LEVEL}{number}": _level(number) for number in range(levels)}
    if any(isinstance(scale, EmbeddingScale) for scale in scales):
        kept[VECTOR] = _vector
    passes = [Pass("images", lambda images: images, kept)]
    flipped = [scale for scale in trained if scale.settings.training.flip]
    if flipped:
        mirrored = {f"{each.settings.name}{MIRRORED}": each.patch_features for each in flipped}
        passes.append(Pass("mirrored images", lambda images: images.flip(-1), dict(mirrored)))
    return passes


def _level(number: int) -> Reading:
    """Half precision holds what ImageNet features say, in half the memory."""
    return lambda features: features.maps[number].half()


def _vector(features: Features) -> Tensor:
    assert features.vector is not None
    return features.vector


class Extraction:
    """All passes, and how far they are: what a checkpoint keeps and resumes from."""

    def __init__(self, backbone: FrozenBackbone, pixels: Pixels, controls: Controls) -> None:
        self.backbone, self.pixels, self.controls = backbone, pixels, controls
        self.processes = 1 if controls.fabric is None else controls.fabric.world_size
        self.rows: dict[str, RowBuffer] = {}
        self.passed = self.batch = 0  # passes that are done, and batches of the one under way

    def run(self, passes: list[Pass]) -> None:
        if self.controls.saved:
            self.controls.saved.restore(PART, self._take_up)
        for each in passes[self.passed :]:
            batches = torch.arange(len(self.pixels)).split(AT_ONCE)
            self.controls.progress.start(
                len(self.pixels),
                f"extracting features of {each.what}",
                min(self.batch * AT_ONCE, len(self.pixels)),
            )
            try:
                for first in range(self.batch, len(batches), self.processes):
                    self._keep()
                    some = batches[first : first + self.processes]
                    self._extract(each, some)
                    self.controls.progress.advance(sum(map(len, some)))
            finally:
                self.controls.progress.finish()
            self.passed, self.batch = self.passed + 1, 0

    def _extract(self, each: Pass, batches: Sequence[Tensor]) -> None:
        """One batch for each process; where there are fewer, the last is some others' too."""
        fabric = self.controls.fabric
        rank = 0 if fabric is None else fabric.global_rank
        indices = batches[min(rank, len(batches) - 1)]
        features = self.backbone(each.change(self.pixels[indices]))
        for name, reading in each.kept.items():
            buffer = self.rows.setdefault(name, RowBuffer(len(self.pixels)))
            rows = reading(features)
            if fabric is None or self.processes == 1:
                buffer.add(rows)
                continue
            counts = [len(batch) * len(rows) // len(indices) for batch in batches]
            for some in gathered_rows(fabric, rows, counts):
                buffer.add(some)
        self.batch += len(batches)

    def _keep(self) -> None:
        """A checkpoint now and then, and one before a stop."""
        progress, stop, saved, fabric = self.controls
        stopping = any_of(fabric, stop())
        if saved:
            saved.keep(PART, self._state, progress, at_once=stopping)
        if stopping:
            raise stopped(saved)

    def _state(self) -> dict[str, Tensor]:
        tensors = {"passed": torch.tensor(self.passed), "batch": torch.tensor(self.batch)}
        return tensors | {f"rows/{name}": buffer.all for name, buffer in self.rows.items()}

    def _take_up(self, begun: dict[str, Tensor]) -> None:
        self.passed, self.batch = int(begun["passed"]), int(begun["batch"])
        for name, rows in under("rows/", begun).items():
            self.rows.setdefault(name, RowBuffer(len(self.pixels))).add(rows)

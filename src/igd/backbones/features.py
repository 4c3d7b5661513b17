"""What a frozen backbone makes of images: one pass for every scale that reads it, kept, if wanted,
in a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from igd import cpu
from igd.backbones.architectures import Backbone, View, mirrored_middle, prepared, rotations
from igd.backbones.feature_cache import FeatureCache
from igd.backbones.graph import FrozenGraph

# In what the last block knows of objects, from colour photographs, against the shapes that earlier
# ones see; where the images are grey, the other way round.
TRUST = 2.0
SMALL_LIMIT = 64  # pixels a side of small images
PIXELS_AT_ONCE = 4 * 320 * 320  # of the backbone's input: more would leave the processor's caches


@dataclass(frozen=True)
class Features:
    """What a frozen backbone makes of images: float32 of a batch, float16 where those of all
    training images are kept.
    """

    maps: list[Tensor]  # of each block asked for, (b, channels, rows, columns)
    vector: Tensor | None  # (b, features), where asked for
    fine: tuple[int, ...] = ()  # the numbers of the maps at 1/16 of the image's side
    # Of tiles, the number of each one's place in its image, where that matters: (b,).
    places: Tensor | None = None

    @property
    def images(self) -> int:
        """How many there are. Not `len`: asking whether there are features would ask for it, and
        export would take the number of images for a constant.
        """
        return len(self.maps[0] if self.vector is None else self.vector)

    def __getitem__(self, images: slice | Tensor) -> Features:
        vector, places = (
            None if each is None else each[images] for each in (self.vector, self.places)
        )
        maps = [each[images] for each in self.maps]
        return replace(self, maps=maps, vector=vector, places=places)

    def others(self, held_out: Tensor) -> Tensor:
        """The numbers of all images but these."""
        left = torch.ones(self.images, dtype=torch.bool)
        left[held_out] = False
        return left.nonzero().flatten()

    def without(self, held_out: Tensor) -> Features:
        """All images but these, by their numbers."""
        return self[self.others(held_out)] if len(held_out) else self

    def float(self) -> Features:
        """The same in single precision."""
        vector = None if self.vector is None else self.vector.float()
        return replace(self, maps=[each.float() for each in self.maps], vector=vector)

    def batches(self, size: int) -> Iterator[Features]:
        """So many images at once, in single precision."""
        for first in range(0, self.images, size):
            yield self[first : first + size].float()


class FrozenBackbone:
    """A backbone as a detector uses it: 8-bit pixels in, features of some blocks out."""

    def __init__(
        self, backbone: Backbone, shape: tuple[int, int], blocks: tuple[int, ...], vector: bool
    ) -> None:
        self.backbone = backbone if vector else backbone.up_to(max(blocks))
        self.shape = shape  # rows and columns of the images that the network is shown
        self.blocks, self.vector = blocks, vector
        fine = self.backbone.kind.fine_blocks
        self.fine = tuple(number for number, block in enumerate(blocks) if block in fine)
        self.shown = tuple(sorted({*blocks, *self._vector_blocks}))
        self.view = View(self.backbone.network, self.shown, vector)
        self.graph = FrozenGraph(self.view)
        self.cache: FeatureCache | None = None

    def __call__(self, pixels: Tensor) -> Features:
        """Features of images (b, channels, h, w), from the cache where there is one."""
        outputs = self.cache(pixels, self._outputs) if self.cache else self._outputs(pixels)
        return self._features(outputs, colour=pixels.shape[1] == 3)

    def traced(self, pixels: Tensor) -> Features:
        """The same in PyTorch and in one piece: what export traces."""
        outputs = self._forward(self.view, prepared(pixels, self.backbone.kind, self.shape))
        return self._features(outputs, colour=pixels.shape[1] == 3)

    def _outputs(self, pixels: Tensor) -> list[Tensor]:
        batch = max(1, PIXELS_AT_ONCE // math.prod(self.shape))
        batches = [
            self._forward(self.graph, prepared(part, self.backbone.kind, self.shape))
            for part in pixels.split(batch)
        ]
        return [torch.cat(part) for part in zip(*batches, strict=True)]

    def _forward(self, network: Callable[[Tensor], list[Tensor]], image: Tensor) -> list[Tensor]:
        """The maps asked for, the quarters of those that the vector is made of, and its last part,
        in all turns where it knows them.
        """
        outputs = network(image)
        if self._turned:
            vectors = [outputs[-1], *(network(each)[-1] for each in rotations(image))]
            if self.backbone.seen_twice:
                middle = mirrored_middle(image)
                others = [network(each)[-1] for each in (middle, *rotations(middle))]
                vectors = [
                    F.normalize(one, dim=1) + F.normalize(other, dim=1)
                    for one, other in zip(vectors, others, strict=True)
                ]
            outputs = [*outputs[:-1], *vectors]
        shown = dict(zip(self.shown, outputs, strict=False))
        quarters = [
            F.adaptive_avg_pool2d(shown[block], 2).flatten(1) for block in self._vector_blocks
        ]
        return [*(shown[block] for block in self.blocks), *quarters, *outputs[len(self.shown) :]]

    def _features(self, outputs: list[Tensor], colour: bool) -> Features:
        maps, parts = (
            outputs[: len(self.blocks)],
            [F.normalize(part, dim=1) for part in outputs[len(self.blocks) :]],
        )
        if self._vector_blocks:
            parts[-1] = parts[-1] * (TRUST if colour else 1 / TRUST)
        return Features(maps, torch.cat(parts, dim=1) if parts else None, self.fine)

    @property
    def _vector_blocks(self) -> tuple[int, ...]:
        return self.backbone.kind.vector_blocks if self.vector else ()

    @property
    def _turned(self) -> bool:
        return self.vector and self.backbone.turned

    def close(self) -> None:
        """Give back the memory it works in, until it is used again. For whoever has it alone: two
        threads must not open it again at once.
        """
        self.graph.session.close()
        cpu.return_freed_memory()

    def cache_in(self, folder: Path) -> None:
        """Keep features in a file there, and compute none that are in that file."""
        self.cache = FeatureCache(folder, self.described)

    @property
    def patch_features(self) -> int:
        """Length of the vectors that `patch_features` makes of its maps."""
        return sum(self.backbone.channels[self.blocks[number]] for number in self.fine)

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that its output depends on, and no others."""
        return self.backbone.network.state_dict()

    @property
    def described(self) -> dict[str, object]:
        """All that its output depends on, beside the pixels."""
        return {
            "backbone": self.backbone.name,
            "weights": self.backbone.identity,
            "shape": list(self.shape),
            "blocks": list(self.blocks),
            "vector": self.vector,
            **({"turned": True} if self._turned else {}),
            **({"seen_twice": True} if self._turned and self.backbone.seen_twice else {}),
        }


def input_shape(shape: tuple[int, int], backbone: Backbone, tiled: bool = False) -> tuple[int, int]:
    """Rows and columns of the images that a backbone is shown; one trained on ImageNet's large
    images gets small ones enlarged. Tiles have a resolution of their own, which is kept.
    """
    if not backbone.kind.magnified:
        return shape
    if max(shape) <= SMALL_LIMIT and not tiled:
        return 4 * shape[0], 4 * shape[1]
    rows, columns = (max(1, round((1 if tiled else 1.25) * length / 32)) for length in shape)
    return 32 * rows, 32 * columns


def patch_features(maps: list[Tensor], rows: int, columns: int, margin: int) -> Tensor:
    """One vector for each of the overlapping patches of an image, from feature maps of the whole:
    (b, rows, columns, f).

    Patches are twice as long as the distance between them, so each covers 2x2 cells of a grid with
    one row and column more. With a margin, the cells at the image's edge stand for those beyond it.
    """
    cells = [
        F.interpolate(each, (rows - 2 * margin + 1, columns - 2 * margin + 1), mode="bilinear")
        for each in maps
    ]
    together = torch.cat([F.normalize(each, dim=1) for each in cells], dim=1)
    if margin:
        together = F.pad(together, [margin] * 4, mode="replicate")
    return F.avg_pool2d(together, 2, 1).permute(0, 2, 3, 1)

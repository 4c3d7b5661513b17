"""The networks an encoder can be, behind one interface: the output of every block, and the vector
after the last.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from igd.backbones import efficientnet
from igd.backbones.efficientnet import EfficientNetLite
from igd.data.patches import RGB_MEAN, RGB_STD
from igd.errors import UserError
from igd.method.resnet import ResNet18
from igd.ops.filters import resize


class Network(Protocol):
    """What a backbone's network can do."""

    channels: list[int]  # of every block's output

    def maps(self, image: Tensor) -> list[Tensor]:
        """The output of every block."""
        ...

    def pool(self, last: Tensor) -> Tensor:
        """The vector made of the last block's output, (b, features)."""
        ...

    def end_after(self, last: int) -> None:
        """Forget every layer behind block number `last`."""
        ...


@dataclass(frozen=True)
class Kind:
    """A network that igd knows how to build, and what its inputs look like."""

    build: Callable[[], nn.Module]
    pooled: int  # length of the vector after the last block
    mean: tuple[float, ...]  # of the pixels, in [0, 1], that it was trained on
    std: tuple[float, ...]
    shallow_block: int  # 1/4 of the image's side
    early_block: int  # 1/8 of it
    fine_blocks: tuple[int, ...]  # 1/16 of it
    late_block: int  # 1/32 of it
    # Whose quarters join the vector: shapes and where they are, beside what the last block knows of
    # objects.
    vector_blocks: tuple[int, ...] = ()
    # It was trained on large images and wants small ones enlarged; a student reads them as is.
    magnified: bool = True
    # Published parameters as ours.
    ours: Callable[[dict[str, Tensor]], dict[str, Tensor]] = lambda published: published

    @property
    def levels(self) -> tuple[int, ...]:
        """Blocks whose maps scales on features read, in the order in which these number them. The
        largest map comes last: who does not read it need not have it made.
        """
        return (self.early_block, *self.fine_blocks, self.late_block, self.shallow_block)


def _lite(
    name: str,
    shallow: int,
    early: int,
    fine: tuple[int, ...],
    late: int,
    vector_blocks: tuple[int, ...],
) -> Kind:
    width, depth = efficientnet.WIDTHS_AND_DEPTHS[name]
    mean, std = (efficientnet.MEAN,) * 3, (efficientnet.STD,) * 3
    build, ours = (lambda: EfficientNetLite(width, depth)), efficientnet.folded_parameters
    blocks = (shallow, early, fine, late, vector_blocks)
    return Kind(build, efficientnet.HEAD, mean, std, *blocks, ours=ours)


def _resnet(width: int, small: bool) -> Kind:
    """A student, which reads images as they are; with a small stem, it halves their side once
    less.
    """
    shallow, early, fine = (3, 5, (6, 7)) if small else (1, 3, (4, 5))
    build = partial(ResNet18, 3, width, "small" if small else "imagenet")
    return Kind(build, 8 * width, RGB_MEAN, RGB_STD, shallow, early, fine, 7, magnified=False)


def _resnet_parameters(published: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in published.items() if not name.startswith("fc.")}


NARROW = 16  # channels of the first stage, a quarter of ResNet18's: a sixteenth of its work
KINDS = {
    "efficientnet_lite0": _lite("efficientnet_lite0", 2, 4, (7, 10), 14, (10, 14)),
    "efficientnet_lite1": _lite("efficientnet_lite1", 3, 6, (9, 13), 19, (13, 18)),
    "efficientnet_lite2": _lite("efficientnet_lite2", 3, 6, (9, 13), 19, (13, 18)),
    "resnet18": replace(_resnet(64, small=False), magnified=True, ours=_resnet_parameters),
    "resnet18_small": _resnet(64, small=True),
    "resnet18_narrow": _resnet(NARROW, small=False),
    "resnet18_small_narrow": _resnet(NARROW, small=True),
}
DEFAULT = "efficientnet_lite0"
QUARTERS = 4  # of a map, each with a mean of its own
TURNS = 4  # quarter turns of an image, itself among them
MARGIN = 0.15  # of an image's side that is not its middle, at either end


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise UserError(f"no backbone is called {name!r}; there are {', '.join(KINDS)}")
    return KINDS[name]


@dataclass(frozen=True)
class Attribution:
    """Whose weights these are, and under which licence; it travels with every copy of them."""

    work: str
    source: str
    licence: str  # its SPDX identifier
    licence_text: str  # where it can be read
    changes: str  # that were made to what the source has


@dataclass(frozen=True)
class Backbone:
    """A network with its weights: frozen from here on."""

    name: str  # of its kind
    network: nn.Module
    origin: str  # where the weights came from, for people
    # SHA-256 of the parameters: of two backbones with the same one that look at images in the same
    # turns, the features are the same.
    identity: str
    attribution: Attribution | None = None  # None: of one's own, or of a file that nobody published
    # Its vector is of the image in all four turns: it learnt to tell them.
    turned: bool = False
    # Of each turn it is the mean of two views: the image's, and that of its mirrored middle.
    seen_twice: bool = False

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def channels(self) -> list[int]:
        return cast(Network, self.network).channels

    @property
    def features(self) -> int:
        """Length of the whole vector."""
        turns = TURNS if self.turned else 1
        return turns * self.kind.pooled + QUARTERS * sum(
            self.channels[block] for block in self.kind.vector_blocks
        )

    def up_to(self, last: int) -> Backbone:
        """The same without the layers behind block number `last`."""
        network = copy.deepcopy(self.network)
        cast(Network, network).end_after(last)
        return replace(self, network=network)


class View(nn.Module):
    """What a detector needs of a network: the outputs of some blocks and, where wanted, the vector
    after the last.
    """

    def __init__(self, network: nn.Module, blocks: tuple[int, ...], vector: bool) -> None:
        super().__init__()
        self.network, self.blocks, self.vector = network, blocks, vector

    def forward(self, image: Tensor) -> list[Tensor]:
        network = cast(Network, self.network)
        maps = network.maps(image)
        chosen = [maps[block] for block in self.blocks]
        return [*chosen, network.pool(maps[-1])] if self.vector else chosen


def rotations(image: Tensor) -> list[Tensor]:
    """The images turned by 90, 180 and 270 degrees."""
    return [torch.rot90(image, turns, (2, 3)) for turns in range(1, TURNS)]


def mirrored_middle(image: Tensor) -> Tensor:
    """The middle of images (b, c, h, w), half of their area, mirrored and enlarged to their
    size.
    """
    rows, columns = (round(MARGIN * length) for length in image.shape[-2:])
    height, width = image.shape[-2:]
    middle = image[..., rows : height - rows, columns : width - columns]
    return resize(middle.flip(3), (height, width), "bilinear")


def prepared(pixels: Tensor, kind: Kind, shape: tuple[int, int]) -> Tensor:
    """8-bit pixels (b, 1 or 3, h, w) as the network wants them: colour, of so many rows and
    columns, normalised.
    """
    image = pixels.float()
    if shape != tuple(image.shape[-2:]):
        image = resize(image, shape, "bicubic").clamp_(0, 255)
    image = image.expand(-1, 3, -1, -1)
    mean, std = (
        torch.tensor(values, device=image.device).view(1, 3, 1, 1) * 255
        for values in (kind.mean, kind.std)
    )
    return (image - mean).div_(std)

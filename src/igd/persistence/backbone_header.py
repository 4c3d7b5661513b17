"""A frozen backbone in the header of a model file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from igd.backbones.architectures import Attribution
from igd.backbones.features import FrozenBackbone, input_shape
from igd.backbones.weights import build_backbone
from igd.inference.header import read_as


@dataclass(frozen=True)
class _BackboneHeader:
    """What the header says of a backbone."""

    backbone: str  # name of its kind
    weights: str  # SHA-256 of its parameters
    shape: tuple[int, int]  # rows and columns of what it is shown
    blocks: list[int]
    vector: bool
    origin: str
    attribution: Attribution | None = None
    turned: bool = False
    seen_twice: bool = False


def backbone_header(backbone: FrozenBackbone) -> dict[str, Any]:
    attribution = backbone.backbone.attribution
    return {
        **backbone.described,
        "origin": backbone.backbone.origin,
        "attribution": attribution and asdict(attribution),
    }


def read_backbone(
    described: Any,
    shape: tuple[int, int],
    parameters: dict[str, Tensor],
    path: Path,
    tiled: bool = False,
) -> FrozenBackbone:
    told = read_as(_BackboneHeader, described)
    blocks, vector = tuple(told.blocks), told.vector
    backbone = build_backbone(
        told.backbone, parameters, path, None if vector or not blocks else max(blocks)
    )
    if max(blocks, default=0) >= len(backbone.channels) or not (blocks or vector):
        raise ValueError(f"{told.backbone} has no blocks {blocks}")
    if told.shape != input_shape(shape, backbone, tiled):
        raise ValueError(f"a backbone that is shown images of shape {told.shape}")
    # Of one that was cut off, the whole file's checksum tells.
    if vector and backbone.identity != told.weights:
        raise ValueError("its backbone does not have the digest it is recorded with")
    known = replace(
        backbone,
        origin=told.origin,
        identity=told.weights,
        attribution=told.attribution,
        turned=told.turned,
        seen_twice=told.seen_twice,
    )
    return FrozenBackbone(known, told.shape, blocks, vector)

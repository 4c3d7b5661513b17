"""The frozen backbone of a plan, which may have to learn first."""

from __future__ import annotations

from pathlib import Path

from igd.backbones.features import FrozenBackbone, input_shape
from igd.data.store import Pixels
from igd.pretraining import contrastive, distillation, rotation
from igd.pretraining.contrastive import Contrast
from igd.pretraining.rotation import Rotation
from igd.scales.scale_settings import FINE, AutoEncoderSettings, EmbeddingSettings
from igd.training.checkpoint import Controls
from igd.training.plan import Plan


def make_backbone(
    plan: Plan, pixels: Pixels, cache: str | Path | None, controls: Controls
) -> FrozenBackbone | None:
    """The frozen backbone that the scales read, trained if it is to learn; `cache` is a folder to
    keep features in.
    """
    if plan.origin is None:
        return None
    found, learning, shape = plan.origin.found, plan.origin.learning, plan.geometry.shape
    if isinstance(learning, Contrast):
        backbone = contrastive.contrast(pixels, learning, *controls[:3]).encoder
    elif isinstance(learning, Rotation):
        backbone = rotation.learn_rotation(pixels, learning, *controls[:3]).encoder
    else:
        assert found is not None
        backbone = found
        if learning:
            teacher = FrozenBackbone(found, input_shape(shape, found), (), vector=True)
            backbone = distillation.distil(teacher, pixels, learning, *controls[:3]).encoder
    vector = any(
        isinstance(each, EmbeddingSettings)
        or (isinstance(each, AutoEncoderSettings) and not each.patch)
        for each in plan.settings
    )
    patches = any(isinstance(each, AutoEncoderSettings) and each.patch for each in plan.settings)
    read = [number for each in plan.settings for number in each.maps]
    if read and patches:
        read += FINE
    kind = backbone.kind
    blocks = kind.levels[: max(read) + 1] if read else kind.fine_blocks if patches else ()
    shown = input_shape(shape, backbone, plan.tiling is not None)
    frozen = FrozenBackbone(backbone, shown, blocks, vector)
    if cache:
        frozen.cache_in(Path(cache))
    return frozen

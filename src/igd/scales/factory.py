"""A scale for each kind of settings."""

from __future__ import annotations

from igd.backbones.features import FrozenBackbone
from igd.method.objective import Objective
from igd.scales.autoencoder import AutoEncoderScale
from igd.scales.bank import BankScale
from igd.scales.base import Scale
from igd.scales.embedding import EmbeddingScale
from igd.scales.pixel import PixelScale
from igd.scales.position import PositionScale
from igd.scales.region_mask import RegionMask
from igd.scales.scale_settings import (
    AutoEncoderSettings,
    BankSettings,
    EmbeddingSettings,
    PixelSettings,
    PositionSettings,
    ScaleSettings,
)
from igd.scales.whole import WholeScale


def build_scale(
    settings: ScaleSettings,
    objective: Objective,
    side: int,
    channels: int,
    backbone: FrozenBackbone | None,
    region: RegionMask | None = None,
) -> Scale:
    """A scale that has learnt nothing yet, of the region that counts."""
    scale = _unaimed(settings, objective, side, channels, backbone)
    scale.region = region
    return scale


def _unaimed(
    settings: ScaleSettings,
    objective: Objective,
    side: int,
    channels: int,
    backbone: FrozenBackbone | None,
) -> Scale:
    if isinstance(settings, AutoEncoderSettings):
        features = None
        if backbone:
            features = backbone.patch_features if settings.patch else backbone.backbone.features
        return AutoEncoderScale(settings, objective, side, channels, features)
    if backbone is None:
        raise ValueError(f"a {settings.name} scale needs a backbone")
    if isinstance(settings, PixelSettings):
        return PixelScale(settings)
    if isinstance(settings, PositionSettings):
        return PositionScale(settings)
    if isinstance(settings, EmbeddingSettings):
        return EmbeddingScale(settings)
    return BankScale(settings) if isinstance(settings, BankSettings) else WholeScale(settings)

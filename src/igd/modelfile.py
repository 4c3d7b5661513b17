"""The `.igd` file: safetensors with a JSON header. Reading one runs nothing from it and trusts nothing in it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.combination import Unit
from igd.data.geometry import FITS, LARGEST_SIDE, Geometry
from igd.errors import UserError
from igd.method.em import Training
from igd.method.objective import Objective
from igd.method.similarity import Similarity
from igd.pixelscale import PixelScale
from igd.pretraining.features import FrozenBackbone
from igd.pretraining.weights import build_backbone
from igd.recipes import AnyScale, PixelSettings, ScaleSettings
from igd.scale import Scale
from igd.tensorfiles import read_tensors, write_tensors
from igd.version import __version__

FORMAT = 4
KIND = "model"


@dataclass
class StoredModel:
    """All that a detector learnt, and where it came from."""

    parameters: dict[str, Any]  # of the constructor
    geometry: Geometry
    channels: int
    objective: Objective
    scales: list[Scale | PixelScale]
    backbone: FrozenBackbone | None
    units: list[Unit] | None  # of the parts of a score; None: they add up as they are
    map_units: list[Unit] | None
    alarming: float  # spreads that make a score of 1/2
    calibration_scores: Tensor
    calibration_peaks: Tensor
    examples: Tensor  # some of the held-out images, at the model's size: whatever is made of the model is tried on them
    usual_heat: float
    false_alarm_rate: float
    provenance: dict[str, Any]


def write_model(path: Path, model: StoredModel) -> None:
    header = {
        "kind": KIND,
        "format": FORMAT,
        "made_by": f"igd {__version__}",
        "parameters": model.parameters,
        "geometry": asdict(model.geometry),
        "objective": asdict(model.objective),
        "scales": [asdict(scale.settings) for scale in model.scales],
        "channels": model.channels,
        "seen_by": model.backbone and {**model.backbone.described, "origin": model.backbone.backbone.origin},
        "units": None if model.units is None else [asdict(unit) for unit in model.units],
        "map_units": None if model.map_units is None else [asdict(unit) for unit in model.map_units],
        "alarming": model.alarming,
        "usual_heat": model.usual_heat,
        "false_alarm_rate": model.false_alarm_rate,
        "provenance": model.provenance,
    }
    tensors = {
        "calibration.scores": model.calibration_scores,
        "calibration.peaks": model.calibration_peaks,
        "calibration.examples": model.examples,
    }
    for scale in model.scales:
        own = scale.tensors()
        tensors |= {f"{scale.settings.name}/{key}": value for key, value in own.items()}
    if model.backbone:
        tensors |= {f"backbone/{key}": value for key, value in model.backbone.parameters().items()}
    write_tensors(path, header, tensors)


def read_model(path: Path) -> StoredModel:
    """Read a model, or say in one line why this file is not one."""
    header, tensors = read_tensors(path, KIND, FORMAT)
    try:
        model = _model(header, tensors, path)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: damaged: its description makes no sense ({error})") from None
    if not all(value.isfinite().all() for value in tensors.values() if value.is_floating_point()):
        raise UserError(f"{path}: damaged: it holds values that are not numbers")
    return model


def _model(header: dict[str, Any], tensors: dict[str, Tensor], path: Path) -> StoredModel:
    geometry = Geometry(**header["geometry"])
    if geometry.fit not in FITS or not 0 < geometry.side <= LARGEST_SIDE or header["channels"] not in (1, 3):
        raise ValueError("impossible geometry")
    rate, scores, peaks = header["false_alarm_rate"], tensors["calibration.scores"], tensors["calibration.peaks"]
    promised = 0 < rate < 1 and (len(scores) + 1) * rate >= 1 - 1e-9
    if not promised or scores.shape != peaks.shape or scores.dim() != 1 or not _finite(header, "usual_heat", "alarming"):
        raise ValueError("impossible calibration")
    examples = tensors["calibration.examples"]
    if examples.dtype != torch.uint8 or examples.shape[1:] != (header["channels"], geometry.side, geometry.side):
        raise ValueError("impossible examples")
    objective = Objective(**header["objective"])
    backbone = _backbone(header["seen_by"], _under("backbone", tensors), path) if header["seen_by"] else None
    scales = [_scale(each, objective, geometry, header["channels"], tensors, backbone, path) for each in header["scales"]]
    if not scales:
        raise ValueError("no scales")
    if not isinstance(header["provenance"]["made_by"], str):
        raise ValueError("impossible provenance")
    return StoredModel(
        dict(header["parameters"]),
        geometry,
        header["channels"],
        objective,
        scales,
        backbone,
        _units(header["units"]),
        _units(header["map_units"]),
        float(header["alarming"]),
        scores,
        peaks,
        examples,
        float(header["usual_heat"]),
        rate,
        dict(header["provenance"]),
    )


def _scale(
    described: dict[str, Any],
    objective: Objective,
    geometry: Geometry,
    channels: int,
    tensors: dict[str, Tensor],
    backbone: FrozenBackbone | None,
    path: Path,
) -> Scale | PixelScale:
    settings = _settings(described)
    if not (settings.name.isidentifier() and 0 <= settings.smoothing < geometry.side):
        raise ValueError("impossible scale")
    if isinstance(settings, ScaleSettings):
        counts = (settings.stride, settings.scored, settings.width)
        if not (min(counts) > 0 and 0 <= settings.halvings < 8 and 0 <= settings.anomaly_share <= 1):
            raise ValueError("impossible scale")
        Scale.check(settings, geometry.side)
    scale = build_scale(settings, objective, geometry.side, channels, backbone)
    scale.restore(_under(settings.name, tensors), path)
    if isinstance(scale, PixelScale) and backbone:  # that its descriptors fit what the backbone sees, a blank image tells
        blank = torch.zeros(1, channels, geometry.side, geometry.side, dtype=torch.uint8)
        scale.look(blank, backbone(blank))
    return scale


def build_scale(
    settings: AnyScale, objective: Objective, side: int, channels: int, frozen: FrozenBackbone | None
) -> Scale | PixelScale:
    """A scale that has learnt nothing yet."""
    if isinstance(settings, PixelSettings):
        if frozen is None:
            raise ValueError("a pixel scale needs a backbone")
        return PixelScale(settings, side)
    features = None
    if frozen:
        features = frozen.patch_features if settings.patch else frozen.backbone.features
    return Scale(settings, objective, side, channels, features)


def _backbone(described: dict[str, Any], parameters: dict[str, Tensor], path: Path) -> FrozenBackbone:
    side, blocks = described["side"], tuple(described["blocks"])
    if not 0 < side <= LARGEST_SIDE or not isinstance(described["vector"], bool):
        raise ValueError("impossible backbone")
    vector = described["vector"]
    if not blocks and not vector:
        raise ValueError("impossible backbone")
    backbone = build_backbone(described["backbone"], parameters, path, None if vector else max(blocks))
    known = replace(backbone, origin=str(described["origin"]), identity=str(described["weights"]))
    return FrozenBackbone(known, side, blocks, vector)


def _units(described: list[dict[str, float]] | None) -> list[Unit] | None:
    if described is None:
        return None
    units = [Unit(**each) for each in described]
    if not all(math.isfinite(unit.middle) and unit.spread > 0 for unit in units):
        raise ValueError("impossible units")
    return units


def _finite(header: dict[str, Any], *names: str) -> bool:
    return all(math.isfinite(header[name]) for name in names)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in tensors.items() if name.startswith(f"{prefix}/")}


def _settings(described: dict[str, Any]) -> AnyScale:
    if "training" not in described:
        return PixelSettings(**{"turn": 0.0, **described})  # which older files don't have
    training = described["training"]
    similarity = described["similarity"]
    return ScaleSettings(
        **{
            **described,
            "training": Training(**{**training, "betas": tuple(training["betas"])}),
            "similarity": Similarity(**{**similarity, "weights": tuple(similarity["weights"])}),
        }
    )

"""The `.igd` file: safetensors with a JSON header. Reading one runs nothing from it and trusts
nothing in it.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.backbones.weights import build_backbone
from igd.data.geometry import FITS, LARGEST_SIDE, Geometry
from igd.errors import UserError
from igd.files.checkpoint import under
from igd.files.tensors import read_tensors, write_tensors
from igd.inference.conformal import Calibration
from igd.method.objective import Objective
from igd.method.schedule import Training
from igd.method.similarity import Similarity
from igd.persistence.older_formats import WORDS_SINCE, upgraded
from igd.scales.autoencoder import check_side
from igd.scales.base import Scale
from igd.scales.factory import build_scale
from igd.scales.fusion import Fusion, RobustScaler
from igd.scales.recipes import (
    AutoEncoderSettings,
    BankSettings,
    Level,
    PixelSettings,
    PositionSettings,
    ScaleSettings,
    WholeSettings,
)
from igd.training.calibration_history import read_history
from igd.training.fitted import FittedState
from igd.version import __version__

FORMAT = 5
KIND = "model"
MOST_SCALES = 16
WIDEST = 1024  # channels of a first stage
AGREEMENT = 1e-3  # between the score of a stored example and the one it had when the model was made


def write_model(path: Path, fitted: FittedState) -> None:
    backbone = fitted.backbone
    header = {
        "kind": KIND,
        "format": FORMAT,
        "made_by": f"igd {__version__}",
        "parameters": fitted.parameters,
        "geometry": asdict(fitted.geometry),
        "channels": fitted.channels,
        "objective": asdict(fitted.objective),
        "scales": [asdict(scale.settings) for scale in fitted.scales],
        "backbone": backbone and {**backbone.described, "origin": backbone.backbone.origin},
        "fusion": asdict(fitted.fusion),
        "calibration": {
            "background_level": fitted.calibration.background_level,
            "false_alarm_rate": fitted.calibration.false_alarm_rate,
        },
        "provenance": fitted.provenance,
        "history": [each.to_json() for each in fitted.former],
    }
    tensors = {
        "calibration.scores": torch.from_numpy(np.asarray(fitted.calibration.scores)),
        "calibration.peaks": torch.from_numpy(np.asarray(fitted.calibration.peaks)),
        "calibration.examples": fitted.examples,
        "calibration.example_scores": fitted.example_scores,
    }
    for scale in fitted.scales:
        tensors |= {f"{scale.settings.name}/{key}": value for key, value in scale.tensors().items()}
    if backbone:
        tensors |= {f"backbone/{key}": value for key, value in backbone.parameters().items()}
    write_tensors(path, header, tensors)


def read_model(path: Path) -> FittedState:
    """Read a model, or say in one line why this file is not one."""
    header, tensors = read_tensors(path, KIND, FORMAT, checked_since=WORDS_SINCE)
    if not all(value.isfinite().all() for value in tensors.values() if value.is_floating_point()):
        raise UserError(f"{path}: damaged: it holds values that are not numbers")
    try:
        fitted = _fitted(*upgraded(header, tensors), path)
        _check_example(fitted)
    except UserError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        ArithmeticError,
    ) as error:
        raise UserError(f"{path}: damaged: its description makes no sense ({error})") from None
    return fitted


def to_bytes(fitted: FittedState) -> bytes:
    """What `write_model` would write: how a detector travels in a pickle, which then holds no code
    of ours, and is read with all checks of a file.
    """
    with tempfile.TemporaryDirectory(prefix="igd-") as folder:
        write_model(Path(folder) / "copy.igd", fitted)
        return (Path(folder) / "copy.igd").read_bytes()


def from_bytes(contents: bytes) -> FittedState:
    """The reverse of `to_bytes`."""
    with tempfile.TemporaryDirectory(prefix="igd-") as folder:
        (Path(folder) / "copy.igd").write_bytes(contents)
        return read_model(Path(folder) / "copy.igd")


def _fitted(header: dict[str, Any], tensors: dict[str, Tensor], path: Path) -> FittedState:
    geometry, channels = Geometry(**header["geometry"]), header["channels"]
    if geometry.fit not in FITS or not 0 < geometry.side <= LARGEST_SIDE or channels not in (1, 3):
        raise ValueError("impossible geometry")
    if not 0 < len(header["scales"]) <= MOST_SCALES:
        raise ValueError(f"{len(header['scales'])} scales")
    scores, peaks = tensors["calibration.scores"].numpy(), tensors["calibration.peaks"].numpy()
    calibration = Calibration(scores, peaks, **header["calibration"])
    calibration.check()
    examples = tensors["calibration.examples"]
    if examples.dtype != torch.uint8 or examples.shape[1:] != (
        channels,
        geometry.side,
        geometry.side,
    ):
        raise ValueError("impossible examples")
    example_scores = tensors.get("calibration.example_scores", tensors["calibration.scores"])
    scales = header["parameters"].get("scales")
    if scales is not None and not all(isinstance(name, str) for name in scales):
        raise ValueError("impossible parameters")
    if not isinstance(header["provenance"]["made_by"], str):
        raise ValueError("impossible provenance")
    objective = Objective(**header["objective"])
    backbone = (
        _backbone(header["backbone"], under("backbone/", tensors), path)
        if header["backbone"]
        else None
    )
    return FittedState(
        parameters=dict(header["parameters"]),
        geometry=geometry,
        channels=channels,
        objective=objective,
        backbone=backbone,
        scales=[
            _scale(each, objective, geometry, channels, tensors, backbone, path)
            for each in header["scales"]
        ],
        fusion=_fusion(header["fusion"]),
        calibration=calibration,
        examples=examples,
        example_scores=example_scores[: len(examples)],
        provenance=dict(header["provenance"]),
        former=read_history(header.get("history", [])),
    )


def _check_example(fitted: FittedState) -> None:
    """That the parts fit each other, and say what they said when the model was made, a stored image
    tells.
    """
    if not len(fitted.examples):
        return
    now, then = float(fitted.score(fitted.examples[:1]).score[0]), float(fitted.example_scores[0])
    if not abs(now - then) <= AGREEMENT:
        raise ValueError(
            f"an image that it came with scores {now:g}, and {then:g} when it was made"
        )


def _scale(
    described: dict[str, Any],
    objective: Objective,
    geometry: Geometry,
    channels: int,
    tensors: dict[str, Tensor],
    backbone: FrozenBackbone | None,
    path: Path,
) -> Scale:
    settings = _settings(described)
    if not (settings.name.isidentifier() and 0 <= settings.smoothing < geometry.side):
        raise ValueError("impossible scale")
    if isinstance(settings, AutoEncoderSettings):
        counts = (settings.stride, settings.inference_stride, settings.width)
        shares = 0 <= settings.downsampling < 8 and 0 <= settings.anomaly_share <= 1
        if not (min(counts) > 0 and settings.width <= WIDEST and shares):
            raise ValueError("impossible scale")
        check_side(settings, geometry.side)
    scale = build_scale(settings, objective, geometry.side, channels, backbone)
    scale.restore(under(f"{settings.name}/", tensors), path)
    return scale


def _settings(described: dict[str, Any]) -> ScaleSettings:
    if "training" in described:
        training, similarity = described["training"], described["similarity"]
        return AutoEncoderSettings(
            **{
                **described,
                "training": Training(**{**training, "betas": tuple(training["betas"])}),
                "similarity": Similarity(**{**similarity, "weights": tuple(similarity["weights"])}),
            }
        )
    kinds = (PositionSettings, BankSettings, WholeSettings, PixelSettings)
    kind = {each().name: each for each in kinds}[described["name"]]
    own = dict(described)
    if "levels" in own:
        own["levels"] = tuple(
            Level(**{**level, "maps": tuple(level["maps"])}) for level in own["levels"]
        )
    if "maps" in own:
        own["maps"] = tuple(own["maps"])
    return kind(**own)


def _backbone(
    described: dict[str, Any], parameters: dict[str, Tensor], path: Path
) -> FrozenBackbone:
    side, blocks, vector = described["side"], tuple(described["blocks"]), described["vector"]
    if not 0 < side <= LARGEST_SIDE or not isinstance(vector, bool) or not (blocks or vector):
        raise ValueError("impossible backbone")
    backbone = build_backbone(
        described["backbone"], parameters, path, None if vector else max(blocks)
    )
    if (
        vector and backbone.identity != described["weights"]
    ):  # of one that was cut off, the whole file's checksum tells
        raise ValueError("its backbone does not have the digest it is recorded with")
    known = replace(backbone, origin=str(described["origin"]), identity=str(described["weights"]))
    return FrozenBackbone(known, side, blocks, vector)


def _fusion(described: dict[str, Any]) -> Fusion:
    scalers, map_scalers = (_scalers(described[name]) for name in ("scalers", "map_scalers"))
    if not math.isfinite(described["threshold"]):
        raise ValueError("impossible threshold")
    sharpness = described.get("sharpness")
    if sharpness is not None and not 0 < sharpness < math.inf:
        raise ValueError("impossible sharpness")
    return Fusion(scalers, map_scalers, float(described["threshold"]), sharpness)


def _scalers(described: list[dict[str, float]] | None) -> list[RobustScaler] | None:
    if described is None:
        return None
    scalers = [RobustScaler(**each) for each in described]
    if not all(
        math.isfinite(scaler.median) and math.isfinite(scaler.mad) and scaler.mad > 0
        for scaler in scalers
    ):
        raise ValueError("impossible scalers")
    return scalers

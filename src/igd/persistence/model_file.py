"""The `.igd` file: safetensors with a JSON header. Reading one runs nothing from it and trusts
nothing in it.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from igd.backbones.features import FrozenBackbone
from igd.data.geometry import Geometry
from igd.data.tiles import Tiling
from igd.errors import UserError
from igd.files.checkpoint_file import under
from igd.files.tensors import read_tensors, write_tensors
from igd.inference.conformal import Calibration
from igd.inference.header import check_values, read_as
from igd.method.objective import Objective
from igd.persistence.backbone_header import backbone_header, read_backbone
from igd.persistence.description import (
    check_parameters,
    check_provenance,
    read_scale_settings,
)
from igd.persistence.older_formats import WORDS_SINCE, upgraded
from igd.scales.base import Scale
from igd.scales.factory import build_scale
from igd.scales.fusion import Fusion
from igd.scales.region_mask import RegionMask
from igd.scales.scale_settings import (
    AutoEncoderSettings,
    EmbeddingSettings,
    ScaleSettings,
    check_side,
)
from igd.training.calibration_history import read_history
from igd.training.fitted import FittedState
from igd.version import __version__

FORMAT = 9
KIND = "model"
MOST_SCALES = 16
MOST_OVERLAP = 8  # patches over a pixel, along each axis
CALIBRATION_TENSORS = tuple(
    f"calibration.{name}"
    for name in ("scores", "peaks", "examples", "example_scores", "example_places")
)
AGREEMENT = 1e-3  # between the score of a stored example and the one it had when the model was made


def write_model(path: Path, fitted: FittedState) -> None:
    backbone = fitted.backbone
    header = {
        "kind": KIND,
        "format": FORMAT,
        "made_by": f"igd {__version__}",
        "parameters": fitted.parameters,
        "geometry": asdict(fitted.geometry),
        "tiling": fitted.tiling and asdict(fitted.tiling),
        "channels": fitted.channels,
        "objective": asdict(fitted.objective),
        "scales": [asdict(scale.settings) for scale in fitted.scales],
        "backbone": backbone and backbone_header(backbone),
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
    if fitted.example_places is not None:
        tensors["calibration.example_places"] = fitted.example_places
    for scale in fitted.scales:
        tensors |= {f"{scale.settings.name}/{key}": value for key, value in scale.tensors().items()}
    if backbone:
        tensors |= {f"backbone/{key}": value for key, value in backbone.parameters().items()}
    write_tensors(path, header, tensors)


def read_model(path: Path) -> FittedState:
    """Read a model, or say in one line why this file is not one."""
    header, tensors = read_tensors(path, KIND, FORMAT, checked_since=WORDS_SINCE)
    try:
        if not all(each.isfinite().all() for each in tensors.values() if each.is_floating_point()):
            raise UserError(f"{path}: damaged: it holds values that are not numbers")
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
    check_values(header)
    geometry, channels = read_as(Geometry, header["geometry"]), header["channels"]
    if type(channels) is not int or channels not in (1, 3):
        raise ValueError("impossible channels")
    parameters, provenance = (
        check_parameters(header["parameters"]),
        check_provenance(header["provenance"]),
    )
    objective, fusion = read_as(Objective, header["objective"]), read_as(Fusion, header["fusion"])
    scores, peaks = tensors["calibration.scores"].numpy(), tensors["calibration.peaks"].numpy()
    calibration = read_as(Calibration, header["calibration"], scores=scores, peaks=peaks)
    calibration.check()
    examples = tensors["calibration.examples"]
    example_scores = tensors.get("calibration.example_scores", tensors["calibration.scores"])
    _check_examples(examples, example_scores, (channels, *geometry.shape))
    settings = _scale_list(header["scales"], tensors)
    weighed = fusion.scalers is not None and fusion.sharpness is None
    if not weighed and any(getattr(each, "statistics", False) for each in settings):
        raise ValueError("statistics of an encoder count in scores whose parts are scaled")
    tiling = _tiling(header.get("tiling"))
    if tiling and geometry.rectangle:
        raise ValueError("tiles are read as squares")
    places = _example_places(tensors, len(examples), tiling)
    backbone = (
        read_backbone(
            header["backbone"],
            geometry.shape,
            under("backbone/", tensors),
            path,
            tiling is not None,
        )
        if header["backbone"] is not None
        else None
    )
    return FittedState(
        parameters=parameters,
        geometry=geometry,
        channels=channels,
        objective=objective,
        backbone=backbone,
        scales=[
            _scale(each, objective, geometry, channels, tensors, backbone, path)
            for each in settings
        ],
        tiling=tiling,
        example_places=places,
        fusion=fusion,
        calibration=calibration,
        examples=examples,
        example_scores=example_scores[: len(examples)],
        provenance=provenance,
        former=read_history(header.get("history", [])),
    )


def _scale_list(described: Any, tensors: dict[str, Tensor]) -> list[ScaleSettings]:
    """The settings of all scales; each has a name of its own, and every tensor its owner."""
    if not isinstance(described, list) or not 0 < len(described) <= MOST_SCALES:
        count = len(described) if isinstance(described, list) else "no list of"
        raise ValueError(f"{count} scales")
    settings = [read_scale_settings(each) for each in described]
    owners = [each.name for each in settings]
    if len({*owners, "backbone"}) <= len(owners):
        raise ValueError("two scales of one name")
    for name in tensors:
        if name not in CALIBRATION_TENSORS and name.partition("/")[0] not in (*owners, "backbone"):
            raise ValueError(f"the tensor {name[:60]!r} belongs to nothing")
    return settings


def _check_examples(examples: Tensor, scores: Tensor, shape: tuple[int, int, int]) -> None:
    """They are images at the model's size: a header can't claim a larger one than the file has."""
    possible = (
        examples.dtype == torch.uint8
        and examples.shape[1:] == shape
        and 0 < len(examples) <= len(scores)
        and scores.dim() == 1
    )
    if not possible:
        raise ValueError("impossible examples")


def _tiling(described: Any) -> Tiling | None:
    """How images are cut; files of models that read whole images may say nothing."""
    if described is None:
        return None
    tiling = read_as(Tiling, described)
    tiling.check()
    return tiling


def _example_places(tensors: dict[str, Tensor], count: int, tiling: Tiling | None) -> Tensor | None:
    """The place of each example, where each place has a descriptor of its own."""
    places = tensors.get("calibration.example_places")
    if tiling is None or tiling.size is None:
        return None
    known = len(tiling.boxes(*tiling.size))
    if (
        places is None
        or places.dtype != torch.long
        or places.shape != (count,)
        or not 0 <= int(places.min()) <= int(places.max()) < known
    ):
        raise ValueError("impossible places of examples")
    return places


def _check_example(fitted: FittedState) -> None:
    """That the parts fit each other, and say what they said when the model was made, a stored image
    tells.
    """
    places = None if fitted.example_places is None else fitted.example_places[:1]
    now = float(fitted.score(fitted.examples[:1], places).score[0])
    then = float(fitted.example_scores[0])
    if not abs(now - then) <= AGREEMENT:
        raise ValueError(
            f"an image that it came with scores {now:g}, and {then:g} when it was made"
        )


def _scale(
    settings: ScaleSettings,
    objective: Objective,
    geometry: Geometry,
    channels: int,
    tensors: dict[str, Tensor],
    backbone: FrozenBackbone | None,
    path: Path,
) -> Scale:
    if settings.smoothing >= min(geometry.shape):
        raise ValueError(f"smoothing is {settings.smoothing:g}")
    if isinstance(settings, AutoEncoderSettings):
        if geometry.rectangle:
            raise ValueError(f"the {settings.name} model reads squares")
        check_side(settings, geometry.side)
        patch = settings.patch or geometry.side
        if patch > MOST_OVERLAP * settings.stride * settings.inference_stride and settings.patch:
            raise ValueError(f"patches of {patch} pixels at a distance of {settings.stride}")
    elif backbone is None or max(settings.maps, default=-1) >= len(backbone.blocks):
        raise ValueError(f"the {settings.name} scale reads maps that no backbone makes")
    elif isinstance(settings, EmbeddingSettings):
        if not backbone.vector:
            raise ValueError(f"the {settings.name} scale reads a vector that no backbone makes")
        known = backbone.backbone.turned and not backbone.backbone.kind.vector_blocks
        if settings.turns and not known:
            raise ValueError(f"the {settings.name} scale reads turns that its backbone never saw")
    scale = build_scale(
        settings, objective, geometry.side, channels, backbone, RegionMask.of(geometry)
    )
    scale.restore(under(f"{settings.name}/", tensors), path)
    return scale

"""The `.igd` file: safetensors with a JSON header. Reading one runs nothing from it and trusts nothing in it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from igd.data.geometry import FITS, Geometry
from igd.errors import UserError
from igd.files import load_weights, read_tensors, write_tensors
from igd.method.em import Training
from igd.method.gaussian import GaussianDescriptor
from igd.method.objective import Objective
from igd.method.similarity import Similarity
from igd.recipes import LARGEST_SIDE, ScaleSettings
from igd.scale import Scale, in_fast_layout
from igd.version import __version__

FORMAT = 1
KIND = "model"


@dataclass
class StoredModel:
    """All that a detector learnt, and where it came from."""

    parameters: dict[str, Any]  # of the constructor
    geometry: Geometry
    objective: Objective
    scales: list[Scale]
    calibration_scores: Tensor
    calibration_peaks: Tensor
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
        "channels": model.scales[0].channels,
        "usual_heat": model.usual_heat,
        "false_alarm_rate": model.false_alarm_rate,
        "provenance": model.provenance,
    }
    tensors = {"calibration.scores": model.calibration_scores, "calibration.peaks": model.calibration_peaks}
    for scale in model.scales:
        name, omega = scale.settings.name, scale.descriptor
        assert omega is not None
        assert scale.history is not None
        tensors |= {f"{name}/mean": omega.mean, f"{name}/variance": omega.variance, f"{name}/radius": omega.radius}
        tensors[f"{name}/history"] = scale.history
        tensors |= {f"{name}/weights.{key}": value for key, value in scale.autoencoder.state_dict().items()}
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
    if not promised or scores.shape != peaks.shape or scores.dim() != 1 or not math.isfinite(header["usual_heat"]):
        raise ValueError("impossible calibration")
    objective = Objective(**header["objective"])
    scales = [_scale(each, objective, geometry, header["channels"], tensors, path) for each in header["scales"]]
    if not scales:
        raise ValueError("no scales")
    if not isinstance(header["provenance"]["made_by"], str):
        raise ValueError("impossible provenance")
    return StoredModel(
        dict(header["parameters"]),
        geometry,
        objective,
        scales,
        scores,
        peaks,
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
    path: Path,
) -> Scale:
    settings = _settings(described)
    if not (settings.name.isidentifier() and settings.stride > 0 and settings.width > 0 and settings.latent_size > 0):
        raise ValueError("impossible scale")
    if not (0 <= settings.anomaly_share <= 1 and 0 <= settings.smoothing < geometry.side):
        raise ValueError("impossible scale")
    Scale.check(settings, geometry.side)
    own = {
        name.removeprefix(f"{settings.name}/"): value
        for name, value in tensors.items()
        if name.startswith(f"{settings.name}/")
    }
    scale = Scale(settings, objective, geometry.side, channels)
    with torch.device("meta"):  # nothing is allocated before the file's own tensors are known to fit
        scale.autoencoder = scale.build()
    weights = {name.removeprefix("weights."): value for name, value in own.items() if name.startswith("weights.")}
    load_weights(scale.autoencoder, weights, path)
    scale.autoencoder = in_fast_layout(scale.autoencoder)
    if own["mean"].shape != (settings.latent_size,) or own["variance"].shape != () or own["radius"].shape != ():
        raise ValueError(f"the descriptor of the {settings.name} model has the wrong shape")
    scale.descriptor = GaussianDescriptor(own["mean"], own["variance"], own["radius"])
    scale.history = own["history"]
    return scale


def _settings(described: dict[str, Any]) -> ScaleSettings:
    training = described["training"]
    similarity = described["similarity"]
    return ScaleSettings(
        **{
            **described,
            "training": Training(**{**training, "betas": tuple(training["betas"])}),
            "similarity": Similarity(**{**similarity, "weights": tuple(similarity["weights"])}),
        }
    )

"""Model files of earlier versions, in the words of today's."""

from __future__ import annotations

from typing import Any

from torch import Tensor

WORDS_SINCE = 5  # the format whose header says what the code says today
SHAPE_SINCE = 7  # the format that knows rectangles; before, a backbone was shown squares
AUTOENCODER = {"halvings": "downsampling", "scored": "inference_stride"}
PIXEL = {
    "borrowed": "neighbour_shrinkage",
    "shared": "global_shrinkage",
    "enough": "min_samples",
    "turn": "rotation",
    "steadied": "background_power",
}
SCALER = {"middle": "median", "spread": "mad"}


def upgraded(
    header: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a model file of any format, as today's has them."""
    if header["format"] < WORDS_SINCE:
        header, tensors = _reworded(header, tensors)
    if header["format"] < SHAPE_SINCE and header["backbone"] is not None:
        backbone = {name: value for name, value in header["backbone"].items() if name != "side"}
        side = header["backbone"]["side"]
        header = {**header, "backbone": {**backbone, "shape": [side, side]}}
    return header, tensors


def _reworded(
    header: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    objective = {
        name: value for name, value in header["objective"].items() if name != "soft_boundary"
    }
    if objective["classifier"] == "soft-boundary":
        objective["classifier"] = "hypersphere"  # they differ in training alone
    upgraded_header = {
        **header,
        "objective": objective,
        "scales": [_settings(each) for each in header["scales"]],
        "backbone": header["seen_by"],
        "fusion": {
            "scalers": _scalers(header["units"]),
            "map_scalers": _scalers(header["map_units"]),
            "threshold": header["alarming"],
        },
        "calibration": {
            "background_level": header["usual_heat"],
            "false_alarm_rate": header["false_alarm_rate"],
        },
    }
    renamed = {
        _tensor_name(name): value for name, value in tensors.items() if not name.endswith("/radius")
    }
    return upgraded_header, renamed


def _tensor_name(name: str) -> str:
    scale, slash, rest = name.partition("/")
    return f"{scale}{slash}{rest.replace('usual.', 'background.')}"


def _settings(described: dict[str, Any]) -> dict[str, Any]:
    if "training" in described:
        return _renamed(described, AUTOENCODER)
    return {"rotation": 0.0, **_renamed(described, PIXEL)}


def _scalers(described: list[dict[str, float]] | None) -> list[dict[str, float]] | None:
    return None if described is None else [_renamed(each, SCALER) for each in described]


def _renamed(described: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    return {words.get(name, name): value for name, value in described.items()}

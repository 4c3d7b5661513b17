"""What a model file says of scales, parameters and provenance, every value checked."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType, UnionType
from typing import Any

from igd.inference.header import LARGEST, LONGEST_LIST, read_as, shown
from igd.scales.scale_settings import (
    GRAIN,
    AutoEncoderSettings,
    BankSettings,
    EmbeddingSettings,
    PixelSettings,
    PositionSettings,
    ScaleSettings,
    WholeSettings,
)
from igd.training.parameters import Parameters

FEATURE_KINDS = (
    PositionSettings,
    BankSettings,
    WholeSettings,
    EmbeddingSettings,
    PixelSettings,
)
PARAMETER_KINDS: dict[str, tuple[type, ...]] = {
    "None": (NoneType,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "tuple[str, ...]": (list,),
}
PROVENANCE: dict[str, type | UnionType] = {
    "made_by": str,
    "made_at": str,
    "fingerprint": str,
    "backbone": str,
    "weights": str,
    "source": str,
    "calibration": str,
    "grouped_by": str,
    "torch": str,
    "python": str,
    "images": int,
    "calibration_images": int,
    "measuring_images": int,
    "groups": int,
    "threads": int,
    "seconds": int | float,
    "skipped": list,
    "protocols": list,
    "updates": list,
}

UPDATE = {"made_at": str, "made_by": str, "source": str, "images": int}


def read_scale_settings(described: Any) -> ScaleSettings:
    """The settings of a scale, whichever kind it is."""
    if not isinstance(described, dict):
        raise TypeError(f"a scale is described by {shown(described)}")
    if "training" in described:
        settings: ScaleSettings = read_as(AutoEncoderSettings, described)
    else:
        kinds: dict[str, type[ScaleSettings]] = {each().name: each for each in FEATURE_KINDS}
        kinds[GRAIN] = BankSettings
        if described.get("name") not in tuple(kinds):
            raise ValueError(f"no scale is called {shown(described.get('name'))}")
        settings = read_as(kinds[described["name"]], described)
    if not settings.name.isidentifier() or len(settings.name) > LONGEST_LIST:
        raise ValueError(f"a scale called {shown(settings.name)}")
    return settings


def check_parameters(described: Any) -> dict[str, Any]:
    """The parameters of the constructor; those that this version does not know mean nothing to
    it.
    """
    if not isinstance(described, dict):
        raise TypeError(f"parameters are {shown(described)}")
    for each in fields(Parameters):
        if each.name not in described:
            continue
        value, kinds = described[each.name], str(each.type).split(" | ")
        allowed = tuple(kind for name in kinds for kind in PARAMETER_KINDS.get(name, (str,)))
        choices = each.metadata.get("choices")
        possible = (
            type(value) in allowed
            and (value is None or choices is None or value in choices)
            and (not isinstance(value, int | float) or 0 <= value <= LARGEST)
            and (not isinstance(value, list) or all(isinstance(name, str) for name in value))
        )
        if not possible:
            raise ValueError(f"the parameter {each.name} is {shown(value)}")
    return dict(described)


def check_provenance(described: Any) -> dict[str, Any]:
    """Who made a model, when and from what: for people, and for the header of an export."""
    if not isinstance(described, dict) or "made_by" not in described:
        raise ValueError("it does not say what made it")
    for name, kind in PROVENANCE.items():
        value = described.get(name)
        if name in described and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"its provenance says that {name} is {shown(value)}")
        if isinstance(value, int | float) and not 0 <= value <= LARGEST:
            raise ValueError(f"its provenance says that {name} is {shown(value)}")
    for each in described.get("updates", []):
        told = isinstance(each, dict) and [each.get(name) for name in UPDATE]
        if not told or [type(value) for value in told] != [*UPDATE.values()]:
            raise ValueError(f"its provenance tells of an update as {shown(each)}")
    return dict(described)

"""The header of a model, .igd or .onnx, as typed values. A header is somebody else's text: every
value has the type and lies in the range that the code could have written, or the file is refused
before anything is made of it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from igd.data.geometry import LARGEST_SIDE
from igd.data.tiles import MOST_OVERLAP

Described = TypeVar("Described")
DEEPEST, MOST_VALUES, LONGEST_TEXT = 8, 1_000_000, 50_000
LONGEST_LIST = 64  # of settings
LARGEST = 2**31  # of numbers that nothing more is known about
SHARE, POSITIVE = (0.0, 1.0), (1, LARGEST)
RANGES: dict[str, tuple[float, float]] = {
    "side": (1, LARGEST_SIDE),
    "rectangle": (1, LARGEST_SIDE),
    "shape": (1, 2 * LARGEST_SIDE),
    "overlap": (0, MOST_OVERLAP),
    "patch": (1, LARGEST_SIDE),
    "stride": (1, LARGEST_SIDE),
    "inference_stride": (1, LARGEST_SIDE),
    "downsampling": (0, 7),
    "width": (1, 1024),  # channels of a first stage
    "latent_size": (1, 65_536),
    "window": (1, 255),
    "weights": SHARE,
    "sigma": (1e-3, 1e3),
    "data_range": (1e-3, 1e6),
    "k1": (1e-6, 1.0),
    "k2": (1e-6, 1.0),
    "anomaly_share": SHARE,
    "smoothing": (0, LARGEST_SIDE),
    "maps": (0, LONGEST_LIST),
    "blocks": (0, LONGEST_LIST),
    "cell": (1, LONGEST_LIST),
    "map_weight": (0, 1e3),
    "neighbour_shrinkage": SHARE,
    "global_shrinkage": SHARE,
    "shrinkage": SHARE,
    "ridge": (0, 1e3),
    "top": POSITIVE,
    "patches": POSITIVE,
    "nearest": POSITIVE,
    "background_power": (0, 10),
    "rho": SHARE,
    "warm_up": SHARE,
    "zeta": SHARE,
    "betas": SHARE,
    "batch_size": POSITIVE,
    "e_step_every": POSITIVE,
    "median": (-1e30, 1e30),
    "mad": (1e-30, 1e30),
    "threshold": (-1e6, 1e6),
    "sharpness": (1e-6, 1e6),
    "false_alarm_rate": SHARE,
    "background_level": (-1e6, 1e6),
}


def check_values(header: dict[str, Any]) -> None:
    """Refuse what no header holds anywhere: deep nesting, text and numbers of any length."""
    level: list[Any] = [header]
    seen = depth = 0
    while level:
        seen, depth = seen + len(level), depth + 1
        if depth > DEEPEST or seen > MOST_VALUES:
            raise ValueError("its header is nested too deeply, or too long")
        for value in level:
            if isinstance(value, str) and len(value) > LONGEST_TEXT:
                raise ValueError(f"a text of {len(value)} characters")
            if isinstance(value, int | float) and not abs(value) <= 1e30:
                raise ValueError("a number out of all bounds")
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]


def read_as(kind: type[Described], described: Any, **known: Any) -> Described:
    """A dataclass from its description; fields of `known` are taken as they are. What has a default
    may be missing, as it is in files that are older than the field.
    """
    if not isinstance(described, dict):
        raise TypeError(f"{kind.__name__} is described by {shown(described)}")
    hints = get_type_hints(kind)
    fitting = {each.name: each for each in fields(kind) if each.name not in known}  # type: ignore[arg-type]
    for name in described:
        if name not in fitting:
            raise ValueError(f"{kind.__name__} has no {shown(name)}")
    for name, each in fitting.items():
        if name not in described and each.default is MISSING:
            raise ValueError(f"{kind.__name__} lacks {name}")
    values = {name: _value(hints[name], value, name) for name, value in described.items()}
    return kind(**values, **known)


def _value(hint: Any, value: Any, name: str) -> Any:
    """A value of this type, in the range that its name has."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType or type(None) in inner:
        if value is None:
            return None
        (hint,) = (each for each in inner if each is not NoneType)
        return _value(hint, value, name)
    if origin is Literal:
        if not isinstance(value, str) or value not in inner:
            raise ValueError(f"{name} is {shown(value)}, not one of {', '.join(inner)}")
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple) or len(value) > LONGEST_LIST:
            raise ValueError(f"{name} is {shown(value)}")
        if origin is tuple and not value:
            raise ValueError(f"{name} is empty")
        if origin is tuple and inner[-1] is not Ellipsis and len(value) != len(inner):
            raise ValueError(f"{name} has {len(value)} values")
        return origin(_value(inner[0], each, name) for each in value)
    if is_dataclass(hint):
        return read_as(hint, value)  # type: ignore[arg-type]
    if hint is float and type(value) is int and abs(value) <= LARGEST:
        value = float(value)
    if type(value) is not hint:
        raise TypeError(f"{name} is {shown(value)}, not {hint.__name__}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = RANGES.get(name, (0, LARGEST))
        if not low <= value <= high:  # nor is NaN
            raise ValueError(f"{name} is {shown(value)}")
    return value


def shown(value: Any) -> str:
    """Somebody else's value in a message: short."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:60]

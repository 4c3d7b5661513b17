"""A header is checked value by value: type and range."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from igd.data.geometry import Geometry
from igd.inference.conformal import Calibration
from igd.inference.header import check_values, read_as
from igd.method.objective import Objective
from igd.scales.fusion import Fusion

HUGE, LONG, NAN = 10**400, "x" * 60_000, float("nan")


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        (Geometry, None),
        (Geometry, []),
        (Geometry, {"fit": "resize"}),
        (Geometry, {"side": 0}),
        (Geometry, {"side": True}),
        (Geometry, {"side": 10**9}),
        (Geometry, {"side": 32, "fit": "../../etc"}),
        (Geometry, {"side": 32, "surprise": 1}),
        (Objective, {"classifier": "gauss"}),
        (Objective, {"rho": 2}),
        (Objective, {"interpolation": 1}),
        (Objective, {"scoring_floor": -1}),
        (Fusion, {"scalers": [{"median": 0.0, "mad": 0.0}]}),
        (Fusion, {"scalers": [{"median": NAN, "mad": 1.0}]}),
        (Fusion, {"scalers": [{"median": 0.0}]}),
        (Fusion, {"scalers": [{"median": 0.0, "mad": 1.0}] * 1000}),
        (Fusion, {"threshold": None}),
        (Fusion, {"sharpness": 0}),
    ],
)
def test_a_description_that_nobody_wrote(kind: type, described: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        read_as(kind, described)


def test_nesting_numbers_and_text_have_bounds() -> None:
    deep: Any = 0
    for _ in range(20):
        deep = [deep]
    for value in (deep, HUGE, -HUGE, NAN, float("inf"), LONG):
        with pytest.raises(ValueError, match=r"nested|number|text"):
            check_values({"a": {"b": value}})
    check_values({"a": [1, 2.5, "text", None, True]})


def test_calibration_takes_its_arrays_from_the_tensors() -> None:
    arrays = {"scores": np.zeros(3), "peaks": np.zeros(3)}
    described = {"background_level": 0.5, "false_alarm_rate": 0.25}
    assert read_as(Calibration, described, **arrays).false_alarm_rate == 0.25
    with pytest.raises(ValueError, match="no 'scores'"):
        read_as(Calibration, {**described, "scores": [1]}, **arrays)
    assert {each.name for each in fields(Calibration)} == {*described, *arrays}

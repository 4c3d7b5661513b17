"""A header is checked value by value: type, range and how values fit each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import edit

from igd import IGD
from igd.data.geometry import Geometry
from igd.errors import UserError
from igd.inference.header import read_as
from igd.method.objective import OBJECTIVES, Objective
from igd.persistence.description import (
    check_parameters,
    check_provenance,
    read_scale_settings,
)
from igd.scales.fusion import Fusion, RobustScaler
from igd.scales.position_moments import unpacked
from igd.scales.recipes import RECIPES
from igd.scales.scale_settings import (
    BankSettings,
    PixelSettings,
    PositionSettings,
    ScaleSettings,
    WholeSettings,
)
from igd.training.fit import stored_parameters

HUGE, LONG, NAN = 10**400, "x" * 60_000, float("nan")
KNOWN: list[ScaleSettings] = [
    *(each for recipe in RECIPES.values() for each in (*recipe.small, *recipe.frozen_large)),
    PixelSettings(),
]


def written(described: Any) -> Any:
    """As JSON brings it back: tuples are lists."""
    return json.loads(json.dumps(described))


@pytest.mark.parametrize("settings", KNOWN, ids=lambda each: each.name)
def test_settings_come_back(settings: ScaleSettings) -> None:
    assert read_scale_settings(written(asdict(settings))) == settings


def test_the_rest_comes_back() -> None:
    for objective in OBJECTIVES.values():
        assert read_as(Objective, written(asdict(objective))) == objective
    fusion = Fusion([RobustScaler(-1.5, 0.2)], [], 2.5, 0.5)
    assert read_as(Fusion, written(asdict(fusion))) == fusion
    assert read_as(Geometry, {"side": 256, "fit": "crop"}) == Geometry(256, "crop")
    assert check_parameters(written(stored_parameters(IGD()))) == stored_parameters(IGD())


AUTOENCODER = RECIPES["fast"].frozen_large[1]
SCALES: list[tuple[ScaleSettings, str, list[Any]]] = [
    (AUTOENCODER, "name", ["../x", "", 1, LONG, None]),
    (AUTOENCODER, "patch", [0, -1, 1.5, 10**9, "64", True]),
    (AUTOENCODER, "downsampling", [-1, 8, HUGE, 0.5]),
    (AUTOENCODER, "stride", [0, -16, None, HUGE]),
    (AUTOENCODER, "inference_stride", [0, None]),
    (AUTOENCODER, "width", [0, 2000, None, [16]]),
    (AUTOENCODER, "latent_size", [0, 10**7]),
    (AUTOENCODER, "anomaly_share", [-0.1, 1.1, NAN, "0.5"]),
    (AUTOENCODER, "smoothing", [-1, NAN, float("inf")]),
    (AUTOENCODER, "start", ["", "warm", None]),
    (AUTOENCODER, "similarity", [None, [], {"window": 0}, {"weights": []}, {"weights": [2.0]}]),
    (AUTOENCODER, "training", [None, [], {"betas": [0.9]}, {"flip": 1}, {"surprise": 1}]),
    (PositionSettings(), "levels", [[], {}, [None], [{"name": "a"}], [[]] * 100]),
    (PositionSettings(), "top", [0, -1, 1.5, HUGE]),
    (PositionSettings(), "ridge", [-1, NAN]),
    (BankSettings(), "maps", [[], [-1], [0.5], [1] * 1000, None]),
    (BankSettings(), "nearest", [0, None, 10**12]),
    (WholeSettings(), "shrinkage", [-0.5, 2, "x"]),
    (WholeSettings(), "name", ["hole", None, ["whole"], {}]),
    (PixelSettings(), "background_power", [-1, 1e9]),
]


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [(settings, name, value) for settings, name, values in SCALES for value in values],
    ids=lambda each: str(getattr(each, "name", each))[:20],
)
def test_a_scale_that_nobody_wrote(settings: ScaleSettings, name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        read_scale_settings({**written(asdict(settings)), name: value})


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": "1"},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": None},
        {"scales": "global"},
        {"scales": [1]},
        {"recipe": []},
        {"fit_to": "stretch"},
        {"strict": 1},
        {"learning_rate": [0.1]},
        {"image_size": 1.5},
    ],
)
def test_parameters_that_nobody_gave(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the parameter"):
        check_parameters({**stored_parameters(IGD()), **changed})


@pytest.mark.parametrize(
    "changed",
    [{"made_by": 1}, {"images": "60"}, {"images": -1}, {"threads": True}, {"skipped": {}}],
)
def test_a_provenance_that_nobody_wrote(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="provenance"):
        check_provenance({"made_by": "igd", **changed})
    with pytest.raises(ValueError, match="what made it"):
        check_provenance({})


@pytest.mark.parametrize(
    ("header", "tensors"),
    [
        (lambda header: header["scales"].append(header["scales"][0]), None),
        (lambda header: header["scales"][0].update(patch=32, stride=1), None),
        (lambda header: header.update(backbone={}), None),
        (lambda header: header.update(backbone=False), None),
        (lambda header: header.update(channels=True), None),
        (None, lambda tensors: tensors.update(other=torch.zeros(1))),
        (None, lambda tensors: tensors.update({"local/mean": torch.zeros(1)})),
        (
            None,
            lambda tensors: tensors.update(
                {"calibration.examples": tensors["calibration.examples"][:0]}
            ),
        ),
        (
            None,
            lambda tensors: tensors.update({"calibration.example_scores": torch.zeros(1)}),
        ),
    ],
)
def test_parts_that_do_not_fit_each_other(
    fitted: IGD,
    tmp_path: Path,
    header: Callable[[dict[str, Any]], object] | None,
    tensors: Callable[[dict[str, Any]], object] | None,
) -> None:
    def nothing(_: object) -> None:
        return None

    fitted.save(tmp_path / "model.igd")
    with pytest.raises(UserError, match="damaged"):
        IGD.load(edit(tmp_path / "model.igd", header or nothing, tensors or nothing))


def test_a_triangle_is_not_made_for_a_shape_that_can_not_be() -> None:
    with pytest.raises(ValueError, match="wrong shape"):
        unpacked(torch.zeros(200_000, 1, 1), torch.zeros(1, 1), (1, 1))

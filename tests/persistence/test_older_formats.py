"""Files of earlier versions: their words in today's, and nothing lost."""

from dataclasses import asdict

import torch

from igd.method.objective import OBJECTIVES
from igd.persistence.description import read_scale_settings
from igd.persistence.model_file import FORMAT
from igd.persistence.older_formats import AUTOENCODER, PIXEL, SCALER, SHAPE_SINCE, upgraded
from igd.scales.fusion import RobustScaler
from igd.scales.recipes import RECIPES
from igd.scales.scale_settings import PixelSettings


def older(described: dict, words: dict[str, str]) -> dict:
    """Today's description in the words of format 4."""
    before = {now: then for then, now in words.items()}
    return {before.get(name, name): value for name, value in described.items()}


def header(**changed: object) -> dict:
    position = older(asdict(PixelSettings()), PIXEL)
    scaler = older(asdict(RobustScaler(1.0, 2.0)), SCALER)
    return {
        "format": 4,
        "parameters": {"scales": ["global", "pixel"]},
        "objective": {**asdict(OBJECTIVES["igd"]), "soft_boundary": 0.1},
        "scales": [older(asdict(RECIPES["fast"].frozen_large[0]), AUTOENCODER), position],
        "seen_by": {"backbone": "efficientnet_lite0", "side": 320},
        "units": [scaler],
        "map_units": None,
        "alarming": 2.5,
        "usual_heat": 0.3,
        "false_alarm_rate": 0.05,
        **changed,
    }


def test_the_words_of_format_4_become_todays() -> None:
    now, tensors = upgraded(
        header(), {"pixel/0.mean": torch.zeros(1), "global/radius": torch.zeros(())}
    )
    assert [read_scale_settings(each) for each in now["scales"]] == [
        RECIPES["fast"].frozen_large[0],
        PixelSettings(),
    ]
    assert now["fusion"] == {
        "scalers": [{"median": 1.0, "mad": 2.0}],
        "map_scalers": None,
        "threshold": 2.5,
    }
    assert now["calibration"] == {"background_level": 0.3, "false_alarm_rate": 0.05}
    assert "soft_boundary" not in now["objective"]
    assert tensors.keys() == {"pixel/0.mean"}


def test_images_of_an_older_file_were_never_rotated() -> None:
    described = older(asdict(PixelSettings()), PIXEL)
    del described["turn"]
    now, _ = upgraded(header(scales=[described]), {})
    assert read_scale_settings(now["scales"][0]) == PixelSettings(rotation=0.0)


def test_a_soft_boundary_scores_like_the_sphere_it_is() -> None:
    soft = {**asdict(OBJECTIVES["dsvdd"]), "classifier": "soft-boundary", "soft_boundary": 0.1}
    assert upgraded(header(objective=soft), {})[0]["objective"] == asdict(OBJECTIVES["dsvdd"])


def test_todays_format_stays_as_it_is() -> None:
    described, tensors = {"format": FORMAT, "anything": 1}, {"a": torch.zeros(1)}
    assert upgraded(described, tensors) == (described, tensors)


def test_a_backbone_that_was_shown_squares_has_a_shape() -> None:
    described = {"format": SHAPE_SINCE - 1, "backbone": {"backbone": "a", "side": 320}}
    assert upgraded(described, {})[0]["backbone"] == {"backbone": "a", "shape": [320, 320]}
    without = {"format": SHAPE_SINCE - 1, "backbone": None}
    assert upgraded(without, {})[0] == without

"""`igd compare`: two models, the same images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import stripes

from igd import IGD
from igd.cli import main


@pytest.fixture
def models(fitted: IGD, tmp_path: Path) -> list[str]:
    """A model, and the same with a threshold that nothing good exceeds."""
    paths = [tmp_path / "one.igd", tmp_path / "other.igd"]
    fitted.save(paths[0])
    other = IGD.load(paths[0])
    other.max_false_alarms = 0.9
    other.save(paths[1])
    return [str(path) for path in paths]


def test_the_same_ranking_and_other_verdicts(
    models: list[str], category: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *models, str(category), "--json", "--quiet"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["image_auroc_difference"] == 0
    assert said["interval_95"] == [0, 0]
    assert said["first"]["image_auroc"] == said["second"]["image_auroc"]
    assert said["differing"]
    for each in said["differing"]:
        assert not each["first"]["is_anomalous"]
        assert each["second"]["is_anomalous"]
        assert each["first"]["score"] == each["second"]["score"]
    assert main(["compare", *models, str(category), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "no difference in ranking beyond chance" in shown
    assert f"verdicts differ on {len(said['differing'])} of 20 images" in shown
    wrong = round(10 * said["second"]["false_alarm_rate"])
    assert f"{wrong} of 10" in shown


def test_test_sets_that_differ_are_refused(
    fitted: IGD, category: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "clean.igd")
    command = ["train", str(category), "-o", str(tmp_path / "dirty.igd"), "--quiet"]
    assert main([*command, "--contamination", "0.2"]) == 0
    capsys.readouterr()
    models = [str(tmp_path / "clean.igd"), str(tmp_path / "dirty.igd")]
    assert main(["compare", *models, str(category), "--quiet"]) == 2
    assert "different protocols" in capsys.readouterr().err


def test_normal_images_alone_have_no_ranking(fitted: IGD) -> None:
    from igd.data.sample import Sample
    from igd.evaluation.compare_models import compare_models

    samples = [Sample(str(n), array) for n, array in enumerate(stripes(4, seed=3))]
    compared = compare_models(fitted, fitted, samples)
    assert compared.difference is None
    assert "all 4 test images are normal" in compared.in_words
    assert not compared.differing


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["SET", "MODEL", "MODEL"], "the model comes first"),
        (["MODEL", "MODEL", "SET", "--seed", "1"], "has no effect without it"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    says: str,
    models: list[str],
    category: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [{"SET": str(category), "MODEL": models[0]}.get(each, each) for each in arguments]
    assert main(["compare", *given, "--quiet"]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1

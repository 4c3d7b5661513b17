"""A run sees no label, can be interrupted, and measures what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from conftest import spotted, stripes, write_images
from numpy.testing import assert_array_equal
from sklearn.metrics import roc_auc_score

from igd import UserError
from igd.benchmark.baselines import KernelDensity, OneClassSVM
from igd.benchmark.methods import InterpolatedGaussian, Method, Scored, Support
from igd.benchmark.run import Run
from igd.benchmark.suites import METHODS, find_method, plan
from igd.benchmark.trial import carry_out, promised_metrics
from igd.data.sample import Sample
from igd.errors import Interrupted

QUICK = {"recipe": "fast", "pretrain": "scratch", "steps": 4, "width": 4}


class Watched(InterpolatedGaussian):
    """IGD, with a record of what it was shown and what it returned."""

    made: ClassVar[list["Watched"]]

    def fit(self, images: Sequence[Sample]) -> None:
        self.made.append(self)
        self.shown = list(images)
        super().fit(images)

    def score(self, images: Sequence[Sample]) -> Iterator[Scored]:
        self.scored, self.outputs = list(images), []
        for scored in super().score(images):
            self.outputs.append(scored)
            yield scored


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    monkeypatch.setitem(METHODS, "watched", Watched)
    monkeypatch.setattr(Watched, "made", [], raising=False)
    return Watched.made


def only_run(suite: str, path: Path, method: str = "igd", normal: str | None = "0") -> Run:
    (run,) = plan(suite, path, QUICK, [normal] if normal else None, [method])
    return run


@pytest.mark.filterwarnings("ignore:.*model:")
def test_permuted_test_labels_change_neither_training_nor_scores(
    digits: Path, tmp_path: Path, watched: list[Watched]
) -> None:
    arrays = dict(np.load(digits))
    permuted = tmp_path / "permuted.npz"
    np.savez(
        permuted, **{**arrays, "y_test": np.random.default_rng(0).permutation(arrays["y_test"])}
    )
    results = [
        carry_out(only_run("mnist", path, "watched"), path, Support())
        for path in (digits, permuted)
    ]
    one, other = watched
    assert_array_equal(
        [sample.image for sample in one.shown], [sample.image for sample in other.shown]
    )
    weights, same = (each.detector.fitted_.scales[0].autoencoder.state_dict() for each in watched)
    assert all((weights[name] == same[name]).all() for name in weights)
    assert [each.score for each in one.outputs] == [each.score for each in other.outputs]
    for each, labels in zip(watched, (arrays["y_test"], np.load(permuted)["y_test"]), strict=True):
        expected = roc_auc_score(labels != 0, [scored.score for scored in each.outputs])
        assert results[watched.index(each)]["metrics"]["image_auroc"] == pytest.approx(expected)
    assert results[0]["metrics"] != results[1]["metrics"]  # the labels did matter, afterwards


@pytest.mark.filterwarnings("ignore:.*model:")
def test_a_method_is_shown_images_and_nothing_else(
    categories: Path, watched: list[Watched]
) -> None:
    result = carry_out(only_run("mvtec", categories, "watched", None), categories, Support())
    (method,) = watched
    assert (len(method.shown), len(method.scored)) == (60, 20)
    for number, sample in enumerate(method.scored):
        assert (sample.identifier, sample.kind, sample.label, sample.mask) == (
            str(number),
            "good",
            0,
            None,
        )
    assert result["images"] == {"training": 60, "normal": 10, "anomalous": 10}
    assert {
        "image_auroc",
        "accuracy_at_half",
        "pixel_auroc",
        "pixel_auroc_per_image",
        "aupro",
    } <= result["metrics"].keys()
    assert result["peak_memory_mb"] > 50
    assert result["versions"]["igd"]
    assert result["method"]["scales"] == ["global"]


@pytest.mark.filterwarnings("ignore:.*model:")
def test_an_interrupted_run_goes_on_from_its_checkpoint(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, checkpoint = only_run("mnist", digits), tmp_path / "run.checkpoint"
    whole = carry_out(run, digits, Support())
    steps = iter([False, False, True])
    with pytest.raises(Interrupted):
        carry_out(run, digits, Support(checkpoint, stop=lambda: next(steps)))

    from igd.method import m_step

    trained = []
    loss = m_step.autoencoder_loss
    monkeypatch.setattr(
        m_step, "autoencoder_loss", lambda *given: trained.append(1) or loss(*given)
    )
    resumed = carry_out(run, digits, Support(checkpoint))
    assert len(trained) == QUICK["steps"] - 3
    assert resumed["metrics"] == whole["metrics"]


@pytest.mark.parametrize("name", ["ocsvm", "kde"])
def test_classical_methods_tell_dark_from_bright(tmp_path: Path, name: str) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "mnist.npz"
    images = {
        each: rng.normal([[[60]]] * 20 + [[[180]]] * 20, 15, (40, 8, 8)).astype(np.uint8)
        for each in "ab"
    }
    labels = np.repeat([0, 1], 20)
    np.savez(path, x_train=images["a"], y_train=labels, x_test=images["b"], y_test=labels)
    result = carry_out(only_run("mnist", path, name), path, Support())
    assert result["metrics"]["image_auroc"] > 0.95
    # Their scores know no threshold.
    assert not {"accuracy_at_half", "false_alarm_rate"} & result["metrics"].keys()


@pytest.mark.parametrize("method", [OneClassSVM, KernelDensity])
def test_classical_methods_take_other_features(method: type[Method]) -> None:
    """What is far in the features is anomalous, whatever the pixels are."""

    class OnNames(method):  # type: ignore[misc, valid-type]
        def features(self, images: Sequence[Sample]) -> np.ndarray:
            return np.array([[float(sample.identifier), 1.0] for sample in images])

    grey = np.zeros((4, 4), dtype=np.uint8)
    made = OnNames({}, 0, Support())
    made.fit([Sample(str(n / 10), grey) for n in range(30)])
    near, far = made.score([Sample("1.5", grey), Sample("90", grey)])
    assert far.score > near.score


def test_unknown_methods_and_settings(digits: Path) -> None:
    with pytest.raises(
        UserError, match="no method is called 'patchcore'; there are igd, igd-authors"
    ):
        find_method("patchcore")
    with pytest.raises(UserError, match="no recipe is called 'slow'; there are"):
        plan("mnist", digits, {**QUICK, "recipe": "slow"})


OWN = """
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from igd.benchmark.methods import Method, Scored


@dataclass
class Brightness:
    value: float


class Brightest(Method):
    def fit(self, images):
        self.brightest = Brightness(max(np.max(sample.read()) for sample in images))

    def score(self, images):
        return (Scored(float(np.mean(sample.read()))) for sample in images)
"""


def test_a_method_of_one_s_own_file(digits: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    run = only_run("mnist", digits, f"{file}:Brightest")
    assert "image_auroc" in carry_out(run, digits, Support())["metrics"]
    copy = tmp_path / "copy.py"
    copy.write_text(OWN)
    changed = tmp_path / "changed.py"
    changed.write_text(OWN + "# changed\n")
    same, other = (only_run("mnist", digits, f"{path}:Brightest") for path in (copy, changed))
    assert same.config_hash == run.config_hash
    assert other.config_hash != run.config_hash
    with pytest.raises(
        UserError, match=r"changed\.py:Brightest: has changed since this run was planned"
    ):
        carry_out(replace(other, config_hash=run.config_hash), digits, Support())


def test_code_that_changed_after_planning_is_not_run(digits: Path) -> None:
    run = replace(only_run("mnist", digits, "ocsvm"), made_by="igd 0.1.0, code 0123")
    with pytest.raises(UserError, match="igd: has changed since this run was planned"):
        carry_out(run, digits, Support())


def test_misses_are_counted_at_rates_that_can_be_promised() -> None:
    """99 held-out images promise 1 % at best, 9 images 10 %; more alarms mean fewer misses."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 500)
    scores = rng.normal(labels * 1.5)
    held_out = rng.normal(size=99)
    found = promised_metrics(labels, scores, held_out)
    rates = [found[f"miss_rate_at_{percent}_percent"] for percent in (1, 5, 10)]
    assert rates == sorted(rates, reverse=True)
    assert found["miss_rate_at_1_percent"] == np.mean(scores[500:] <= held_out.max())
    assert found["false_alarm_rate_at_1_percent"] == np.mean(scores[:500] > held_out.max())
    assert promised_metrics(labels, scores, held_out[:9]).keys() == {
        "miss_rate_at_10_percent",
        "false_alarm_rate_at_10_percent",
    }


@pytest.mark.parametrize(
    ("contents", "wanted", "says"),
    [
        (
            None,
            "Mine",
            r"own\.py: no such file; FILE\.py:CLASS names a class in a file of your own",
        ),
        ("1 / 0", "Mine", r"own\.py: can't be run \(ZeroDivisionError: division by zero\)"),
        ("def", "Mine", r"own\.py: can't be run \(SyntaxError"),
        (
            OWN,
            "Brightness",
            r"own\.py: defines no method 'Brightness', a class made from "
            r"igd\.benchmark\.methods\.Method",
        ),
        (
            "from igd.benchmark.baselines import OneClassSVM",
            "OneClassSVM",
            "defines no method 'OneClassSVM'",
        ),
    ],
)
def test_files_that_hold_no_method(
    tmp_path: Path, contents: str | None, wanted: str, says: str
) -> None:
    if contents is not None:
        (tmp_path / "own.py").write_text(contents)
    with pytest.raises(UserError, match=says):
        find_method(f"{tmp_path / 'own.py'}:{wanted}")


@pytest.mark.parametrize(("name", "least"), [("ocsvm-imagenet", 1.0), ("kde-imagenet", 0.96)])
def test_classical_methods_read_a_frozen_network(digits: Path, name: str, least: float) -> None:
    result = carry_out(only_run("mnist", digits, name), digits, Support())
    assert result["metrics"]["image_auroc"] >= least  # where stripes on pixels defeat them


def test_a_mask_that_can_not_be_used_costs_its_image_alone(tmp_path: Path) -> None:
    write_images(tmp_path / "bottle" / "train" / "good", stripes(20))
    write_images(tmp_path / "bottle" / "test" / "good", stripes(4, seed=1))
    write_images(tmp_path / "bottle" / "test" / "spot", spotted(stripes(4, seed=2)))
    masks = np.zeros((4, 32, 32), dtype=np.uint8)
    masks[:3, 12:20, 20:28] = 255
    write_images(tmp_path / "bottle" / "ground_truth" / "spot", masks)
    result = carry_out(only_run("mvtec", tmp_path, normal=None), tmp_path, Support())
    (reason,) = result["unusable_masks"].values()
    assert "marks no pixel" in reason
    assert result["metrics"]["pixel_auroc"] > 0.5

"""The detector as its users meet it."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import spotted, stripes, write_images
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils import estimator_checks

from igd import IGD, Prediction
from igd.errors import Interrupted, UserError
from igd.method.objective import Objective
from igd.pretraining import contrastive
from igd.pretraining.contrastive import Contrast
from igd.scales.recipes import find_recipe
from igd.training import crossfit
from igd.training.extract import Extraction


def test_finds_and_locates_what_it_never_saw(fitted: IGD) -> None:
    normal, anomalous = (
        fitted.predict(stripes(40, seed=8)),
        fitted.predict(spotted(stripes(40, seed=9))),
    )
    scores = [each.score for each in (*normal, *anomalous)]
    assert roc_auc_score([0] * 40 + [1] * 40, scores) > 0.8
    peaks = [divmod(int(each.map.argmax()), 32) for each in anomalous]
    inside = [10 <= row < 22 and 18 <= column < 30 for row, column in peaks]
    assert np.mean(inside) > 0.9


def test_scores_live_between_zero_and_one_and_are_not_constant(fitted: IGD) -> None:
    scores = np.array([each.score for each in fitted.predict(stripes(20, seed=8))])
    assert ((scores >= 0) & (scores <= 1)).all()
    assert len(np.unique(scores)) > 15


def test_score_is_the_weighted_mean_of_its_terms(fitted: IGD) -> None:
    prediction = fitted.predict(stripes(1, seed=8)[0])
    assert isinstance(prediction, Prediction)
    assert prediction.terms.keys() == {"global.reconstruction", "global.anomaly"}
    reconstruction, anomaly = (
        prediction.terms[f"global.{name}"] for name in ("reconstruction", "anomaly")
    )
    assert prediction.score == pytest.approx(0.75 * reconstruction + 0.25 * anomaly, abs=1e-6)


def test_global_and_local_are_one_detector(fitted_large: IGD) -> None:
    image = stripes(1, side=192, seed=8, colour=True)
    pixels = torch.from_numpy(image).permute(0, 3, 1, 2)
    score, anomaly_map, terms = fitted_large.fitted_.score(pixels)
    outputs = [scale.score(pixels, None) for scale in fitted_large.fitted_.scales]
    scores = [
        sum(value * weight for value, weight in zip(each.parts, each.weights, strict=True))
        for each in outputs
    ]
    torch.testing.assert_close(score, (scores[0] + scores[1]) / 2)
    torch.testing.assert_close(anomaly_map, (outputs[0].maps[0] + outputs[1].maps[0]) / 2)
    reconstruction, anomaly = outputs[1].terms["reconstruction"], outputs[1].terms["anomaly"]
    torch.testing.assert_close(scores[1], 0.9 * reconstruction + 0.1 * anomaly)
    assert len(terms) == 4


@pytest.mark.parametrize("size", [(192, 192), (300, 211), (97, 405)])
def test_map_has_the_size_of_the_original(fitted_large: IGD, size: tuple[int, int]) -> None:
    width, height = size
    image = np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    assert fitted_large.predict(image).map.shape == (height, width)


def test_shuffling_a_batch_permutes_its_scores(fitted: IGD) -> None:
    images = stripes(40, seed=8)
    order = np.random.default_rng(0).permutation(40)
    scores = fitted.score_samples(images)
    np.testing.assert_allclose(
        fitted.score_samples(images[order]), scores[order], rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(
        [fitted.predict(image).score for image in images[:5]], -scores[:5], atol=1e-6
    )


def test_predict_score_samples_and_decision_function_agree(fitted: IGD) -> None:
    images = np.concatenate([stripes(20, seed=8), spotted(stripes(20, seed=9))])
    predictions, scores, decisions = (
        fitted.predict(images),
        fitted.score_samples(images),
        fitted.decision_function(images),
    )
    np.testing.assert_array_equal(scores, [-each.score for each in predictions])
    np.testing.assert_array_equal(decisions < 0, [each.is_anomalous for each in predictions])
    np.testing.assert_array_equal(
        [each.p_value <= fitted.false_alarm_rate_ for each in predictions], decisions < 0
    )


def test_folder_file_list_and_array_agree(fitted: IGD, tmp_path: Path) -> None:
    images = stripes(5, seed=8)
    folder = write_images(tmp_path / "new", images)
    expected = fitted.score_samples(images)
    np.testing.assert_array_equal(fitted.score_samples(folder), expected)
    np.testing.assert_array_equal(fitted.score_samples(sorted(folder.iterdir())), expected)
    assert fitted.predict(folder / "000.png").score == pytest.approx(-expected[0], abs=2e-6)


def test_calibration_images_are_not_trained_on(fitted: IGD) -> None:
    assert fitted.provenance_["images"] == 160
    assert fitted.provenance_["calibration_images"] == len(fitted.calibration_.scores) == 40
    assert fitted.false_alarm_rate_ == 0.05


class StopAfter:
    def __init__(self, steps: int) -> None:
        self.left = steps

    def __call__(self) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize(
    ("steps", "pretrain"), [(3, "scratch"), (7, "scratch"), (4, "imagenet")]
)  # global, local, global
def test_stopped_and_resumed_equals_uninterrupted(
    tmp_path: Path, steps: int, pretrain: str
) -> None:
    images = stripes(8, side=192, colour=True)
    settings = {
        "pretrain": pretrain,
        "scales": ("global", "local"),
        "steps": 5,
        "width": 2,
        "image_size": 192,
    }
    checkpoint = tmp_path / "run.checkpoint"
    with pytest.warns(UserWarning, match="model:"):
        whole = IGD(**settings).fit(images)
        with pytest.raises(Interrupted):
            IGD(**settings).fit(images, checkpoint=checkpoint, stop=StopAfter(steps))
        assert checkpoint.exists()
        resumed = IGD(**settings).fit(images, checkpoint=checkpoint, resume=True)
    for one, other in zip(whole.fitted_.scales, resumed.fitted_.scales, strict=True):
        for (name, value), again in zip(
            one.autoencoder.state_dict().items(),
            other.autoencoder.state_dict().values(),
            strict=True,
        ):
            assert torch.equal(value, again), name
        assert torch.equal(one.history, other.history)
    np.testing.assert_array_equal(whole.calibration_.scores, resumed.calibration_.scores)


@pytest.mark.parametrize(
    "stop_at", [2, 4, 5]
)  # in pre-training, while its encoder looks at the images, and in training
def test_pretraining_is_resumed_too(
    tmp_path: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contrastive, "FAST", Contrast(steps=3, batch_size=4, narrow=True))
    settings, checkpoint = (
        {"pretrain": "contrastive", "scales": ("global",), "steps": 3, "width": 2},
        tmp_path / "run.checkpoint",
    )
    with pytest.warns(UserWarning, match="model:"):
        whole = IGD(**settings).fit(stripes(10))
        with pytest.raises(Interrupted, match="go on with --resume"):
            IGD(**settings).fit(stripes(10), checkpoint=checkpoint, stop=StopAfter(stop_at))
        resumed = IGD(**settings).fit(stripes(10), checkpoint=checkpoint, resume=True)
    np.testing.assert_array_equal(whole.calibration_.scores, resumed.calibration_.scores)


def test_an_interrupted_second_fit_leaves_the_first(tmp_path: Path) -> None:
    detector = IGD().fit(stripes(10))
    expected = detector.score_samples(stripes(5))
    with pytest.raises(Interrupted):
        detector.fit(
            stripes(10, seed=1), checkpoint=str(tmp_path / "run.checkpoint"), stop=StopAfter(1)
        )
    np.testing.assert_array_equal(detector.score_samples(stripes(5)), expected)


def test_few_images_leave_room_in_the_score_for_all_others() -> None:
    """Fewer images than directions: all others are far from mu, but not so far that l_h can't tell
    them apart.
    """
    with pytest.warns(UserWarning, match="model:"):
        detector = IGD(scales=("global",), steps=3, width=4).fit(stripes(10))
    terms = [
        prediction.terms["global.anomaly"] for prediction in detector.predict(stripes(30, seed=1))
    ]
    assert len(set(terms)) == 30
    assert 0.3 < np.median(terms) < 0.9


def test_epochs_are_passes_over_the_images() -> None:
    with pytest.warns(UserWarning, match="model:"):
        detector = IGD(pretrain="scratch", epochs=2, width=2).fit(np.tile(stripes(20), (50, 1, 1)))
    assert len(detector.fitted_.scales[0].history) == 2 * 50  # 800 training images in batches of 16


def test_terms_are_those_of_the_objective() -> None:
    for objective, expected in (("rec", {"global.reconstruction"}), ("dsvdd", {"global.anomaly"})):
        detector = IGD(objective=objective, pretrain="scratch", steps=30, width=4).fit(stripes(20))
        assert detector.predict(stripes(1)[0]).terms.keys() == expected


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted):
        IGD().fit(stripes(10), checkpoint=checkpoint, stop=StopAfter(1))
    with pytest.raises(UserError, match=r"with other images; .* or delete this file"):
        IGD().fit(stripes(10, seed=1), checkpoint=checkpoint, resume=True)
    with pytest.raises(
        UserError, match=r"with other settings \(seed was 0\); .* or delete this file"
    ):
        IGD(seed=1).fit(stripes(10), checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"recipe": "slow"}, "no recipe"),
        ({"objective": "svm"}, "no objective"),
        ({"scales": ("patch",)}, "no scale is called patch"),
        ({"image_size": 100, "scales": ("global",)}, "too short for the global model.*162"),
        ({"image_size": 200, "scales": ("global",)}, "multiple of 64"),
        ({"image_size": 16, "scales": ("global",)}, "too short for the global model.*17"),
        ({"fit_to": "stretch"}, "letterbox"),
        ({"steps": 0}, "positive number"),
        ({"calibration": 1.0}, "between 0 and 1"),
        ({"batch_size": 1}, "two images"),
        ({"learning_rate": float("nan")}, "positive number"),
        ({"image_size": 0}, "between 1 and"),
        ({"image_size": 8192}, "between 1 and"),
        ({"seed": -1}, "seed is -1; it must lie between 0 and"),
        ({"device": "abacus", "scales": ("global",)}, "can't be used here"),
        ({"max_false_alarms": 0.001}, "needs at least 999 calibration images"),
    ],
)
def test_impossible_parameters_are_refused_before_training(parameters: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        IGD(**parameters).fit(stripes(20))


def test_too_few_or_too_small_images() -> None:
    with pytest.raises(UserError, match="too few"):
        IGD().fit(stripes(1))
    with pytest.raises(UserError, match="16x16 pixels are fewer than the model can read"):
        IGD(scales=("global",)).fit(stripes(5, side=16))
    with pytest.raises(UserError, match="6x6 pixels are fewer than"):
        IGD().fit(stripes(5, side=6))


def test_unfitted_says_so() -> None:
    for method in ("predict", "score_samples", "decision_function", "save"):
        with pytest.raises(NotFittedError):
            getattr(IGD(), method)("anything")


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_mixin_order,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_estimators_unfitted,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learns_own_checks(check) -> None:
    check("IGD", IGD())


def test_scikit_learns_contract_on_images() -> None:
    """What scikit-learn's remaining checks ask for, on the image-shaped input they do not have."""
    images = stripes(20)
    before = images.copy()
    estimator = IGD()
    parameters = estimator.get_params()
    assert estimator.fit(images, y=None) is estimator
    again = clone(estimator).fit(images)
    assert estimator.get_params() == parameters
    np.testing.assert_array_equal(images, before)
    np.testing.assert_array_equal(estimator.score_samples(images), again.score_samples(images))
    learnt = {name for name in vars(estimator) if name not in parameters}
    assert learnt
    assert all(name.endswith("_") and not name.startswith("_") for name in learnt)
    with pytest.raises(UserError, match="reshape your data"):
        clone(estimator).fit(images.reshape(20, -1))
    with pytest.raises(UserError, match="NaN"):
        clone(estimator).fit(np.full((20, 32, 32), np.nan))


@pytest.mark.parametrize("rate", [None, 0.2])
def test_a_half_is_where_alarms_begin(rate: float | None) -> None:
    detector = IGD(max_false_alarms=rate).fit(stripes(60))
    assert detector.threshold_ == 0.5
    predictions = detector.predict(
        np.concatenate([stripes(20, seed=1), spotted(stripes(20, seed=2))])
    )
    assert {prediction.is_anomalous for prediction in predictions} == {True, False}
    assert all(prediction.is_anomalous == (prediction.score > 0.5) for prediction in predictions)


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_extraction_is_resumed_too(
    tmp_path: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default recipe trains no network; what its one pass has computed is not lost either."""
    monkeypatch.setattr("igd.training.extract.AT_ONCE", 10)
    images, checkpoint = stripes(30, side=96, colour=True), tmp_path / "run.checkpoint"
    whole = IGD(image_size=96).fit(images)
    with pytest.raises(Interrupted, match="go on with --resume"):
        IGD(image_size=96).fit(images, checkpoint=checkpoint, stop=StopAfter(stop_at))
    extracted = []
    extract = Extraction._extract
    monkeypatch.setattr(
        Extraction, "_extract", lambda self, *given: (extracted.append(1), extract(self, *given))[1]
    )
    resumed = IGD(image_size=96).fit(images, checkpoint=checkpoint, resume=True)
    assert len(extracted) == 3 - (stop_at - 1)
    for one, other in zip(whole.fitted_.scales, resumed.fitted_.scales, strict=True):
        for name, value in one.tensors().items():
            assert torch.equal(value, other.tensors()[name]), name
    np.testing.assert_array_equal(whole.calibration_.scores, resumed.calibration_.scores)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (
            {"objective": "dsvdd", "steps": 9},
            r"objective='dsvdd', steps=9 have no effect: .*position",
        ),
        ({"width": 8}, r"width=8 has no effect: .*--scales global,local"),
        ({"precision": "bf16-mixed"}, "precision='bf16-mixed' has no effect"),
        (
            {"pretrain": "scratch", "backbone": "resnet18"},
            "backbone='resnet18' has no effect: .*scratch",
        ),
        ({"scales": ("global",), "steps": 3, "epochs": 2}, "epochs and steps both"),
    ],
)
def test_parameters_without_effect_are_refused(given: dict[str, object], named: str) -> None:
    with pytest.raises(UserError, match=named):
        IGD(image_size=192, **given).fit(stripes(6, side=96, colour=True))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"seed": 3_000_000_000}, "seed is 3000000000; it must lie between 0 and 2147483648"),
        ({"seed": 1.5}, r"seed is 1\.5; it must be a whole number"),
        ({"steps": "many"}, "steps is 'many'; it must be a whole number"),
        ({"max_false_alarms": "0.1"}, "max_false_alarms is '0.1'; it must be a number"),
        ({"combination": "Calibrated"}, "combination is 'Calibrated'; there are calibrated, sum"),
        ({"precision": "16-mixed"}, "there are 32-true, bf16-mixed"),
        ({"fit_to": "stretch"}, "fit_to is 'stretch'; there are resize, crop, letterbox"),
        (
            {"combination": "sum"},
            "for the paper's scores, and position, embedding measure",
        ),
        ({"image_size": 1}, "images of 1x1 pixels are too small for the scale position"),
    ],
)
def test_parameters_that_can_not_be_are_refused(given: dict[str, object], named: str) -> None:
    """Rather than stored in a model file that then can't be read."""
    with pytest.raises(UserError, match=named):
        IGD(**given).fit(stripes(6))


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    detector = IGD(seed=np.int64(3), image_size=np.int32(32), max_false_alarms=np.float32(0.25))
    detector.fit(stripes(6)).save(tmp_path / "model.igd")
    assert IGD.load(tmp_path / "model.igd").get_params()["seed"] == 3
    assert detector.set_params(seed=7).identity_["seed"] == 3  # what made it, not what would


@pytest.mark.filterwarnings("ignore:global model")
def test_a_map_beside_a_score_counts_for_nothing() -> None:
    """Up to 64 pixels, `position` has a map and no part of the score."""
    images = stripes(12)
    alone, both = (
        IGD(scales=scales, steps=2, width=4).fit(images)
        for scales in (("global",), ("global", "position"))
    )
    assert both.predict(images[0]).score == alone.predict(images[0]).score


def test_copies_of_one_image() -> None:
    image, other = stripes(2)
    with pytest.raises(UserError, match="all 12 images are the same to the pixel"):
        IGD().fit(np.stack([image] * 12))
    assert IGD().fit(np.stack([image] * 11 + [other])).predict(other).score >= 0


def test_cross_fitting_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    folds: list[int] = []
    taught = crossfit.distances_of
    monkeypatch.setattr(
        crossfit, "distances_of", lambda *given: (folds.append(1), taught(*given))[1]
    )
    with pytest.raises(Interrupted):
        IGD().fit(stripes(12), stop=lambda: len(folds) == 2)
    assert len(folds) == 2


@pytest.mark.parametrize(
    "way",
    [copy.deepcopy, lambda detector: pickle.loads(pickle.dumps(detector))],  # noqa: S301
)
def test_a_fitted_detector_can_be_copied_and_pickled(fitted: IGD, way) -> None:
    other = way(fitted)
    assert other.get_params() == fitted.get_params()
    images = stripes(5, seed=8)
    np.testing.assert_array_equal(other.score_samples(images), fitted.score_samples(images))
    assert way(IGD(steps=3)).get_params() == IGD(steps=3).get_params()


def test_another_rate_moves_the_threshold_of_a_fitted_detector(fitted: IGD) -> None:
    detector = copy.deepcopy(fitted)
    images = stripes(30, seed=6)
    before = detector.predict(images)
    detector.max_false_alarms = 0.3
    assert detector.false_alarm_rate_ == detector.get_params()["max_false_alarms"] == 0.3
    assert detector.threshold_ < fitted.threshold_
    assert detector.pixel_threshold_ < fitted.pixel_threshold_
    for one, other in zip(before, detector.predict(images), strict=True):
        assert (one.score, one.p_value) == (other.score, other.p_value)
        assert other.is_anomalous == (other.p_value <= 0.3 + 1e-12)
    again = copy.deepcopy(detector)  # by way of the model file
    assert (again.max_false_alarms, again.threshold_) == (0.3, detector.threshold_)
    detector.set_params(max_false_alarms=None)
    assert detector.false_alarm_rate_ == 0.05
    with pytest.raises(UserError, match="needs at least 999 calibration images"):
        detector.max_false_alarms = 0.001
    assert detector.max_false_alarms is None
    assert clone(detector).max_false_alarms is None


def test_scikit_learns_labels_beside_the_rich_result(fitted: IGD) -> None:
    images = np.concatenate([stripes(5, seed=31), spotted(stripes(5, seed=32))])
    outliers = fitted.as_outlier_detector()
    labels = outliers.predict(images)
    assert labels.tolist() == [-1 if each.is_anomalous else 1 for each in fitted.predict(images)]
    assert set(labels.tolist()) == {-1, 1}
    np.testing.assert_allclose(
        outliers.score_samples(images) - outliers.offset_, outliers.decision_function(images)
    )
    assert is_outlier_detector(outliers)
    with pytest.raises(NotFittedError):
        clone(outliers).predict(images)


def test_fit_predict_and_values_as_parameters() -> None:
    objective = Objective(rho=0.5, interpolation=False)
    quick = replace(find_recipe("fast"), name="quick", combination="sum")
    detector = IGD(recipe=quick, objective=objective, pretrain="scratch", steps=2, width=2)
    with pytest.warns(UserWarning, match="model:"):
        outliers = clone(detector.as_outlier_detector())
        labels = outliers.fit_predict(stripes(40))
    assert set(labels.tolist()) <= {-1, 1}
    learnt = pickle.loads(pickle.dumps(outliers.detector_))  # noqa: S301 - as joblib does
    assert learnt.fitted_.objective == learnt.objective == objective
    assert learnt.fitted_.parameters["objective"] == "custom"
    assert learnt.fitted_.parameters["recipe"] == learnt.recipe.name == "quick"

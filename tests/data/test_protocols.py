"""Protocols: what they take, what they leave, and that a model's test set holds nothing it was
trained on.
"""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from igd.data.dataset import Dataset
from igd.data.protocols import (
    apply_protocols,
    contamination,
    one_class,
    repeat_for_testing,
    training_fraction,
    warn_of_learnt_anomalies,
)
from igd.data.sample import Sample
from igd.errors import DataWarning, UserError

IMAGE = np.zeros((9, 9), dtype=np.uint8)


@pytest.fixture
def digits() -> Dataset:
    samples = [
        Sample(f"{split} {number}", IMAGE, str(number % 10), split=split)
        for split, count in (("train", 500), ("test", 200))
        for number in range(count)
    ]
    return Dataset("digits", samples, "digits.npz", tuple("0123456789"))


@pytest.fixture
def threes(digits: Dataset) -> Dataset:
    return one_class(digits, "3")


def names(samples: list[Sample]) -> set[str]:
    return {sample.identifier for sample in samples}


def test_one_class_trains_on_itself_and_tests_on_all(digits: Dataset, threes: Dataset) -> None:
    assert names(threes.training_samples()) == {f"train {number}" for number in range(3, 500, 10)}
    assert names(threes.test_samples()) == names(digits.test)
    assert all(sample.label == (sample.kind != "3") for sample in threes.samples)
    assert sum(sample.label for sample in threes.test) == 180
    assert digits.classes  # untouched


def test_one_class_of_a_set_that_says_what_is_normal() -> None:
    mask = np.ones((9, 9), dtype=bool)
    dataset = Dataset("it", [Sample("a", IMAGE), Sample("b", IMAGE, "dent", 1, mask)], "it")
    turned = one_class(dataset, "dent")
    assert [(sample.label, sample.mask is None) for sample in turned.test] == [(1, True), (0, True)]


def test_fractions_are_nested_and_seeded(threes: Dataset) -> None:
    kept = {
        share: names(training_fraction(threes, share, seed=5).train) for share in (0.2, 0.6, 1.0)
    }
    assert [len(each) for each in kept.values()] == [10, 30, 50]
    assert kept[0.2] < kept[0.6] < kept[1.0]
    assert names(training_fraction(threes, 0.2, seed=5).train) == kept[0.2]
    assert names(training_fraction(threes, 0.2, seed=6).train) != kept[0.2]
    assert training_fraction(threes, 0.2).test == threes.test


@pytest.mark.parametrize(("share", "moved"), [(0.01, 2), (0.05, 9), (0.1, 18), (0.001, 1)])
def test_contamination_moves_a_share_of_the_test_anomalies(
    threes: Dataset, share: float, moved: int
) -> None:
    spoilt = contamination(threes, share, seed=2)
    added = names(spoilt.training_samples()) - names(threes.train)
    assert len(added) == moved
    assert names(spoilt.test) == names(threes.test) - added
    assert {sample.label for sample in spoilt.train if sample.identifier in added} == {1}
    assert spoilt.steps[-1].moved == [
        sample.identifier for sample in threes.test if sample.identifier in added
    ]
    assert sum(not sample.label for sample in spoilt.test) == 20


def test_smaller_contaminations_are_among_larger_ones(threes: Dataset) -> None:
    few, many = (set(contamination(threes, share, seed=1).steps[-1].moved) for share in (0.05, 0.1))
    assert few < many
    assert set(contamination(threes, 0.05, seed=2).steps[-1].moved) != few


def test_the_record_says_what_was_done_and_is_json(digits: Dataset) -> None:
    used = apply_protocols(digits, normal_class="3", fraction=0.2, contaminated=0.1, seed=4)
    recorded = [step.to_json() for step in used.steps]
    assert json.loads(json.dumps(recorded)) == recorded
    assert [(step["protocol"], step["value"], step["seed"]) for step in recorded] == [
        ("one-class", "3", None),
        ("fraction", 0.2, 4),
        ("contamination", 0.1, 4),
    ]
    assert len(recorded[2]["moved"]) == 18
    assert len(used.train) == 10 + 18
    assert apply_protocols(digits) is digits


def test_a_model_is_tested_on_nothing_it_was_trained_on(digits: Dataset) -> None:
    used = apply_protocols(digits, normal_class="3", fraction=0.2, contaminated=0.1, seed=4)
    recorded = json.loads(json.dumps([step.to_json() for step in used.steps]))
    repeated = repeat_for_testing(digits, recorded)
    assert repeated.test_samples() == used.test_samples()
    assert names(repeated.test).isdisjoint(names(used.train))


def test_names_in_the_record_do_not_depend_on_where_the_data_set_lies() -> None:
    def at(place: str) -> Dataset:
        kinds = [("good", 0, "train"), ("good", 0, "test"), *[("dent", 1, "test")] * 10]
        samples = [
            Sample(f"{place}/{split}/{n}.png", IMAGE, kind, label, None, split)
            for n, (kind, label, split) in enumerate(kinds)
        ]
        return Dataset("bottle", samples, place)

    recorded = [step.to_json() for step in contamination(at("/here/bottle"), 0.3).steps]
    assert all(name.startswith("test/") for name in recorded[0]["moved"])
    assert len(repeat_for_testing(at("bottle"), recorded).test_samples()) == 11 - 3


def test_another_data_set_is_not_tested_as_if_it_were_the_same(threes: Dataset) -> None:
    recorded = [step.to_json() for step in contamination(threes, 0.1).steps]
    other = replace(threes, samples=threes.samples[:-100])
    with pytest.raises(
        UserError,
        match=r"digits.npz: \d+ of the 18 anomalous images .* not among its test "
        r".*--contamination 0",
    ):
        repeat_for_testing(other, recorded)
    folder = Dataset("parts", [Sample("a", IMAGE), Sample("b", IMAGE, "dent", 1)], "parts")
    assert repeat_for_testing(folder, recorded[:1]) is folder
    assert repeat_for_testing(folder, None) is folder


@pytest.mark.parametrize(
    "recorded",
    [3, [3], [{"protocol": "one-class"}], [{"protocol": 1, "value": 1}], [{"surprise": 1}]],
)
def test_a_record_that_makes_no_sense(digits: Dataset, recorded: object) -> None:
    with pytest.raises(UserError, match="the file is damaged"):
        repeat_for_testing(digits, recorded)


def test_impossible_protocols(digits: Dataset, threes: Dataset) -> None:
    with pytest.raises(UserError, match=r"digits.npz: no class is called '10'; there are 0, 1, 2"):
        one_class(digits, "10")
    for share in (0, 1.1, float("nan")):
        with pytest.raises(UserError, match=r"a fraction of .* is impossible; give the share"):
            training_fraction(threes, share)
    for share in (-0.1, 1, float("nan")):
        with pytest.raises(UserError, match=r"a contamination of .* is impossible; give the share"):
            contamination(threes, share)
    with pytest.raises(UserError, match="would take all of its 180 anomalous test images"):
        contamination(threes, 0.999)
    with pytest.raises(UserError, match="say which one is normal"):
        training_fraction(digits, 0.2)


def test_testing_on_what_was_learnt_is_said(threes: Dataset) -> None:
    dirty = contamination(threes, 0.1, seed=1)
    recorded = [step.to_json() for step in dirty.steps]
    with pytest.warns(DataWarning, match="learnt from 18 of the anomalous test images"):
        warn_of_learnt_anomalies(threes, recorded)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_learnt_anomalies(dirty, recorded)
        warn_of_learnt_anomalies(threes, None)

"""What labels say."""

import pytest

from igd.data.labels import read_labels
from igd.errors import UserError


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0", "1", "0"], ([0, 1, 0], ())),
        (["normal", "anomalous"], ([0, 1], ())),
        (["Good", "scratch", "dent"], ([0, 1, 1], ())),
        (["abnormal"], ([1], ())),
        (["0"], ([0], ())),
        (["10", "2", "0"], ([0, 0, 0], ("0", "2", "10"))),
        (["dog", "cat"], ([0, 0], ("cat", "dog"))),
    ],
)
def test_meaning(labels: list[str], expected: tuple[list[int], tuple[str, ...]]) -> None:
    assert read_labels(labels, "it") == expected


def test_unknown_and_missing_labels() -> None:
    with pytest.raises(
        UserError, match="it: the label 2 is unknown beside good; use numbers or names"
    ):
        read_labels(["good", "2"], "it")
    with pytest.raises(UserError, match="it: an image has no label; write good"):
        read_labels(["good", ""], "it")

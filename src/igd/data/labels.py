"""What a label says: normal or anomalous, or one class of several."""

from __future__ import annotations

from collections.abc import Sequence

from igd.errors import UserError

NORMAL_NAMES = ("good", "normal")
ANOMALOUS_NAMES = ("abnormal", "anomalous")


def is_normal(label: str) -> bool:
    return label.lower() in (*NORMAL_NAMES, "0")


def read_labels(labels: Sequence[str], described: str) -> tuple[list[int], tuple[str, ...]]:
    """0 or 1 for each label; and where no label says what is normal, the classes to choose from.

    >>> read_labels(["good", "scratch"], "parts.csv")
    ([0, 1], ())
    >>> read_labels(["cat", "dog", "cat"], "pets.csv")
    ([0, 0, 0], ('cat', 'dog'))
    """
    found = sorted(set(labels), key=lambda label: (len(label) if label.isdecimal() else 0, label))
    numbers = [label for label in found if label.isdecimal()]
    names = [label for label in found if not label.isdecimal()]
    if "" in names:
        raise UserError(
            f"{described}: an image has no label; write good, or the name of its defect or class"
        )
    if numbers and names:
        raise UserError(
            f"{described}: the label {numbers[0]} is unknown beside {names[0]}; use numbers or "
            f"names for all images, not both"
        )
    says_what_is_normal = set(found) <= {"0", "1"} or any(
        name.lower() in NORMAL_NAMES + ANOMALOUS_NAMES for name in names
    )
    if not says_what_is_normal:
        return [0] * len(labels), tuple(found)
    return [int(not is_normal(label)) for label in labels], ()

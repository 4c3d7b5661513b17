"""Images that belong together: by pattern, by given values, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from conftest import stripes, write_images

from igd.data.groups import check_apart, group_numbers, with_groups
from igd.data.reading import read_dataset
from igd.data.sample import Sample
from igd.data.sources import as_source
from igd.errors import DataWarning, UserError


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Two patients with two images each, and one with one."""
    folder = write_images(tmp_path / "scans", stripes(5))
    for number, name in enumerate(("p1_a", "p1_b", "p2_a", "p2_b", "p10_a")):
        (folder / f"{number:03d}.png").rename(folder / f"{name}.png")
    return folder


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"p(\d+)", ["10", "1", "1", "2", "2"]),  # the capture group
        (r"p\d+", ["p10", "p1", "p1", "p2", "p2"]),  # or the whole match
        (r"(?:p)(\d)\d?_", ["1", "1", "1", "2", "2"]),
    ],
)
def test_a_pattern_finds_the_group_in_file_names(
    scans: Path, pattern: str, expected: list[str]
) -> None:
    source = as_source(read_dataset(scans, group_by=pattern))
    assert [Path(name).stem for name in source.names] == ["p10_a", "p1_a", "p1_b", "p2_a", "p2_b"]
    assert source.groups == expected
    assert source.grouped_by == f"pattern {pattern}"


def test_a_pattern_sees_folders_within_the_data_set_and_none_above(tmp_path: Path) -> None:
    for patient in ("anna", "ben"):
        write_images(tmp_path / "p7" / patient, stripes(2))
    assert as_source(read_dataset(tmp_path / "p7", group_by="^[^/]+")).groups == [
        *["anna"] * 2,
        *["ben"] * 2,
    ]
    with pytest.raises(UserError, match="none of its 4 file names"):
        read_dataset(tmp_path / "p7", group_by="p7")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("case", r"'case' finds a group in none of its 5 file names; .*p10_a\.png"),
        (r"p(\d)_", "in only 4 of its 5 file names; it must in all, such as p10_a"),
        (r"p(\d", "no regular expression"),
        (r"(p)(\d)", "2 capture groups"),
        ("x*", "none of its 5"),  # matches nothing at all, everywhere
    ],
)
def test_patterns_that_say_nothing(scans: Path, pattern: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_dataset(scans, group_by=pattern)


def test_a_column_needs_a_manifest_and_is_one_way_of_two(scans: Path) -> None:
    with pytest.raises(UserError, match=r"a column \(patient\) is for a manifest.*--group-by"):
        read_dataset(scans, group="patient")
    with pytest.raises(UserError, match="--group or --group-by"):
        read_dataset(scans, group="patient", group_by="p")


def test_a_group_in_training_and_test_is_mentioned(category: Path) -> None:
    with pytest.warns(DataWarning, match="10 of 10 groups of test images have training images"):
        read_dataset(category, group_by=r"\d+\.png")


def test_given_groups_are_any_values_one_an_image() -> None:
    source = as_source(list(stripes(3)))
    assert with_groups(source, None, "groups") is source
    assert with_groups(source, np.array([7, 7, 8]), "groups").groups == ["7", "7", "8"]
    grouped = with_groups(source, ["a", "a", "b"], "groups")
    with pytest.raises(UserError, match="have groups already"):
        with_groups(grouped, [1, 2, 3], "groups")
    with pytest.raises(UserError, match="groups has 2 values for 3 images"):
        with_groups(source, [1, 2], "groups")
    for unknown in (None, float("nan")):
        with pytest.raises(UserError, match="no value for image 1"):
            with_groups(source, [1, unknown, 2], "groups")


def test_numbers_follow_the_labels_not_the_images() -> None:
    assert group_numbers(["b", "c", "a", "b"], [0, 1, 3]).tolist() == [0, 1, 0]
    assert group_numbers(None, [4, 5, 9]).tolist() == [0, 1, 2]


def test_samples_have_groups_all_or_none() -> None:
    image = stripes(1)[0]
    with pytest.raises(UserError, match="second: has no group"):
        as_source([Sample("first", image, group="a"), Sample("second", image)])


def test_calibration_images_are_of_other_groups() -> None:
    images = as_source(stripes(2))
    training = with_groups(images, ["a", "b"], "groups")
    check_apart(training, with_groups(images, ["c", "d"], "calibration_groups"))
    check_apart(images, training)
    with pytest.raises(UserError, match="1 of its 2 groups are among the training images"):
        check_apart(training, with_groups(images, ["b", "c"], "calibration_groups"))
    with pytest.raises(UserError, match="calibration_groups"):
        check_apart(training, images)

"""CSV and JSON lines that list images."""

import json
from pathlib import Path

import pytest
from conftest import stripes, write_images

from igd.data.formats.manifest import read_manifest
from igd.data.reading import read_dataset
from igd.errors import DataWarning, UserError

ROWS = [
    {"path": "images/000.png", "label": "good", "split": "train", "mask": ""},
    {"path": "images/001.png", "label": "good", "split": "test", "mask": ""},
    {"path": "images/002.png", "label": "scratch", "split": "test", "mask": "masks/000.png"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_images(tmp_path / "set" / "images", stripes(3))
    write_images(tmp_path / "set" / "masks", stripes(1))
    write_images(tmp_path / "elsewhere", stripes(1))
    return tmp_path / "set"


def write_csv(folder: Path, rows: list[dict[str, str]] = ROWS) -> Path:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return folder / "list.csv"


def write_jsonl(folder: Path, rows: list[dict[str, object]] = ROWS) -> Path:
    (folder / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "list.jsonl"


def test_both_formats_say_the_same(folder: Path) -> None:
    listed, lines = read_dataset(write_csv(folder)), read_dataset(write_jsonl(folder))
    assert listed.samples == lines.samples
    assert [(each.identifier, each.kind, each.label, each.split) for each in listed.samples] == [
        ("images/000.png", "good", 0, "train"),
        ("images/001.png", "good", 0, "test"),
        ("images/002.png", "scratch", 1, "test"),
    ]
    assert listed.samples[2].mask == folder.resolve() / "masks" / "000.png"
    assert listed.samples[0].read().size == (32, 32)


def test_numbers_names_and_classes(folder: Path) -> None:
    numbers = [{**row, "label": label} for row, label in zip(ROWS, (0, False, 1), strict=True)]
    assert [sample.label for sample in read_dataset(write_jsonl(folder, numbers)).samples] == [
        0,
        0,
        1,
    ]
    classes = [
        {**row, "label": label} for row, label in zip(ROWS, ("cat", "dog", "cat"), strict=True)
    ]
    dataset = read_dataset(write_csv(folder, classes))
    assert dataset.classes == ("cat", "dog")
    assert [sample.kind for sample in dataset.samples] == ["cat", "dog", "cat"]


def test_a_bare_list_is_normal_and_for_training(folder: Path) -> None:
    dataset = read_dataset(write_csv(folder, [{"path": row["path"]} for row in ROWS]))
    assert len(dataset.training_samples()) == 3


@pytest.mark.parametrize("column", ["path", "mask"])
@pytest.mark.parametrize("way", ["dots", "absolute", "link"])
def test_no_path_leads_out_of_the_folder(folder: Path, column: str, way: str) -> None:
    target = folder.parent / "elsewhere" / "000.png"
    (folder / "link").symlink_to(target.parent)
    listed = {
        "dots": "images/../../elsewhere/000.png",
        "absolute": str(target),
        "link": "link/000.png",
    }[way]
    manifest = write_csv(folder, [*ROWS[:2], {**ROWS[2], column: listed}])
    with pytest.raises(
        UserError, match=r"list\.csv, line 4: .*000\.png leads out of .*set; .*--root"
    ):
        read_dataset(manifest)


def test_a_root_of_ones_own(folder: Path) -> None:
    outside = folder.parent / "lists"
    outside.mkdir()
    manifest = write_csv(outside)
    with pytest.raises(
        UserError, match=r"line 2: images/000\.png: no such file in .*lists; paths are relative to"
    ):
        read_dataset(manifest)
    assert len(read_dataset(manifest, root=folder).samples) == 3
    write_csv(outside, [{**ROWS[0], "path": str(folder / "images" / "000.png")}])
    assert read_dataset(manifest, root=folder).samples[0].identifier == "images/000.png"
    write_csv(outside, [{**ROWS[0], "path": "../elsewhere/000.png"}])
    with pytest.raises(UserError, match="leads out of"):
        read_dataset(manifest, root=folder)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [ROWS[0], {**ROWS[1], "path": "images/../images/000.png"}],
            r"images/000\.png is in it 2 times",
        ),
        ([ROWS[0], {**ROWS[1], "label": "3"}], "the label 3 is unknown beside good"),
        ([ROWS[0], {**ROWS[1], "label": ""}], "line 3: the image has no label"),
        (
            [{**ROWS[0], "split": "holdout"}],
            r"list\.csv, line 2: the split is 'holdout'; .*train, val or test",
        ),
        ([{**ROWS[0], "path": "images/009.png"}], r"line 2: images/009\.png: no such file"),
        ([{**ROWS[0], "path": ""}], "line 2: the path is ''; name an image file"),
        ([{"file": "images/000.png"}], "first line must name the columns, `path` among them"),
    ],
)
def test_rows_that_can_not_be_used(folder: Path, rows: list[dict[str, str]], says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_dataset(write_csv(folder, rows))


def test_cut_off_and_damaged_files(folder: Path) -> None:
    manifest = write_csv(folder)
    manifest.write_text(manifest.read_text()[:-25])
    with pytest.raises(
        UserError,
        match=r"list\.csv, line 4: not as many fields as the first line has; the file is cut off",
    ):
        read_manifest(manifest)
    lines = write_jsonl(folder)
    lines.write_text(lines.read_text()[:-25])
    with pytest.raises(UserError, match=r"list\.jsonl, line 3: not JSON .*cut off or damaged"):
        read_manifest(lines)
    lines.write_text('["images/000.png"]\n')
    with pytest.raises(UserError, match="line 1: must be an object such as"):
        read_manifest(lines)
    lines.write_text('{"path": "images/000.png", "label": 0.5, "split": "train"}\n')
    with pytest.raises(
        UserError, match=r"line 1: label is 0\.5; it must be text or a whole number"
    ):
        read_manifest(lines)
    manifest.write_bytes(b"path\n\xff\xfe\x00")
    with pytest.raises(UserError, match="is not text in UTF-8"):
        read_manifest(manifest)
    manifest.write_text("path,label\n")
    with pytest.raises(UserError, match="lists no images"):
        read_manifest(manifest)


EXCEL = (
    "Filename;Label;Split;Mask;Patient;\r\n"
    "images\\000.png;good;Train;;7;\r\n"
    "images\\001.png;good;TEST;;7;\r\n"
    "images\\002.png;scratch;test;masks\\000.png;8;\r\n"
    ";;;;;\r\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_tables_as_excel_writes_them(folder: Path, encoding: str, delimiter: str) -> None:
    expected = read_dataset(write_csv(folder)).samples
    table = folder / "list.csv"
    table.write_bytes(EXCEL.replace(";", delimiter).encode(encoding))
    with pytest.warns(DataWarning, match=r"not used: the columns patient; igd reads path, label"):
        assert read_dataset(table).samples == expected
    table.write_bytes(b"sep=;\r\n" + EXCEL.encode())
    with pytest.warns(DataWarning):
        assert read_dataset(table).samples == expected


def test_json_lines_mention_unknown_columns_too(folder: Path) -> None:
    rows = [{"Path": row["path"], "age": 61.5} for row in ROWS]
    with pytest.warns(DataWarning, match="columns age"):
        assert len(read_dataset(write_jsonl(folder, rows)).training_samples()) == 3


def test_validation_images_are_tested_on_where_there_are_no_others(folder: Path) -> None:
    rows = [ROWS[0], {**ROWS[1], "split": "val"}, {**ROWS[2], "split": "valid"}]
    with pytest.warns(DataWarning, match="2 images of the split 'val' are used for testing"):
        assert len(read_dataset(write_csv(folder, rows)).test_samples()) == 2
    with pytest.warns(DataWarning, match="1 images of the split 'val' are left out"):
        dataset = read_dataset(write_csv(folder, [ROWS[0], rows[1], ROWS[2]]))
    assert [sample.identifier for sample in dataset.test] == ["images/002.png"]


def with_patients(*patients: object) -> list[dict[str, object]]:
    return [{**row, "Patient": patient} for row, patient in zip(ROWS, patients, strict=True)]


def test_a_column_says_which_images_belong_together(folder: Path) -> None:
    rows = with_patients("anna", "ben", "ben")
    for path in (write_csv(folder, rows), write_jsonl(folder, rows)):
        dataset = read_dataset(path, group="patient")  # and is not mentioned as unknown
        assert [sample.group for sample in dataset.samples] == ["anna", "ben", "ben"]
        assert dataset.grouped_by == "column patient"
    numbered = write_jsonl(folder, with_patients(1, 2, 2))
    assert [each.group for each in read_manifest(numbered, group="Patient").samples] == list("122")


def test_a_column_that_is_not_there_or_empty(folder: Path) -> None:
    with pytest.raises(
        UserError, match="line 2: no column is called 'case'; there are path, label, split, mask"
    ):
        read_manifest(write_csv(folder), group="case")
    with pytest.raises(UserError, match="line 3: patient is empty"):
        read_manifest(write_csv(folder, with_patients("anna", "", "ben")), group="patient")


@pytest.mark.parametrize("empty", [None, "", "missing"])
def test_an_image_without_a_label_is_not_taken_for_a_normal_one(
    folder: Path, empty: str | None
) -> None:
    rows: list[dict[str, object]] = [dict(row) for row in ROWS]
    rows[2]["label"] = empty
    if empty == "missing":
        del rows[2]["label"]
    with pytest.raises(UserError, match=r"list\.jsonl, line 3: the image has no label; write good"):
        read_manifest(write_jsonl(folder, rows))

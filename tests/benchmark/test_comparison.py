"""Tables, figures and exports of runs whose results are given."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
from measured import record

from igd import UserError
from igd.benchmark.benchmark_data import CIFAR10, DIGITS
from igd.benchmark.comparison import tables_of
from igd.benchmark.curves import charts_of
from igd.benchmark.result_tables import FORMATS, Cell, ResultTable, page
from igd.benchmark.run_store import Record, RunStore, export_runs, read_records
from igd.evaluation.figures import BOTTOM, HEIGHT, TOP
from igd.evaluation.svg import standalone


def texts(table: ResultTable) -> list[list[str]]:
    return [[f"**{cell.text}**" if cell.bold else cell.text for cell in row] for row in table.rows]


def test_ours_theirs_and_the_difference() -> None:
    """Two seeds, two classes; the paper's class figures for DSVDD are 0.980 and 0.997."""
    values = {(0, "0"): 0.97, (1, "0"): 0.99, (0, "1"): 0.90, (1, "1"): 0.96}
    (table,) = tables_of(
        record(value, normal, seed, "dsvdd") for (seed, normal), value in values.items()
    )
    assert table.header == [
        "normal class",
        "dsvdd, fast, scratch",
        "paper: DSVDD, scratch",
        "difference",
    ]
    assert texts(table) == [
        ["0", f"**0.980 ± {stdev([0.97, 0.99]):.3f}**", "**0.980**", "+0.000"],
        ["1", f"0.930 ± {stdev([0.90, 0.96]):.3f}", "**0.997**", "-0.067"],
        [
            "mean of 2",
            f"0.955 ± {stdev([0.935, 0.975]):.3f}",
            f"**{mean([0.980, 0.997]):.3f}**",
            "-0.033",
        ],
    ]
    assert "seeds 0, 1" in table.notes[0]
    assert "2 of 10 classes (0, 1)" in table.notes[1]


def test_all_classes_stand_beside_the_published_mean() -> None:
    (table,) = tables_of(record(0.9 + n / 100, name) for n, name in enumerate(DIGITS))
    assert table.header[2] == "paper: IGD, scratch"
    ours = mean(0.9 + n / 100 for n in range(10))
    assert texts(table)[-1] == ["mean of 10", f"{ours:.3f}", "**0.987**", f"{ours - 0.9869:+.3f}"]
    assert texts(table)[0] == ["0", "0.900", "-", ""]  # from scratch the paper has no class figures


def test_a_mean_that_can_not_be_compared_is_not() -> None:
    (table,) = tables_of([record(0.9)])
    assert texts(table)[-1] == ["mean of 1", "0.900"]
    assert (
        table.notes[-1]
        == "The paper has no class figures of IGD, scratch; its mean of all classes: 0.9869 "
        "(100% of the training set)."
    )


@pytest.mark.parametrize("contamination", [0.0, 0.1])
def test_another_test_set_stands_beside_no_published_figure(contamination: float) -> None:
    records = [
        record(0.9, name, data="cifar10", method=method, tested=tested, contamination=contamination)
        for name in CIFAR10
        for method, tested in (("igd", 200), ("dsvdd", 10_000))
    ]
    table, _ = tables_of(records)
    assert [name.split(",")[0] for name in table.header[1:]] == [
        "igd",
        "dsvdd",
        "paper: DSVDD",
        "difference",
    ]
    notes = [note for note in table.notes if "not the published test set" in note]
    assert len(notes) == 1
    assert notes[0] == "igd, fast, scratch: not the published test set (200 of 10,000 images)."
    assert not any("The paper has no class figures of IGD" in note for note in table.notes)


def test_half_a_per_cent_below_the_best_is_bold() -> None:
    """The paper's rule, at its edge."""
    (table,) = tables_of(
        [record(0.999, method="igd"), record(0.994, method="ocsvm"), record(0.9939, method="kde")]
    )
    bold = {cell.value: cell.bold for cell in table.rows[0] if cell.competes}
    assert bold == {0.999: True, 0.994: True, 0.9939: False, 0.988: False, 0.885: False}


def test_a_mean_needs_all_its_classes() -> None:
    """Seed 1 has class 0 only: it counts for the class, not for the mean."""
    (table,) = tables_of([record(0.8), record(0.6, "1"), record(0.9, seed=1)])
    assert texts(table)[0][1].startswith("0.850 ±")
    assert texts(table)[-1][1] == "0.700"


def test_notes_say_which_columns_have_fewer_seeds() -> None:
    records = [
        record(0.8),
        record(0.9, seed=1),
        record(0.7, method="ocsvm"),
        record(0.6, method="ocsvm", contamination=0.1),
    ]
    (table, contaminated) = tables_of(records)
    assert table.notes[:2] == [
        "Mean ± standard deviation over seeds 0, 1; bold: the best, within 0.5 %.",
        "Of fewer seeds: ocsvm (0).",
    ]
    assert contaminated.notes[0].startswith("One seed (0)")  # seed 1 is in the other table alone
    assert not any("fewer" in note for note in contaminated.notes)


@pytest.mark.parametrize(
    ("method", "share", "same"),
    [("dsvdd", 1, True), ("dsvdd", 0.2, False), ("ocsvm-imagenet", 1, False)],
)
def test_notes_speak_of_the_paper_s_means_where_there_are_some(
    method: str, share: float, same: bool
) -> None:
    (table,) = tables_of([record(0.9, method=method, training_share=share)])
    addition = "; the paper's means beside them are of the same" if same else ""
    assert table.notes[1] == f"1 of 10 classes (0){addition}."


def test_a_note_about_two_columns_stands_once() -> None:
    (table,) = tables_of([record(0.9), record(0.8, config_hash="changed")])
    assert (
        len([note for note in table.notes if "The paper has no class figures of IGD" in note]) == 1
    )


def test_robustness_has_the_paper_s_rows() -> None:
    records = [
        record(0.8 - share, name, data="cifar10", method=method, contamination=share)
        for share in (0.01, 0.05, 0.1)
        for name in CIFAR10
        for method in ("igd", "dsvdd")
    ]
    table, _ = tables_of(records)
    assert table.title == "cifar10: contaminated training sets, mean image AUROC"
    assert table.header[1:] == [
        "igd, fast, scratch",
        "paper: IGD",
        "difference",
        "dsvdd, fast, scratch",
        "paper: DSVDD",
        "difference",
    ]
    assert texts(table)[2] == [
        "10% of the anomalies in training",
        "0.700",
        "**0.812**",
        "-0.112",
        "0.700",
        "0.672",
        "+0.028",
    ]


def test_the_ablation_has_its_own_table() -> None:
    methods = ("mse", "rec", "rec+gac", "igd")
    records = [
        record(0.7, name, data="cifar10", method=method, pretrain="imagenet")
        for name in CIFAR10
        for method in methods
    ]
    titles = [table.title for table in tables_of(records)]
    assert titles == [
        "cifar10: image AUROC",
        "cifar10: ablation, mean image AUROC",
        "cifar10: what each term adds, mean image AUROC",
    ]
    ablation = tables_of(records)[1]
    assert [cell.text for cell in ablation.rows[0][2::3]] == ["0.615", "0.731", "0.819", "0.836"]


def test_figures_of_another_pre_training_are_not_compared() -> None:
    """The paper's DSVDD is from scratch, in its table of classes too, which does not say so."""
    (table,) = tables_of(
        record(0.95, name, data="cifar10", method="dsvdd", pretrain="imagenet") for name in CIFAR10
    )
    assert table.header == ["normal class", "dsvdd, fast, imagenet"]
    assert table.notes[-1] == (
        "The paper's figures of DSVDD are of other pre-training (scratch) than dsvdd, fast, "
        "imagenet; they are not compared."
    )
    (scratch,) = tables_of(record(0.6, name, data="cifar10", method="dsvdd") for name in CIFAR10)
    assert scratch.header[2] == "paper: DSVDD, scratch"
    assert [row[2].text for row in scratch.rows[:2]] == ["0.617", "0.659"]


@pytest.mark.parametrize(
    ("scales", "label"),
    [
        (["pixel"], "Gaussian per position, fast, imagenet"),
        (["position"], "Gaussian per position, fast, imagenet"),
        (["global", "position"], "igd + Gaussian per position, fast, imagenet"),
        (
            ["position", "bank", "whole"],
            "Gaussian per position + bank + whole, fast, imagenet",
        ),
    ],
)
def test_a_gaussian_per_position_is_not_the_paper_s_method(scales: list[str], label: str) -> None:
    records = [
        record(0.98, name, data="mvtec", pretrain="imagenet", method_details={"scales": scales})
        for name in ("bottle", "grid")
    ]
    (table,) = tables_of(records)
    assert table.header == ["normal class", label]
    (note,) = (each for each in table.notes if "PaDiM (Defard et al., 2021)" in each)
    assert f"{mean([1.0, 0.979]):.4f}" in note  # of bottle and grid
    assert "is another method" in note
    trained = tables_of(record(0.9, name, data="mvtec", pretrain="imagenet") for name in ("grid",))
    assert trained[0].header[2] == "paper: IGD, imagenet"


def test_warnings_of_training_stand_below_the_figures() -> None:
    text = "global model: the decoder ignores the latent: it gives every image the same (error 1)"
    records = [record(0.9, warnings=[text]), record(0.8, "1"), record(0.7, seed=1)]
    (table,) = tables_of(records)
    expected = "igd, fast, scratch: global model: the decoder ignores the latent (1 of 3 runs)."
    assert f"Warnings of training, {expected}" in table.notes


def test_warnings_stand_in_one_order_whatever_the_hashes_of_their_words() -> None:
    often, *seldom = [f"model {letter}: a warning" for letter in "zabcdefgh"]
    records = [record(0.9, warnings=[*seldom, often]), record(0.8, "1", warnings=[often])]
    (table,) = tables_of(records)
    told = [f"{often} (2 of 2 runs)", *(f"{each} (1 of 2 runs)" for each in seldom)]
    assert f"Warnings of training, igd, fast, scratch: {'; '.join(told)}." in table.notes


def test_an_accuracy_from_before_the_threshold_was_one_half_is_left_out() -> None:
    def run(accuracy: float, normal: str, made_by: str) -> Record:
        made = record(0.9, normal, data="mvtec", pretrain="imagenet", tested=100)
        metrics = {"accuracy_at_half": accuracy, "miss_rate": 0.5, "false_alarm_rate": 0.0}
        result = {**(made.result or {}), "metrics": metrics}
        return replace(made, run=replace(made.run, made_by=made_by), result=result)

    records = [run(0.55, "bottle", "igd 0.1.0"), run(0.9, "grid", "igd 0.1.0")]
    (table,) = tables_of(records)
    assert [row[1].text for row in table.rows][:2] == ["0.550", "-"]
    assert any("1 runs are left out" in note for note in table.notes)
    (table,) = tables_of([run(0.9, "grid", "igd 0.1.0, code 12")])
    assert table.rows[0][1].text == "0.900"


def test_the_same_name_with_another_config_is_another_column() -> None:
    (table,) = tables_of([record(0.9), record(0.8, config_hash="changed")])
    labels = [name for name in table.header if name.startswith("igd")]
    assert len(set(labels)) == 2
    assert all(label.startswith("igd, fast, scratch (igd ") for label in labels)


def drawn_lines(picture: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Colour of each line, 'dashed' with it where it is, and the points it goes through."""
    found = []
    for path in ElementTree.fromstring(picture).iter("path"):
        style = path.get("style") or ""
        colour = re.search(r"stroke: var\(--([a-e]),", style)
        if colour and "stroke-width: 2" in style:
            points = re.findall(r"[ML] (\S+) (\S+)", path.get("d") or "")
            name = f"{colour[1]} dashed" if "stroke-dasharray" in style else colour[1]
            found.append((name, [(float(x), float(y)) for x, y in points]))
    return found


def test_figure_1_is_drawn_from_our_runs() -> None:
    records = [
        record(0.8 - share, name, data="cifar10", method=method, contamination=share)
        for share in (0.01, 0.1)
        for name in CIFAR10
        for method in ("igd", "dsvdd", "dsvdd+rec")
    ]
    charts = charts_of(records)
    assert list(charts) == ["cifar10-contaminated.svg"]
    lines = drawn_lines(charts["cifar10-contaminated.svg"][1])
    # IGD and DSVDD, as in the paper, and what the paper has.
    assert [name for name, _ in lines] == ["a", "a dashed", "b", "b dashed"]
    (x1, y1), (x2, y2) = lines[0][1]
    assert x1 < x2
    assert y1 < y2  # AUC falls, and y grows downwards
    alone = ElementTree.fromstring(standalone(charts["cifar10-contaminated.svg"][1]))
    names = {
        each.text: float(each.get("x") or 0)
        for each in alone.iter("{http://www.w3.org/2000/svg}text")
    }
    # In the left corner, which falling lines leave free.
    assert names["igd"] == names["dsvdd"] < 100
    assert "fast, scratch" in charts["cifar10-contaminated.svg"][0]
    assert charts_of([record(0.9)]) == {}


def test_figure_1_has_published_lines_of_the_same_only() -> None:
    for tested, classes in (
        (200, CIFAR10),
        (10_000, CIFAR10[:2]),
    ):  # another test set, and a mean of other classes
        records = [
            record(0.9, name, data="cifar10", tested=tested, contamination=share)
            for share in (0.01, 0.1)
            for name in classes
        ]
        ((_, picture),) = charts_of(records).values()
        assert [name for name, _ in drawn_lines(picture)] == ["a"]


def test_figure_1_shows_points_spreads_and_a_tenth_at_least() -> None:
    values = {(0.01, 0): 0.95, (0.01, 1): 0.97, (0.1, 0): 0.96}
    records = [
        record(value, seed=seed, contamination=share) for (share, seed), value in values.items()
    ]
    ((_, picture),) = charts_of(records).values()
    # The second point has one seed, so there is one bar.
    (_, ((_, first), (_, second))), (_, ((_, low), (_, high))) = drawn_lines(picture)
    assert first == second  # both means are 0.96
    assert (low + high) / 2 == pytest.approx(first, abs=0.1)
    height = HEIGHT - TOP - BOTTOM
    assert (low - high) / height * 0.1 == pytest.approx(2 * stdev([0.95, 0.97]), rel=0.01)


TABLE = ResultTable(
    "a & b",
    ["", "ours_1", "difference"],
    [
        [Cell("1"), Cell.figure(0.91234567, 0.01).in_bold(), Cell("")],
        [Cell("2"), Cell("-"), Cell("-0.067", -0.067)],
    ],
    ["10 %"],
)


def test_formats() -> None:
    assert "| 1 | **0.912 ± 0.010** |  |" in FORMATS["markdown"]([TABLE])
    assert r"1 & \textbf{0.912 $\pm$ 0.010} &  \\" in FORMATS["latex"]([TABLE])
    assert r"\caption{a \& b. 10 \%}" in FORMATS["latex"]([TABLE])
    assert FORMATS["latex"]([TABLE, TABLE]).count("% needs \\usepackage{booktabs}\n") == 1
    assert "\\label{tab:a-b}\n\\end{table}" in FORMATS["latex"]([TABLE])
    assert "2 & - & $-0.067$ \\\\" in FORMATS["latex"]([TABLE])
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"]([TABLE]))))
    assert rows == [
        {
            "table": "a & b",
            "row": "1",
            "column": "ours_1",
            "value": "0.912346",
            "standard_deviation": "0.01",
        },
        {
            "table": "a & b",
            "row": "2",
            "column": "difference",
            "value": "-0.067",
            "standard_deviation": "",
        },
    ]
    html = page([TABLE], [("caption", "<svg/>")])
    assert "<h2>a &amp; b</h2>" in html
    assert "<b>0.912 ± 0.010</b>" in html
    assert "<svg/>" in html


def test_every_figure_has_a_name_of_its_own() -> None:
    """Two columns of ours beside the same one of the paper, and a third."""
    tables = tables_of(
        [
            record(0.9, method="dsvdd"),
            record(0.8, method="dsvdd", config_hash="changed"),
            record(0.7, method="ocsvm"),
        ]
    )
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](tables))))
    columns = [line["column"] for line in lines if line["row"] == "0"]
    assert len(set(columns)) == len(columns) == 3 + 2 + 3
    assert "difference: ocsvm" in columns
    assert tables[0].header.count("difference") == 3


def test_an_export_shows_the_same_tables(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "a.sqlite", create=True)
    with pytest.raises(UserError, match="holds no finished run yet"):
        export_runs(store, tmp_path / "a.json")
    store.add_command("igd benchmark run mnist --seeds 0 1")
    for each in (record(0.9), record(0.8, seed=1), record(0.7, contamination=0.1)):
        store.add(each.run, each.result)
    store.add(record(0, seed=2).run, None, "failed")
    assert export_runs(store, tmp_path / "a.json") == 3
    stated = json.loads((tmp_path / "a.json").read_text())
    # How many, not which.
    assert sorted(each["result"]["protocols"][0]["moved"] for each in stated["runs"]) == [
        0,
        0,
        900,
    ]
    assert (stated["commands"], stated["seeds"], stated["recipes"]) == (
        ["igd benchmark run mnist --seeds 0 1"],
        [0, 1],
        ["fast"],
    )
    assert tables_of(read_records(tmp_path / "a.json")) == tables_of(
        read_records(tmp_path / "a.sqlite")
    )
    (tmp_path / "b.json").write_text('{"kind": "something else"}')
    with pytest.raises(UserError, match=r"b\.json: not an export of igd benchmark"):
        read_records(tmp_path / "b.json")

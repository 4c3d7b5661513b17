"""What each term of the objective adds, wherever it was measured, as one picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from igd.benchmark.benchmark_data import DATA
from igd.benchmark.differences import compared, difference
from igd.benchmark.paper import MEAN, published
from igd.benchmark.run_store import records_of
from igd.benchmark.series import series_of
from igd.benchmark.suites import ABLATION, FULL, paper_name
from igd.evaluation.figures import BOTTOM, LINE, PALETTE, TEXT, TOP, new_axes, to_svg
from igd.evaluation.svg import standalone

TERMS = {
    ("rec", "mse"): "MS-SSIM and MAE in place of the squared error",
    ("rec+gac", "rec"): "the Gaussian classifier",
    ("igd", "rec+gac"): "interpolation and critic",
}
# Runs of `igd benchmark`, and measurements in feature space: file, steps, ending of an objective.
BENCHMARKS = {
    "from scratch": "fashion-mnist-ablation.json",
    "after contrast": "cifar10-contrasted.json",
    "frozen features": "cifar10-imagenet.json",
}
FEATURE_SPACE = {
    "patches": ("feature-space-long.json", "4200 steps", ""),
    "patches, l_h limited": ("feature-space-limited-long.json", "2100 steps", " balanced"),
    "whole images": ("feature-space-whole.json", "2100 steps", " whole"),
}
PAPER = "paper"
LOW, HIGH = -0.16, 0.16  # of the axis; a mean above it is told by its number
ROW, HEADER, NAMES = 17, 28, 0.12  # points of a row and of a title; room for names, on the axis
LEFT, INDENT = -0.16, -0.13  # where titles and names begin, in widths of the plot


class Added(NamedTuple):
    """A mean difference and its interval."""

    mean: float
    interval: tuple[float, float] | None


def added(results: dict[str, Any]) -> Iterator[tuple[tuple[str, str], str, Added]]:
    """Each term's worth in each setting: pair, setting, difference."""
    for pair in TERMS:
        ours, theirs = (
            published("cifar10", "image_auroc", paper_name(name), MEAN, tables=ABLATION.tables)
            for name in pair
        )
        yield pair, PAPER, Added(ours["imagenet"].value - theirs["imagenet"].value, None)
    for setting, file in BENCHMARKS.items():
        records = records_of(results[file])
        for data in DATA:
            for one, other, pair in compared(series_of(records, data)):
                found = difference(one, other, FULL) if pair in TERMS else None
                if found:
                    yield pair, setting, Added(found.mean, found.interval)
    for setting, (file, steps, ending) in FEATURE_SPACE.items():
        found = results[file]["ablation"][steps]["differences"]
        for pair in TERMS:
            name = " - ".join(f"{each}{ending}" for each in pair) + ", l_r"
            # REC has no l_h to limit.
            name = name.replace("- rec balanced", "- rec")
            if name in found:
                yield pair, setting, Added(found[name]["mean"], tuple(found[name]["interval"]))


def picture(results: dict[str, Any]) -> str:
    """A title a term, a row a setting: the mean as a dot, the interval as a line; the paper's
    figure as a diamond.
    """
    rows = list(added(results))
    assert len({row[:2] for row in rows}) == len(rows)
    assert all(mean > LOW for *_, (mean, _) in rows)
    plot = HEADER * len(TERMS) + ROW * len(rows)
    axes = new_axes("image AUROC added", "", (LOW - NAMES, HIGH), (0, plot), plot + TOP + BOTTOM)
    axes.invert_yaxis()
    axes.set_xticks([-0.1, 0, 0.1])
    axes.set_yticks([])
    axes.axvline(0, color=PALETTE["rule"], linewidth=LINE)
    place = 0.0
    text: dict[str, Any] = {"size": TEXT, "va": "center", "parse_math": False}
    named = {"transform": axes.get_yaxis_transform()}
    for term, title in TERMS.items():
        place += HEADER / 2
        axes.text(LEFT, place, title, color=PALETTE["soft"], fontweight="bold", **text | named)
        place += HEADER / 2
        for _, setting, (mean, interval) in (row for row in rows if row[0] == term):
            place += ROW / 2
            colour = PALETTE["a" if setting == PAPER else "b"]
            axes.text(INDENT, place, setting, color=PALETTE["soft"], **text | named)
            if interval:
                axes.plot(interval, [place, place], color=colour, linewidth=LINE)
            marker = "D" if setting == PAPER else "o"
            axes.plot([mean], [place], marker=marker, color=colour, markersize=6, markeredgewidth=0)
            if interval and mean > HIGH:
                beyond = f"{mean:+.3f} \N{RIGHTWARDS ARROW} "
                axes.text(interval[0], place, beyond, color=colour, ha="right", **text)
            place += ROW / 2
    return standalone(to_svg(axes, "what each term of the objective adds"))

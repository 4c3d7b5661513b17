"""Pictures of what time buys: AUROC as a training goes on, from results of several files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.ticker import FuncFormatter, NullLocator

from igd.benchmark.paper import MEAN, published
from igd.evaluation.figures import BOTTOM, HEIGHT, LINE, PALETTE, TOP, legend, new_axes, to_svg
from igd.evaluation.svg import standalone

LETTER, SUM = "paper, bf16", "share 0.5"  # the recipe to the letter, and its score: l_r + l_h
KINDS = {("mnist", 8): "8s", ("fashion_mnist", 4): "coats"}
READ = "all turns twice, told apart"  # as `igd train` reads encoders
WAYS = {"rotation": "turns", "contrastive, rotated": "contrast in all turns"}
SOLID, DASHED = "-", (0, (2.5, 2))


class Curve(NamedTuple):
    """AUROC against what was spent."""

    name: str
    colour: str  # of the palette
    style: Any
    points: list[tuple[float, float]]


def pictures(results: dict[str, Any]) -> dict[str, str]:
    """Every picture by its file name."""
    return {
        "paper-recipe.svg": picture(
            list(paper_recipe(results)),
            ("steps of 64 images", "AUROC of l_r + l_h"),
            (125, 500, 2000, 8000),
            "the paper's recipe from scratch, as it goes on",
        ),
        "encoders.svg": picture(
            list(encoders(results)),
            ("minutes of CPU a class", "mean AUROC"),
            (1, 2, 4, 8),
            "encoders that learn from images alone, by time",
        ),
    }


def paper_recipe(results: dict[str, Any]) -> Iterable[Curve]:
    """The recipe `paper` at full width: each class with all images, and with a fifth."""
    for result in results.values():
        for run in result.get("time_to_quality", ()) if result.get("split") == "train" else ():
            kind = KINDS.get((result["what"].partition(":")[0], run["class"]))
            if run["variant"] == LETTER and kind:
                share = run.get("share", 1.0)
                yield Curve(
                    kind if share == 1 else f"{kind}, {share:.0%} of the images",
                    "ab"[list(KINDS.values()).index(kind)],
                    SOLID if share == 1 else DASHED,
                    [(each["steps"], each[SUM]) for each in run["curve"] if each["steps"]],
                )


def encoders(results: dict[str, Any]) -> Iterable[Curve]:
    """CIFAR-10's ten classes by the longest training of each way, and what the paper has."""
    longest: dict[str, list[dict[str, Any]]] = {}
    for result in results.values():
        for each in result.get("students", ()):
            way, _, told = each["student"].rpartition(", images ")
            way, curve = WAYS.get(way.rpartition(" steps")[0].rpartition(", ")[0]), each["curve"]
            if way and told == READ and len(curve[-1]["classes"]) == 10:
                longest[way] = max(longest.get(way, curve), curve, key=_seconds)
    for colour, (way, curve) in zip("ab", sorted(longest.items()), strict=False):
        points = [(each["cpu_seconds"] / 60, _mean(each["classes"])) for each in curve]
        yield Curve(way, colour, SOLID, points)
    paper = published("cifar10", "image_auroc", "IGD", MEAN)["ssl"].value
    last = max(map(_seconds, longest.values())) / 60
    yield Curve("paper: 2,000 epochs", "g", DASHED, [(1, paper), (last, paper)])


def _seconds(curve: list[dict[str, Any]]) -> float:
    return float(curve[-1]["cpu_seconds"])


def _mean(classes: Sequence[dict[str, Any]]) -> float:
    return sum(float(each["auc"]) for each in classes) / len(classes)


def picture(
    curves: Sequence[Curve], labels: tuple[str, str], ticks: Sequence[float], description: str
) -> str:
    """The curves over a logarithmic axis, as a file of its own."""
    places, values = zip(*(point for curve in curves for point in curve.points), strict=True)
    high = min(1, max(values) + 0.02)
    named = (14 + 16 * len(curves)) / (HEIGHT - TOP - BOTTOM)  # share of the plot, below the curves
    low = min(values) - (high - min(values)) * named / (1 - named)
    axes = new_axes(*labels, (min(places), max(places)), (low, high))
    axes.set_xscale("log")
    axes.set_xlim(min(places), 1.05 * max(places))
    axes.set_xticks([tick for tick in ticks if min(places) <= tick <= max(places)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    for curve in curves:
        style: dict[str, Any] = {"color": PALETTE[curve.colour], "linestyle": curve.style}
        style |= {"marker": "o", "markersize": 4} if curve.colour != "g" else {}
        axes.plot(*zip(*curve.points, strict=True), linewidth=LINE, **style)
    legend(axes, [curve.name for curve in curves], "lower left", [each.colour for each in curves])
    return standalone(to_svg(axes, description))

"""Tables of the searches: which readings, under which hardship, trained by which terms."""

from __future__ import annotations

from typing import Any

from markdown_table import table


def choice_table(result: dict[str, Any]) -> str:
    """The default, each change of it, each reading alone, and what choosing is worth."""
    rows = [_candidate_row("the default", result["default"])]
    everything = result["default"]["candidate"]["readings"]
    rows += [
        _candidate_row(_change(row, everything), row)
        for row in result["one_change_from_the_default"]
    ]
    rows += [
        _candidate_row(f"{row['candidate']['readings'][0]} alone", row) for row in result["alone"]
    ]
    unseen = result["leave_one_out"]
    chosen = sum(
        each["candidate"] == result["default"]["candidate"] for each in unseen["sets"].values()
    )
    sets = table(
        ("set", "the default", "chosen on the others"),
        [
            (name, f"{result['default']['sets'][name]:.3f}", f"{each['image_auroc']:.3f}")
            for name, each in unseen["sets"].items()
        ],
    )
    seen = result["default"]["mean"]["image_auroc"]
    said = (
        f"Leave one set out: the mean of the figures on sets that a choice did not see is "
        f"**{unseen['mean']:.3f}**; the default's own, {seen:.3f}, was seen while it was made. "
        f"Without one set, the search takes the default in {chosen} of {len(unseen['sets'])} cases."
    )
    names = ("candidate", "rank", "image AUROC, mean", "worst set", "misses at 5 %", "false alarms")
    return f"{said}\n\n{table(names, rows)}\n{sets}"


def _candidate_row(name: str, row: dict[str, Any]) -> list[str]:
    mean = row["mean"]
    rates = (f"{mean[key]:.1%}" for key in ("misses", "false_alarms"))
    return [name, row["rank"], f"{mean['image_auroc']:.4f}", f"{row['worst']:.3f}", *rates]


def _change(row: dict[str, Any], readings: list[str]) -> str:
    """In what a candidate differs from the default, which has all readings."""
    told = row["candidate"]
    missing = [name for name in readings if name not in told["readings"]]
    if missing:
        return f"without {missing[0]}"
    if told["rule"] != "soft maximum 0.5":
        return str(told["rule"])
    return f"top {told['top']}" if told["top"] != 3 else str(told["scaling"])


def hardships_table(result: dict[str, Any]) -> str:
    rows = [
        (
            row["condition"],
            row["variant"],
            f"{row['image_auroc']:.3f}",
            f"{row['misses']:.1%}",
            f"{row['false_alarms']:.1%}",
        )
        for row in result["hardships"]
    ]
    return table(("learnt from", "", "image AUROC", "misses", "false alarms"), rows)


def ablation_table(result: dict[str, Any]) -> str:
    """Means of each objective, what each term adds, and what the reading adds to the default, with
    intervals over data sets.
    """
    parts = []
    for what, found in result["ablation"].items():
        names = list(dict.fromkeys(key for each in found["means"].values() for key in each))
        means = table(
            ("objective", *names),
            [
                (name, *(f"{each[key]:.3f}" if key in each else "-" for key in names))
                for name, each in found["means"].items()
            ],
        )
        rows = [
            (
                name,
                f"{row['mean']:+.3f}",
                f"{row['interval'][0]:+.3f} to {row['interval'][1]:+.3f}",
                f"{row['sets_better']} of {row['sets']}",
            )
            for name, row in found["differences"].items()
        ]
        head = ("difference", "mean", "95 % interval", "better on")
        parts.append(f"After {what}:\n\n{means}\n{table(head, rows)}")
    if unseen := result.get("leave_one_set_out"):
        parts.append(_left_out(unseen))
    return "\n".join(parts)


def _left_out(unseen: dict[str, Any]) -> str:
    """What a choice among all readings, made without a set, reaches on it."""
    added, names = unseen["beside_default"], list(unseen["chosen"].values())
    often = ", ".join(f"{name} ({names.count(name)})" for name in dict.fromkeys(names))
    low, high = added["interval"]
    return (
        f"Leave one set out: of {unseen['candidates']} candidates, the default and the default "
        f"with one of the readings, the best on the other sets has a mean of {unseen['mean']:.4f}, "
        f"{added['mean']:+.4f} ({low:+.4f} to {high:+.4f}) beside the default. Chosen: {often}.\n"
    )


def time_to_quality_table(result: dict[str, Any]) -> str:
    """AUROC as training goes on, the mean over classes; of the test split, each class."""
    points = [
        {"variant": variant_of(run), **{key: run[key] for key in ("class", "of_steps")}, **point}
        for run in result["time_to_quality"]
        for point in run["curve"]
    ]
    keys = list(dict.fromkeys(key for point in points for key in point))
    told = ("share", "detail", "statistics")
    shown = [key for key in keys if any(word in key for word in told)]
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for point in points:
        groups.setdefault((point["variant"], point["of_steps"], point["images"]), []).append(point)
    rows = [
        (
            variant,
            of_steps,
            ", ".join(str(point["class"]) for point in group),
            group[0]["steps"],
            _mean(group, "cpu_seconds", 0),
            *(_mean(group, key) for key in ("mean l_h", "mean l_r")),
            _mean(group, "sigma^2", 4),
            *(_mean(group, key) for key in shown),
        )
        for (variant, of_steps, _), group in groups.items()
    ]
    names = [key.replace("share", "l_h's share") for key in shown]
    losses = ("l_h while learning", "l_r while learning", "sigma^2")
    head = ("variant", "of steps", "classes", "after", "CPU s", *losses, *names)
    whole = table(head, rows)
    if result["split"] != "test":
        return whole
    each = [
        (point["class"], point["of_steps"], *(_mean([point], key) for key in shown))
        for point in points
    ]
    return f"{whole}\n{table(('class', 'of steps', *names), each)}"


def variant_of(run: dict[str, Any]) -> str:
    """A run's variant, and the share of the images where it is not all."""
    share = run.get("share", 1.0)
    return f"{run['variant']}, {share:.0%} of the images" if share < 1 else str(run["variant"])


def _mean(points: list[dict[str, Any]], key: str, digits: int = 3) -> str:
    values = [point[key] for point in points if point.get(key) is not None]
    return f"{sum(values) / len(values):.{digits}f}" if len(values) == len(points) else "-"


def contaminated_table(result: dict[str, Any]) -> str:
    """What each way of weighing images gives back, and what it costs on clean ones."""

    def cell(told: dict[str, Any]) -> str:
        low, high = told["interval"]
        return f"{told['image_auroc']:.3f}: {told['difference']:+.3f} ({low:+.3f} to {high:+.3f})"

    rows = [
        (row["way"], cell(row["clean"]), cell(row["contaminated"]))
        for row in result["contaminated"]
    ]
    said = "Mean image AUROC, and how far from clean images as they are, with its interval.\n"
    return f"{table(('the Gaussian', 'clean', 'contaminated'), rows)}\n{said}"


def disagreement_table(result: dict[str, Any]) -> str:
    """A student's disagreement with its teacher alone, the default, and both; means of seeds."""
    figures, told = ("alone", "default", "fused"), result["disagreement"]
    sets = sorted({run["set"] for run in result["runs"]})
    runs_of = {name: [run for run in result["runs"] if run["set"] == name] for name in sets}
    rows = [(name, *(_mean(runs, figure) for figure in figures)) for name, runs in runs_of.items()]
    added = told["fused - default"]
    means = (f"{told['means'][name]:.4f}" for name in figures)
    rows.append((f"mean of {added['sets']} sets", *means))
    low, high = added["interval"]
    said = (
        f"What the student adds to the default: {added['mean']:+.4f}, 95 % interval over data sets "
        f"{low:+.4f} to {high:+.4f}; better on {added['sets_better']} of {added['sets']}.\n"
    )
    head = ("set", "the student's disagreement alone", "the default", "both")
    return f"{table(head, rows)}\n{said}"


def category_table(result: dict[str, Any]) -> str:
    metrics = result["metrics"]
    names = (
        "image_auroc",
        "pixel_auroc",
        "pixel_auroc_per_image",
        "aupro",
        "accuracy_at_half",
        "false_alarm_rate",
        "miss_rate",
    )
    lines = [
        "| metric | value |",
        "|---|---|",
        *(f"| {name} | {metrics[name]:.3f} |" for name in names if metrics[name] is not None),
    ]
    lines += [
        f"| image AUROC of {term} alone | {value:.3f} |"
        for term, value in result["image_auroc_of_each_term"].items()
    ]
    lines += [
        f"| training | {result['training_seconds']:.0f} s |",
        f"| scoring an image, with its metrics | {result['scoring_ms_an_image']:.0f} ms |",
        f"| peak memory | {result['peak_memory_mb']} MB |",
    ]
    return "\n".join(lines) + "\n"

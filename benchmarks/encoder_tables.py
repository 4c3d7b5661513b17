"""Tables of encoders of one's own: by contrast, by turns, by distillation."""

from __future__ import annotations

from typing import Any

from markdown_table import table

from igd.benchmark.benchmark_data import CIFAR10
from igd.benchmark.paper import published


def encoders_table(result: dict[str, Any]) -> str:
    runs = result["encoders"]
    parts = [(names, cells) for part, names, cells in ENCODERS if part in runs[0]]
    rows = [[run["class"], *(cell for _, cells in parts for cell in cells(run))] for run in runs]
    curves = [
        f"- class {run['class']}: "
        + ", ".join(
            f"{each['seconds']:.0f} s {each['auc']:.3f}" for each in run["contrastive"]["curve"]
        )
        for run in runs
        if "contrastive" in run
    ]
    title = (
        "AUC of an untrained Gaussian on the contrastive encoder after some seconds of "
        "pre-training:\n\n"
    )
    memory = max(
        run[part]["peak_memory_mb"] for run in runs for part, _, _ in ENCODERS if part in run
    )
    return (
        f"{table(('normal class', *(name for names, _ in parts for name in names)), rows)}\n"
        f"{title + chr(10).join(curves) + chr(10) * 2 if curves else ''}Peak memory of "
        f"pre-training: {memory} MB.\n"
    )


def contrastive_cells(run: dict[str, Any]) -> tuple[str, ...]:
    scratch, contrastive = run["scratch"], run["contrastive"]
    detector = contrastive["detector"]
    return (
        f"{scratch['auc']:.3f}",
        f"{detector['auc']:.3f}",
        paper_figure(run, "ssl"),
        f"{contrastive['pretraining_seconds']:.0f}",
        f"{scratch['training_seconds']:.0f} / {detector['training_seconds']:.0f}",
    )


def distilled_cells(run: dict[str, Any]) -> tuple[str, ...]:
    distilled = run["distilled"]
    aucs = (distilled[name] for name in ("auc_of_student", "auc_of_teacher", "cosine"))
    figures = (f"{value:.3f}" for value in aucs)
    return (*figures, paper_figure(run, "imagenet"), f"{distilled['seconds']:.0f}")


def paper_figure(run: dict[str, Any], pretrain: str) -> str:
    """The paper's IGD on the same class of CIFAR-10, its encoder pre-trained this way."""
    found = published("cifar10", "image_auroc", "IGD", CIFAR10[int(run["class"])])
    return found[pretrain].printed


ENCODERS = (
    (
        "contrastive",
        (
            *("scratch, AUC", "contrastive, AUC", "paper: IGD, SSL"),
            *("pre-training, s", "training of the two, s"),
        ),
        contrastive_cells,
    ),
    (
        "distilled",
        (
            *("Gaussian on student, AUC", "on teacher", "cosine"),
            *("paper: IGD, distilled from ImageNet", "distilling, s"),
        ),
        distilled_cells,
    ),
)


def students_table(result: dict[str, Any]) -> str:
    """The AUROC of a Gaussian on each student's vectors, class by class, as it learns."""
    points = [(run["student"], point) for run in result["students"] for point in run["curve"]]
    numbers = sorted({each["class"] for _, point in points for each in point["classes"]})
    rows = []
    for student, point in points:
        found = {each["class"]: each["auc"] for each in point["classes"]}
        learnt = (point["steps"], f"{point['cpu_seconds']:.0f}") if point["steps"] else ("-", "-")
        each = (f"{found[number]:.3f}" if number in found else "-" for number in numbers)
        mean = f"{sum(found.values()) / len(found):.3f}" if len(found) == len(numbers) else "-"
        rows.append((student, *learnt, mean, *each))
    head = ("student", "after steps", "CPU s", "mean", *(f"class {number}" for number in numbers))
    return table(head, rows)

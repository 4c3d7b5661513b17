"""docs/results/README.md from the JSON files beside it.

python benchmarks/tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from igd.benchmark.export import KIND, records_of
from igd.benchmark.formats import markdown
from igd.benchmark.summary import tables_of

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def main() -> None:
    (RESULTS / "README.md").write_text(page(RESULTS), encoding="utf-8")


def page(folder: Path) -> str:
    """The page of all results, each table with the command, seed, recipe and date that made it."""
    parts = [
        "# Results\n\nMade from the JSON files in this folder by `python benchmarks/tables.py`. The model scored is always\n"
        "the last one. "
        "MVTec's bottle is a development category: its test figures were seen while the `fast` recipe was made.\n"
    ]
    results = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    for name, result in results.items():
        if result.get("kind") == KIND:
            parts.append(f"{markdown(tables_of(records_of(result)))}\n{commands(name, result)}")
            continue
        table = classes_table(result) if "runs" in result else category_table(result)
        parts.append(f"## {result['what']}\n\n{table}\n{origin(name, result)}")
    return "\n".join(parts)


def classes_table(result: dict[str, Any]) -> str:
    lines = ["| normal class | l_h | l_r | mean | false alarms (promised) | training, s |", "|---|---|---|---|---|---|"]
    for run in result["runs"]:
        auc = run["auc"]
        lines.append(
            f"| {run['class']} | {auc['anomaly']:.3f} | {auc['reconstruction']:.3f} | {auc['mean']:.3f} | "
            f"{run['false_alarm_rate']:.3f} ({run['promised_false_alarm_rate']:.3f}) | {run['training_seconds']:.0f} |"
        )
    mean = result["mean_auc"]
    lines.append(f"| mean of these | {mean['anomaly']:.3f} | {mean['reconstruction']:.3f} | **{mean['mean']:.3f}** | | |")
    lines.append(f"| paper, mean of ten | | | {result['paper_mean_of_ten_classes']:.3f} | | |")
    return "\n".join(lines) + "\n"


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
    lines += [f"| image AUROC of {term} alone | {value:.3f} |" for term, value in result["image_auroc_of_each_term"].items()]
    lines += [
        f"| training | {result['training_seconds']:.0f} s |",
        f"| scoring an image, with its metrics | {result['scoring_ms_an_image']:.0f} ms |",
        f"| peak memory | {result['peak_memory_mb']} MB |",
    ]
    return "\n".join(lines) + "\n"


def commands(name: str, result: dict[str, Any]) -> str:
    """What made an export of `igd benchmark`."""
    versions = sorted(
        {f"{package} {run['result']['versions'][package]}" for run in result["runs"] for package in ("igd", "torch")}
    )
    listed = "; ".join(f"`{command}`" for command in result["commands"])
    return f"{listed}; {', '.join(versions)}, {result['date']} ([{name}]({name}))\n"


def origin(name: str, result: dict[str, Any]) -> str:
    return (
        f"`{result['command']}`; recipe {result['recipe']}, seed {result['seed']}, igd {result['igd']}, "
        f"torch {result['torch']}, {result['threads']} threads, {result['date']} ([{name}]({name}))\n"
    )


if __name__ == "__main__":
    main()

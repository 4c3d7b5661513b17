"""docs/results/README.md and the pictures beside it, from the JSON files there.

python benchmarks/tables.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forest_plot
import learning_curves
from cost_tables import (
    costs_table,
    engines_table,
    growth_table,
    installations_table,
    ranks_table,
    ratios_table,
    roofline_table,
    seconds_table,
    served_table,
    waiting_table,
)
from encoder_tables import encoders_table, students_table
from markdown_table import table
from peer_tables import detectors_table, peer_tables
from product_tables import (
    aimed_table,
    audits_table,
    exported_table,
    promises_table,
    recalibrations_table,
    tiles_table,
    torture_table,
    updates_table,
)
from research_tables import (
    ablation_table,
    category_table,
    choice_table,
    contaminated_table,
    disagreement_table,
    hardships_table,
    time_to_quality_table,
    variant_of,
)

from igd.benchmark.comparison import tables_of
from igd.benchmark.curves import charts_of
from igd.benchmark.result_tables import markdown
from igd.benchmark.run_store import KIND, records_of
from igd.benchmark.series import half_is_stale
from igd.evaluation.svg import standalone

HEAD = """# Results

Made from the JSON files in this folder by `python benchmarks/tables.py`, a section a file. The
model scored is always the last one. MVTec's bottle, capsule, grid and screw are development
categories: their test figures were seen while the `fast` recipe was made.

Columns called *igd* are trained with the paper's objective. *Gaussian per position* trains nothing:
it is a relative of PaDiM (Defard et al., 2021), and the paper's figures of IGD don't stand beside
it. Our ImageNet features are those of a frozen EfficientNet-Lite0; the paper distils a ResNet18.
Runs that say only 'igd 0.1.0' are from before a run carried a digest of the code that made it.

The default above 64 pixels has changed since: *field* below is today's (`position`, `bank`,
`whole`). What is called *Gaussian per position* alone, and the tables of small and contaminated
MVTec sets, are of the scale `pixel`, the default of 0.1.0. Tiles, serving and engines
were measured before there was a shallow level. The default up to 64 pixels has
changed, too: *Gaussian of embeddings* below is today's, but that it learnt from the first 4,000
images, where today's draws them (CIFAR-10, seed 0: 0.948 by both). What is called *igd, fast,
imagenet* on MNIST, Fashion MNIST and CIFAR-10 was the default then, and its commands want `--scales
global` today. What is called *fast, scratch* there was trained in 500 steps of 64 images, with l_h
and l_r weighted equally; today it is 1,000 steps of 16, and statistics of the encoder stand in
l_h's place. The ablation of Fashion MNIST from scratch had a quarter for l_h. Encoders that learn
turns were measured before the margin of an image was limited to twice the normal one, which changes
held-out cats by 0.0001, cars by nothing.

Encoders called *contrastive, turned negatives*, and those of *cifar10-contrasted* and
*contrastive*, learnt by the loss of commit e9f633e, in which turned images were negatives and
nothing more. Today each turn is an image of its own and is told from the others: the commands of
these tables run at that commit, or make other encoders.

*roofline* was measured before weights learnt tap by tap on small maps.
*from-scratch-mnist-paper*, of which one thread is told, learnt on two from step 11,361 on;
*from-scratch-fashion-mnist-paper*, of which two are told, learnt on one up to step 10,402.
*mvtec-global-untrained* read another copy of the images that *mvtec-global* read. In
*feature-space-long* the runs of MSE and of both kinds of IGD are of 2026-11-18 and of another
machine; MSE's and REC's of *feature-space-limited-long* are those after 2,100 of its 4,200 steps.

*training-step-amx* and contrast in 6,000 steps are of a processor with matrix units (AMX), in a
virtual machine that leaves out how large they are: oneDNN was told. `igd doctor` says whether a
machine is of this kind.
"""

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PEERS, OURS = "field-anomalib.json", "field.json"  # the former beside the latter
TITLE = re.compile("^### (.+)", re.MULTILINE)


def main() -> None:
    (RESULTS / "README.md").write_text(page(RESULTS), encoding="utf-8")
    for file, drawing in pictures(read(RESULTS)).items():
        (RESULTS / file).write_text(drawing, encoding="utf-8")


def page(folder: Path) -> str:
    """The page of all results: what there is, then a section a file, each with the command, seed,
    recipe and date that made it.
    """
    results = read(folder)
    sections = {name: section(name, results) for name in results}
    listed = [
        (
            f"[{Path(name).stem}](#{Path(name).stem})",
            "; ".join(dict.fromkeys(TITLE.findall(text))),
            "; ".join(dict.fromkeys(told_apart_by(results[name]))),
            results[name]["date"],
        )
        for name, text in sections.items()
    ]
    parts = (f"## {Path(name).stem}\n\n{text}" for name, text in sections.items())
    return "\n".join([HEAD, table(("file", "what it tells", "of", "date"), listed), *parts])


def section(name: str, results: dict[str, Any]) -> str:
    """The tables of one file, under titles of the third level."""
    result = results[name]
    if result.get("kind") != KIND:
        told = next(make for key, make in TABLES.items() if key in result)(result)
        return f"### {result['what']}\n\n{told}\n{origin(name, result)}"
    drawn = "".join(
        f"![]({file})\n\n*{caption}*\n\n" for file, (caption, _) in figures(name, result).items()
    )
    tables = markdown(tables_of(records_of(result)))
    if name == PEERS:
        tables = peer_tables(result, results[OURS])
    return f"{re.sub('^## ', '### ', tables, flags=re.MULTILINE)}\n{drawn}{commands(name, result)}"


def told_apart_by(result: dict[str, Any]) -> Iterator[str]:
    """What tells a result from others of its kind: methods, objectives, lengths of a training."""
    if result.get("kind") == KIND:
        yield from (run["run"]["method"].rpartition(":")[2] for run in result["runs"])
    for run in result.get("runs", ()) if "ablation" in result else ():
        yield run["objective"]
    for run in result.get("time_to_quality", ()):
        yield f"{variant_of(run)}, {run['of_steps']} steps"
    for each in result.get("students", ()):
        yield each["student"].partition(", images ")[0]


def pictures(results: dict[str, Any]) -> dict[str, str]:
    """Every picture that is drawn from results, by file name."""
    charts = {
        file: standalone(drawn)
        for name, result in results.items()
        for file, (_, drawn) in figures(name, result).items()
    }
    together = {**learning_curves.pictures(results), "terms.svg": forest_plot.picture(results)}
    return {**charts, **together}


def read(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def figures(name: str, result: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The paper's figure 1 as far as these runs fill it: caption and picture of each file, named
    after the results.
    """
    charts = charts_of(records_of(result)) if result.get("kind") == KIND else {}
    return {f"{Path(name).stem}-{file.rpartition('-')[2]}": chart for file, chart in charts.items()}


def commands(name: str, result: dict[str, Any]) -> str:
    """What made an export of `igd benchmark`."""
    versions = sorted(
        {
            f"{package} {run['result']['versions'][package]}"
            for run in result["runs"]
            for package in ("torch",)
        }
    )
    listed = "; ".join(f"`{command}`" for command in result["commands"])
    made_by = sorted({run["run"]["made_by"] for run in result["runs"]})
    stale = sum(half_is_stale(record) for record in records_of(result))
    caution = (
        f"\n`accuracy_at_half` of {stale} of the {len(result['runs'])} runs in {name} is from "
        f"before 1/2 became the threshold; no table uses it.\n"
        if stale
        else ""
    )
    origin = f"{', '.join([*made_by, *versions])}, {result['date']} ([{name}]({name}))"
    return f"{listed}; {origin}\n{caution}"


TABLES = {  # by the key that a result of each kind has
    "metrics": category_table,
    "promises": promises_table,
    "audits": audits_table,
    "encoders": encoders_table,
    "ms_an_image": costs_table,
    "ratios": ratios_table,
    "exported": exported_table,
    "served": served_table,
    "engines": engines_table,
    "ranks": ranks_table,
    "waited": waiting_table,
    "growth": growth_table,
    "tiled": tiles_table,
    "seconds": seconds_table,
    "installations": installations_table,
    "means": detectors_table,
    "recalibrations": recalibrations_table,
    "aimed": aimed_table,
    "updates": updates_table,
    "torture": torture_table,
    "leave_one_out": choice_table,
    "hardships": hardships_table,
    "ablation": ablation_table,
    "time_to_quality": time_to_quality_table,
    "students": students_table,
    "roofline": roofline_table,
    "disagreement": disagreement_table,
    "contaminated": contaminated_table,
}


def origin(name: str, result: dict[str, Any]) -> str:
    return (
        f"`{result['command']}`; recipe {result['recipe']}, seed {result['seed']}, igd "
        f"{result['igd']}, "
        f"torch {result['torch']}, {result['threads']} threads, {result['date']} "
        f"([{name}]({name}))\n"
    )


if __name__ == "__main__":
    main()

"""`igd benchmark`: the paper's tables, measured and as published."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, FAILED, add_command, interruptible
from igd.cli.engine_flags import RAY, add_engine_flags, check_engine, ray_cluster
from igd.cli.grid_bar import GridBar, failure_line, run_line
from igd.errors import UserError
from igd.text import visible
from igd.training.parameters import Parameters

if TYPE_CHECKING:
    from igd.benchmark.run import Run
    from igd.benchmark.run_store import RunStore

SETTINGS = (  # parameters of a training that runs may differ in
    *("recipe", "pretrain", "scales", "image_size", "fit_to", "epochs", "steps", "batch_size"),
    *("learning_rate", "width", "calibration"),
)
FORMATS = ("markdown", "latex", "csv", "html")


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "benchmark",
        help="the paper's tables and sets of one's own, measured; the paper's as published",
        description="The paper's tables, ours beside theirs, and data sets of one's own.",
    )
    parts = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(parts)
    _add_show(parts)
    _add_export(parts)
    _add_paper(parts)


def _add_run(parts: Any) -> None:
    purpose = "measure; finished runs are kept, so the same command goes on"
    command = add_command(parts, "run", run, purpose, "igd benchmark run mnist --seeds 0 1 2")
    flag = command.add_argument
    flag(
        "suite",
        help="mnist, fashion-mnist, cifar10, mvtec, hyper-kvasir, lag, or field for every set of "
        "a folder in MVTec's layout; with :small, :contaminated or :ablation",
    )
    flag(
        "--store",
        type=Path,
        default=Path("results.sqlite"),
        help="where results are kept (default: %(default)s)",
    )
    flag(
        "--data",
        type=Path,
        help="file or folder of the data (default: in $IGD_DATA or ~/.cache/igd-data)",
    )
    flag(
        "--classes",
        nargs="+",
        metavar="CLASS",
        help="which classes are normal in turn, or which sets to use (default: all)",
    )
    flag(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="igd, igd-authors, dsvdd, dsvdd+rec, mse, rec, rec+gac, ocsvm, kde, ocsvm-imagenet, "
        "kde-imagenet, or one's own as FILE.py:CLASS",
    )
    flag(
        "--seeds",
        nargs="+",
        type=int,
        default=[0],
        metavar="SEED",
        help="one run each (default: 0)",
    )
    flag(
        "--jobs",
        type=int,
        default=1,
        help="processes; the threads are divided among them (default: %(default)s)",
    )
    flag(
        "--feature-cache",
        type=Path,
        help="folder where runs share the backbone's features of images (default: none)",
    )
    add_engine_flags(command)
    flag("--dry-run", action="store_true", help="only list the runs and which are done")
    for each in _settings():
        words = dict(each.metadata)
        flag(words.pop("flag", _flag(each.name)), dest=each.name, default=each.default, **words)


def _settings() -> list[Field[Any]]:
    """The parameters in `SETTINGS`, spelled where all of them are."""
    known = {each.name: each for each in fields(Parameters)}
    return [known[name] for name in SETTINGS]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _chosen(options: argparse.Namespace) -> dict[str, Any]:
    """The recipe, and what else was set on the command line."""
    chosen = {each.name: getattr(options, each.name) for each in _settings()}
    defaults = {each.name: each.default for each in _settings()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in chosen.items()
        if name == "recipe" or value != defaults[name]
    }


def run(options: argparse.Namespace) -> int:
    from igd.benchmark.grid import run_grid
    from igd.benchmark.run_store import RunStore
    from igd.benchmark.suites import find_suite, plan

    check_engine(options)
    if options.engine == RAY and options.jobs != 1:
        raise UserError("--jobs is for this machine; with --engine ray, --workers says how many")
    data, _ = find_suite(options.suite)
    usual = Path(os.environ.get("IGD_DATA", "~/.cache/igd-data")).expanduser()
    path = data.locate(options.data or usual)
    chosen = (options.classes, options.methods, options.seeds)
    runs = plan(options.suite, path, _chosen(options), *chosen)
    if options.dry_run:
        _list(options, runs, RunStore(options.store) if options.store.exists() else None)
        return DONE
    store = RunStore(options.store, create=True)
    with interruptible() as stop, GridBar(options) as bar:
        shared: dict[str, Any] = {
            "feature_cache": options.feature_cache,
            "command": _command(options),
            "stop": stop,
            "ended": bar.ended,
            "watch": bar.watch,
        }
        if options.engine == RAY:
            from igd.engines.grid_on_ray import run_grid_on_ray

            with ray_cluster(options) as workers:
                records = run_grid_on_ray(runs, path, store, workers=workers, **shared)
        else:
            records = run_grid(runs, path, store, jobs=options.jobs, **shared)
    failed = sum(record.error is not None for record in records)
    if not options.json:
        done = f"{len(runs) - failed} of {len(runs)} runs done, {len(records) - failed} of them now"
        print(f"{options.store}: {done}\ntables: igd benchmark show {options.store}")
    if failed:
        print(f"igd: {failed} runs failed; the same command tries them again", file=sys.stderr)
    return FAILED if failed else DONE


def _list(options: argparse.Namespace, runs: list[Run], store: RunStore | None) -> None:
    finished = store.finished() if store else {}
    for each in runs:
        done = each.key in finished
        if options.json:
            print(json.dumps({"key": each.key, "done": done, **each.to_json()}))
        else:
            print(f"{'done' if done else 'to do':<6} {each.key}  {visible(each.described)}")
    if not options.json:
        print(f"{len(runs)} runs, {sum(each.key in finished for each in runs)} done")


def _command(options: argparse.Namespace) -> str:
    """The command line for whoever repeats it: what was set, without where data and features lie on
    this machine.
    """
    words = ["igd", "benchmark", "run", options.suite]
    if options.data:
        words += ["--data", options.data.name]
    for name in ("classes", "methods", "seeds"):
        words += [f"--{name}", *map(str, getattr(options, name))] if getattr(options, name) else []
    for name, value in _chosen(options).items():
        flag = "--fit" if name == "fit_to" else _flag(name)
        words += [flag, ",".join(value) if isinstance(value, list) else str(value)]
    if options.feature_cache:
        words += ["--feature-cache", options.feature_cache.name]
    if options.engine == RAY:
        return shlex.join([*words, "--engine", RAY])
    return shlex.join([*words, "--jobs", str(options.jobs)])


def _add_format(command: argparse.ArgumentParser) -> None:
    choice = "default: %(default)s"
    command.add_argument("--format", choices=FORMATS, default="markdown", help=choice)


def _add_show(parts: Any) -> None:
    example = "igd benchmark show results.sqlite --format latex"
    command = add_command(parts, "show", show, "print the tables of one store or several", example)
    command.add_argument(
        "store", type=Path, nargs="+", help="stores, or JSON files exported from them"
    )
    _add_format(command)
    command.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    command.add_argument(
        "--figures", type=Path, help="folder for figure 1 of the paper, from these runs, as SVG"
    )


def show(options: argparse.Namespace) -> int:
    from igd.benchmark.comparison import tables_of
    from igd.benchmark.curves import charts_of
    from igd.benchmark.result_tables import FORMATS as WRITERS
    from igd.benchmark.result_tables import page
    from igd.benchmark.run_store import read_records
    from igd.evaluation.svg import standalone
    from igd.files import check_writable, make_folder, write_text

    if options.output:
        check_writable(options.output)
    records = [record for path in options.store for record in read_records(path)]
    tables, charts = tables_of(records), charts_of(records)
    failed = [record for record in records if record.error]
    if not tables:
        none = f"no run has a result yet ({len(failed)} failed)"
        named = ", ".join(map(str, options.store))
        raise UserError(f"{named}: {none}; see igd benchmark run")
    if options.json:
        text = "\n".join(json.dumps(run_line(record)) for record in records)
    elif options.format == "html":
        text = page(tables, list(charts.values()))
    else:
        text = WRITERS[options.format](tables)
    written = {}
    if options.output:
        write_text(options.output, text)
        written[options.output] = f"{len(records) - len(failed)} runs"
    else:
        lines = text.rstrip("\n").splitlines()
        print(text if options.json else "\n".join(map(visible, lines)))
    if options.figures:
        folder = make_folder(options.figures)
        for name, (caption, picture) in charts.items():
            write_text(folder / name, standalone(picture))
            written[folder / name] = caption
        if not charts:
            needed = "they need runs of igd or dsvdd under :small or :contaminated"
            print(f"igd: {folder}: no figure; {needed}", file=sys.stderr)
    if options.output and not options.json:  # else standard output is the tables' or a program's
        for path, described in written.items():
            print(f"{path}: {described}")
    for record in failed:
        print(failure_line(record), file=sys.stderr)
    return DONE


def _add_export(parts: Any) -> None:
    example = "igd benchmark export results.sqlite -o mnist.json"
    command = add_command(parts, "export", export, "write the results of a store as JSON", example)
    command.add_argument("store", type=Path)
    command.add_argument("-o", "--output", type=Path, required=True, help="the JSON file to write")


def export(options: argparse.Namespace) -> int:
    from igd.benchmark.run_store import RunStore, export_runs

    count = export_runs(RunStore(options.store), options.output)
    line = json.dumps({"file": str(options.output), "runs": count})
    print(line if options.json else f"{options.output}: {count} runs")
    return DONE


def _add_paper(parts: Any) -> None:
    example = "igd benchmark paper mvtec-classes"
    command = add_command(parts, "paper", paper, "print a table as published", example)
    command.add_argument(
        "table", nargs="?", help="its name, or its label in LaTeX (default: a list of all)"
    )
    _add_format(command)


def paper(options: argparse.Namespace) -> int:
    from dataclasses import asdict
    from textwrap import shorten

    from igd.benchmark.paper import find_table, paper_tables, reprint
    from igd.benchmark.result_tables import FORMATS as WRITERS

    if options.table is None:
        for table in paper_tables().values():
            if options.json:
                names = ("name", "label", "place", "caption")
                print(json.dumps({name: getattr(table, name) for name in names}))
            else:
                print(f"{table.name:<28}{shorten(table.caption, 90, placeholder=' ...')}")
        return DONE
    table = find_table(options.table)
    if options.json:
        for figure in table.figures():
            print(json.dumps(asdict(figure)))
    else:
        print(WRITERS[options.format]([reprint(table)]).rstrip("\n"))
    return DONE

"""`igd benchmark`: the paper's tables, measured and as published."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import DONE, FAILED, add_command, interruptible
from igd.errors import UserError

if TYPE_CHECKING:
    from igd.benchmark.outlook import Outlook
    from igd.benchmark.runs import Run
    from igd.benchmark.store import Record, Store

SETTINGS = (
    "recipe",
    "pretrain",
    "scales",
    "image_size",
    "epochs",
    "steps",
    "batch_size",
    "learning_rate",
    "width",
    "calibration",
)
FORMATS = ("markdown", "latex", "csv", "html")


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "benchmark",
        help="the paper's tables, measured and as published",
        description="The paper's tables: ours beside theirs.",
    )
    parts = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(parts)
    _add_show(parts)
    _add_export(parts)
    _add_paper(parts)


def _add_run(parts: Any) -> None:
    command = add_command(
        parts,
        "run",
        run,
        "measure; finished runs are kept, so the same command goes on",
        "igd benchmark run mnist --seeds 0 1 2",
    )
    flag = command.add_argument
    flag("suite", help="mnist, fashion-mnist, cifar10, mvtec, hyper-kvasir or lag; :small, :contaminated, :ablation")
    flag("--store", type=Path, default=Path("results.sqlite"), help="where results are kept (default: %(default)s)")
    flag("--data", type=Path, help="file or folder of the data (default: in $IGD_DATA or ~/.cache/igd-data)")
    flag("--classes", nargs="+", metavar="CLASS", help="which classes are normal in turn (default: all)")
    flag(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="igd, igd-authors, dsvdd, dsvdd+rec, mse, rec, rec+gac, ocsvm, kde, ocsvm-imagenet, kde-imagenet, "
        "or one's own as FILE.py:CLASS",
    )
    flag("--seeds", nargs="+", type=int, default=[0], metavar="SEED", help="one run each (default: 0)")
    flag("--jobs", type=int, default=1, help="processes; the threads are divided among them (default: %(default)s)")
    flag("--feature-cache", type=Path, help="folder where runs share the backbone's features of images (default: none)")
    flag("--dry-run", action="store_true", help="only list the runs and which are done")
    flag("--recipe", default="fast", help="fast (default), paper, authors")
    flag("--pretrain", help="scratch, imagenet, distill, contrastive, or a file of igd pretrain (default: the recipe's)")
    flag(
        "--scales",
        type=lambda text: text.split(","),
        help="of global, local, pixel, such as global,local (default: the recipe's)",
    )
    flag("--image-size", type=int, help="side of the square the model sees (default: 32 for small images, else 256)")
    flag("--epochs", type=int, help="passes over the images (default: the recipe's)")
    flag("--steps", type=int, help="batches to train on instead of epochs, not counting pre-training (default: the recipe's)")
    flag("--batch-size", type=int, help="default: the recipe's")
    flag("--learning-rate", type=float, help="default: the recipe's")
    flag("--width", type=int, help="channels of the networks' first stage (default: the recipe's)")
    flag("--calibration", type=float, help="share of the training images that igd holds out (default: 0.2)")


def run(options: argparse.Namespace) -> int:
    from igd.benchmark.grid import run_grid
    from igd.benchmark.store import Store
    from igd.benchmark.suites import find_suite, plan

    data, _ = find_suite(options.suite)
    path = data.locate(options.data or Path(os.environ.get("IGD_DATA", "~/.cache/igd-data")).expanduser())
    settings = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    runs = plan(options.suite, path, settings, options.classes, options.methods, options.seeds)
    if options.dry_run:
        _list(options, runs, Store(options.store) if options.store.exists() else None)
        return DONE
    store = Store(options.store, create=True)
    with interruptible() as stop, _Bar(options) as bar:
        records = run_grid(
            runs,
            path,
            store,
            jobs=options.jobs,
            feature_cache=options.feature_cache,
            command=_command(options),
            stop=stop,
            ended=bar.ended,
            watch=bar.watch,
        )
    failed = sum(record.error is not None for record in records)
    if not options.json:
        print(f"{options.store}: {len(runs) - failed} of {len(runs)} runs done, {len(records) - failed} of them now")
        print(f"tables: igd benchmark show {options.store}")
    if failed:
        print(f"igd: {failed} runs failed; the same command tries them again", file=sys.stderr)
    return FAILED if failed else DONE


class _Bar:
    """Shows how the grid is going: a bar on standard error, and a line for each run that failed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.json, self.quiet = options.json, options.quiet

    def __enter__(self) -> _Bar:
        from tqdm import tqdm

        form = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} runs [{elapsed}{postfix}]"
        self.bar = tqdm(desc="benchmark", disable=self.quiet, dynamic_ncols=True, bar_format=form, mininterval=1)
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def watch(self, outlook: Outlook) -> None:
        left = "" if outlook.seconds_left is None else f"about {self.bar.format_interval(outlook.seconds_left)} left; "
        self.bar.total, self.bar.n = outlook.total, outlook.done
        self.bar.set_postfix_str(left + "; ".join(outlook.at_work), refresh=False)
        self.bar.update(0)

    def ended(self, record: Record) -> None:
        if record.error:
            self.bar.write(f"igd: failed: {record.run.described}: {record.error.splitlines()[0]}", file=sys.stderr)
        if self.json:
            print(json.dumps(_line(record)), flush=True)


def _line(record: Record) -> dict[str, Any]:
    return {"run": record.run.to_json(), "result": record.result, "error": record.error}


def _list(options: argparse.Namespace, runs: list[Run], store: Store | None) -> None:
    finished = store.finished() if store else {}
    for each in runs:
        done = each.key in finished
        if options.json:
            print(json.dumps({"key": each.key, "done": done, **each.to_json()}))
        else:
            print(f"{'done' if done else 'to do':<6} {each.key}  {each.described}")
    if not options.json:
        print(f"{len(runs)} runs, {sum(each.key in finished for each in runs)} done")


def _command(options: argparse.Namespace) -> str:
    """The command line for whoever repeats it: what was set, without where the data lies on this machine."""
    words = ["igd", "benchmark", "run", options.suite]
    if options.data:
        words += ["--data", options.data.name]
    for name in ("classes", "methods", "seeds"):
        words += [f"--{name}", *map(str, getattr(options, name))] if getattr(options, name) else []
    for name in SETTINGS:
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join([*words, "--jobs", str(options.jobs)])


def _add_show(parts: Any) -> None:
    command = add_command(
        parts, "show", show, "print the tables of a store", "igd benchmark show results.sqlite --format latex"
    )
    command.add_argument("store", type=Path, help="a store, or a JSON file exported from one")
    command.add_argument("--format", choices=FORMATS, default="markdown", help="default: %(default)s")
    command.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    command.add_argument("--figures", type=Path, help="folder for figure 1 of the paper, from these runs, as SVG")


def show(options: argparse.Namespace) -> int:
    from igd.benchmark.curves import charts_of, standing_alone
    from igd.benchmark.export import read_records
    from igd.benchmark.formats import FORMATS as WRITERS
    from igd.benchmark.formats import page
    from igd.benchmark.summary import tables_of
    from igd.files import check_writable, make_folder, write_text

    if options.output:
        check_writable(options.output)
    records = read_records(options.store)
    tables, charts = tables_of(records), charts_of(records)
    failed = [record for record in records if record.error]
    if not tables:
        raise UserError(f"{options.store}: no run has a result yet ({len(failed)} failed); see igd benchmark run")
    if options.json:
        text = "\n".join(json.dumps(_line(record)) for record in records)
    elif options.format == "html":
        text = page(tables, list(charts.values()))
    else:
        text = WRITERS[options.format](tables)
    written = {}
    if options.output:
        write_text(options.output, text)
        written[options.output] = f"{len(records) - len(failed)} runs"
    else:
        print(text.rstrip("\n"))
    if options.figures:
        folder = make_folder(options.figures)
        for name, (caption, picture) in charts.items():
            write_text(folder / name, standing_alone(picture) + "\n")
            written[folder / name] = caption
        if not charts:
            print(f"igd: {folder}: no figure; they need runs of igd or dsvdd under :small or :contaminated", file=sys.stderr)
    if options.output and not options.json:  # else standard output is the tables' or a program's
        for path, described in written.items():
            print(f"{path}: {described}")
    for record in failed:
        assert record.error is not None
        print(f"igd: failed: {record.run.described}: {record.error.splitlines()[0]}", file=sys.stderr)
    return DONE


def _add_export(parts: Any) -> None:
    command = add_command(
        parts, "export", export, "write the results of a store as JSON", "igd benchmark export results.sqlite -o mnist.json"
    )
    command.add_argument("store", type=Path)
    command.add_argument("-o", "--output", type=Path, required=True, help="the JSON file to write")


def export(options: argparse.Namespace) -> int:
    from igd.benchmark.export import export as write
    from igd.benchmark.store import Store

    count = write(Store(options.store), options.output)
    print(json.dumps({"file": str(options.output), "runs": count}) if options.json else f"{options.output}: {count} runs")
    return DONE


def _add_paper(parts: Any) -> None:
    command = add_command(parts, "paper", paper, "print a table as published", "igd benchmark paper mvtec-classes")
    command.add_argument("table", nargs="?", help="its name, or its label in LaTeX (default: a list of all)")
    command.add_argument("--format", choices=FORMATS, default="markdown", help="default: %(default)s")


def paper(options: argparse.Namespace) -> int:
    from dataclasses import asdict
    from textwrap import shorten

    from igd.benchmark.formats import FORMATS as WRITERS
    from igd.benchmark.paper import find_table, paper_tables
    from igd.benchmark.reprint import reprint

    if options.table is None:
        for table in paper_tables().values():
            line = {"name": table.name, "label": table.label, "place": table.place, "caption": table.caption}
            print(json.dumps(line) if options.json else f"{table.name:<28}{shorten(table.caption, 90, placeholder=' ...')}")
        return DONE
    table = find_table(options.table)
    if options.json:
        for figure in table.figures():
            print(json.dumps(asdict(figure)))
    else:
        print(WRITERS[options.format]([reprint(table)]).rstrip("\n"))
    return DONE

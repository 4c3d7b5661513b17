"""`igd audit`: which training images look least normal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, progress_of, warnings_as_lines
from igd.cli.data_flags import add_data_flags, add_group_flags, training_set
from igd.cli.train_command import add_training_flags, parameters_of
from igd.text import visible

ENOUGH = 30  # images a fold, for a deviation to mean something
NAMED = 10  # images, for people who look at the terminal


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "audit",
        run,
        "rank training images by how little normal they look",
        "igd audit parts/good",
    )
    command.add_argument(
        "images",
        type=Path,
        help="folder of images that should be normal, or a data set (docs/data.md)",
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("igd-audit"),
        help="folder to write to (default: %(default)s)",
    )
    command.add_argument(
        "--folds",
        type=int,
        default=3,
        help="models to train, each without its part (default: %(default)s)",
    )
    add_data_flags(command)
    add_group_flags(command)
    add_training_flags(command)


def run(options: argparse.Namespace) -> int:
    from igd.detector import IGD
    from igd.evaluation.audit import audit, rows, write_audit_page, write_audit_table
    from igd.files import make_folder

    out = make_folder(options.out)
    dataset = training_set(options)
    detector = IGD(**parameters_of(options))
    with warnings_as_lines():
        audited = audit(dataset, detector, options.folds, options.seed, progress_of(options))
    made = f"recipe {options.recipe}, objective {options.objective}, seed {options.seed}"
    subtitle = (
        f"{len(audited)} images, each scored by one of {options.folds} models, the one that did "
        f"not train on it; {made}"
    )
    write_audit_table(out / "audit.csv", audited)
    write_audit_page(out / "audit.html", audited, f"Audit of {options.images}", subtitle)
    if options.json:
        for row in rows(audited):
            print(json.dumps(row))
        return DONE
    for row in rows(audited)[:NAMED]:
        print(f"{row['rank']:>4}  deviation {row['deviation']:6.1f}  {visible(row['path'])}")
    if len(audited) < ENOUGH * options.folds:
        print(
            f"{len(audited) // options.folds} images a model are few to tell odd from usual: "
            f"look, and trust no figure"
        )
    print(f"all {len(audited)}: {out / 'audit.csv'}\nlook:  {(out / 'audit.html').resolve()}")
    return DONE

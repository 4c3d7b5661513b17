"""Flags that say which images there are and which belong together, and the sets that they name."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igd.cli.common import add_rate_flag, warnings_as_lines
from igd.errors import UserError

if TYPE_CHECKING:
    from igd.data.dataset import Dataset


def add_set_flags(command: argparse.ArgumentParser) -> None:
    """How a data set is read."""
    command.add_argument(
        "--root",
        type=Path,
        help="folder that paths of manifests start from (default: the manifest's own)",
    )
    command.add_argument(
        "--normal-class",
        help="of several classes, the one that is normal; the others are anomalous",
    )


def add_data_flags(command: argparse.ArgumentParser) -> None:
    """How a data set is read, and under which protocol it is used."""
    add_set_flags(command)
    command.add_argument(
        "--contamination",
        type=float,
        help="share of the test anomalies moved to the training images",
    )


def add_group_flags(command: argparse.ArgumentParser) -> None:
    """Which images belong together."""
    command.add_argument(
        "--group",
        metavar="COLUMN",
        help="a manifest's column whose value images of one patient or part share; they stay "
        "together, and the promise is about new ones (docs/decisions.md)",
    )
    command.add_argument(
        "--group-by",
        metavar="PATTERN",
        help="the same from file names: a regular expression that finds the patient or part, such "
        r"as 'patient(\d+)'",
    )


def groups_asked(options: argparse.Namespace) -> dict[str, str | None]:
    """What the flags of `add_group_flags` say, for `read_dataset`."""
    return {name: getattr(options, name, None) for name in ("group", "group_by")}


def add_renewal_flags(command: argparse.ArgumentParser) -> None:
    """Of commands that write a model of a model, from good images."""
    add_rate_flag(command)
    add_set_flags(command)
    add_group_flags(command)
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        help="the model file to write (default: the same; its history tells what was before)",
    )
    command.add_argument(
        "--strict", action="store_true", help="refuse unreadable images instead of leaving them out"
    )


def training_set(options: argparse.Namespace, fraction: float = 1) -> Dataset:
    """The data set that the flags name, under the protocols that they ask for."""
    from igd.data.protocols import apply_protocols
    from igd.data.reading import read_dataset
    from igd.training.parameters import check_seed

    check_seed(options.seed)
    with warnings_as_lines():
        dataset = read_dataset(options.images, root=options.root, **groups_asked(options))
    return apply_protocols(
        dataset,
        normal_class=options.normal_class,
        fraction=fraction,
        contaminated=options.contamination or 0,
        seed=options.seed,
    )


def good_images(options: argparse.Namespace, images: Path, is_second: bool = False) -> Dataset:
    """Good images that set a threshold or are learnt from besides, read as the flags say; of a
    second set, `--root` is for a manifest alone.
    """
    from igd.data.formats.manifest import MANIFESTS
    from igd.data.protocols import one_class
    from igd.data.reading import read_dataset

    is_list = images.suffix.lower() in MANIFESTS
    root = options.root if is_list or not is_second else None
    dataset = read_dataset(images, root=root, **groups_asked(options))
    if options.normal_class is None or (is_second and not dataset.classes):
        return dataset
    return one_class(dataset, options.normal_class)


def labelled_set(options: argparse.Namespace, recorded: Any) -> Dataset:
    """The data set under the protocols given here or, where none is, under those that a model was
    trained with.
    """
    from igd.data.protocols import apply_protocols, repeat_for_testing, warn_of_learnt_anomalies
    from igd.data.reading import read_dataset
    from igd.training.parameters import check_seed

    check_seed(options.seed)
    if options.seed and not options.contamination:
        raise UserError("--seed draws what --contamination moves, and has no effect without it")
    dataset = read_dataset(options.images, root=options.root, **groups_asked(options))
    if options.normal_class is None and options.contamination is None:
        return repeat_for_testing(dataset, recorded)
    asked = apply_protocols(
        dataset,
        normal_class=options.normal_class,
        contaminated=options.contamination or 0,
        seed=options.seed,
    )
    warn_of_learnt_anomalies(asked, recorded)
    return asked

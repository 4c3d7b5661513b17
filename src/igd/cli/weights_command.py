"""`igd weights`: where ImageNet weights are, and how to get them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from igd.cli.common import DONE, add_command, progress_of


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "weights",
        help="list or fetch ImageNet weights",
        description="List or fetch ImageNet weights.",
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    add_command(
        actions,
        "list",
        run_list,
        "say which weights this machine has, and where",
        "igd weights list",
    )
    get = add_command(
        actions, "get", run_get, "download weights and check their hash", "igd weights get resnet18"
    )
    get.add_argument("name", help="such as resnet18")


def run_list(options: argparse.Namespace) -> int:
    from igd.backbones.weights import listed, way_to_get

    for row in listed():
        if options.json:
            print(json.dumps(row))
            continue
        name = str(row["name"])
        print(f"{name:<20}{row['weights'] or f'not here; get them with: {way_to_get(name)}'}")
    return DONE


def run_get(options: argparse.Namespace) -> int:
    from igd.backbones.weights import fetch_weights

    path = fetch_weights(options.name, progress_of(options))
    print(
        json.dumps({"name": options.name, "weights": str(path)})
        if options.json
        else f"{options.name}: {path}"
    )
    return DONE

"""`igd verify`: are model files what they were when they were made."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, USER_ERROR, add_command
from igd.errors import ModelWarning, UserError
from igd.text import visible


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "verify",
        run,
        "check that model files are what they were when they were made",
        "igd verify parts.igd parts.onnx",
    )
    command.add_argument("models", type=Path, nargs="+", help="model files, .igd or .onnx")


def run(options: argparse.Namespace) -> int:
    from igd.deploy.verification import verify

    damaged = 0
    for path in options.models:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)  # said below, in its place
                verified = verify(path)
        except UserError as error:
            damaged += 1
            if options.json:
                print(json.dumps({"path": str(path), "is_whole": False, "error": str(error)}))
            print(f"igd: error: {error}", file=sys.stderr)
            continue
        if options.json:
            print(json.dumps({"is_whole": True, "error": None, **verified.to_json()}))
            continue
        checksum = "checksum agrees" if verified.has_checksum else "has no checksum: made before"
        scored = (
            f"{verified.images} images score within {verified.difference:.1g} of what they did"
            if verified.images
            else "no images to score again"
        )
        print(f"{visible(path)}: {checksum}; {scored}")
    return USER_ERROR if damaged else DONE

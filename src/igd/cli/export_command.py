"""`igd export`: a model as an ONNX file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, add_rate_flag, progress_of, use_rate
from igd.errors import UserError


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "export",
        run,
        "write a model as ONNX, checked against it",
        "igd export parts.igd parts.onnx",
    )
    command.add_argument("model", type=Path, help="a model file")
    command.add_argument("output", type=Path, help="the .onnx file to write")
    add_rate_flag(command)
    command.add_argument(
        "--check",
        type=Path,
        metavar="FOLDER",
        help="images to compare both on (default: those that the model keeps, up to eight)",
    )
    command.add_argument(
        "--int8", action="store_true", help="convolutions in 8-bit integers: smaller, less exact"
    )
    command.add_argument(
        "--tolerance",
        type=float,
        help="largest difference of scores and maps (default: 0.001; with --int8 0.1)",
    )


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from igd.data.sources import as_source
    from igd.deploy.export import export
    from igd.detector import IGD

    if options.output.suffix.lower() == ".igd" or options.model.suffix.lower() == ".onnx":
        raise UserError(
            f"{options.model} {options.output}: the .igd file comes first, the .onnx file to write "
            f"second"
        )
    detector = IGD.load(options.model)
    use_rate(options, detector)
    images = places = None
    if options.check:
        source = as_source(options.check)
        shown = [
            each
            for number, name in enumerate(source.names)
            for each in detector.model_inputs(name, source.read(number))
        ]
        images = np.concatenate([pixels for pixels, _ in shown])
        known = [own for _, own in shown if own is not None]
        places = np.concatenate(known) if known else None
    parity = export(
        detector,
        options.output,
        images=images,
        places=places,
        int8=options.int8,
        tolerance=options.tolerance,
        progress=progress_of(options),
    )
    if options.json:
        print(
            json.dumps(
                {
                    "file": str(options.output),
                    "bytes": options.output.stat().st_size,
                    **parity.to_json(),
                }
            )
        )
    else:
        print(f"{options.output}: {options.output.stat().st_size / 1e6:.1f} MB; {parity}")
    return DONE

"""`igd info`: what a model file says about itself."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from igd.cli.common import DONE, add_command, warnings_as_lines
from igd.text import visible

BLOCKS, PLAIN = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


def add(commands: Any) -> None:
    command = add_command(
        commands,
        "info",
        run,
        "say what a model learnt from, what it promises and what it was before",
        "igd info parts.igd",
    )
    command.add_argument("model", type=Path, help="a model file, .igd or .onnx")


def run(options: argparse.Namespace) -> int:
    from igd.deploy.model_info import model_info

    with warnings_as_lines():
        info = model_info(options.model)
    if options.json:
        print(json.dumps(info))
        return DONE
    for name, value in _lines(info):
        print(f"{name:<14}{visible(value)}")
    return DONE


def _lines(info: dict[str, Any]) -> Iterator[tuple[str, str]]:
    calibration = info["calibration"]
    scales = info.get("scales", [])
    yield "model", f"{info['path']}, {info['bytes'] / 1e6:.1f} MB, {info['kind']}"
    yield "sha256", info["sha256"]
    yield "made", f"{info.get('made_at', 'unknown')} by {info.get('made_by', 'unknown')}"
    source = f" of {info['source']}" if "source" in info else ""
    skipped = f", {len(info['skipped'])} left out" if info.get("skipped") else ""
    updates, learnt = info.get("updates", []), info.get("images", "unknown")
    first = learnt - sum(each["images"] for each in updates) if updates else learnt
    yield "learnt from", f"{first} images{source}{skipped}"
    for each in updates:
        yield "", f"{each['made_at']}: {each['images']} more of {each['source']}"
    if updates:
        yield "", f"{learnt} in all"
    told = ("recipe", "objective", "seed", "backbone")
    yield "by", ", ".join(f"{name} {info[name]}" for name in told if name in info)
    if scales:
        yield "scales", ", ".join(map(str, scales))
    colour = "colour" if info["channels"] == 3 else "grey"
    yield "reads", _reads(info, colour)
    if info["roi"]:
        yield "region", _region(info["roi"])
    if info["align"]:
        yield "aligns", "each part to its usual place"
    if "int8" in info:
        yield "exported", f"by {info['exported_by']}{', 8-bit' if info['int8'] else ''}"
    new = f" of new groups (by {info['grouped_by']})" if "grouped_by" in info else ""
    yield (
        "promise",
        (
            f"at most {info['max_false_alarms']:.1%} of normal images{new} are alarms: scores "
            f"above {info['threshold']:.4f} (lowest possible rate: {info['lowest_rate']:.2%})"
        ),
    )
    yield "calibrated", _calibration(calibration)
    yield from _histogram(info["histogram"], info["threshold"])
    for number, former in enumerate(reversed(info["history"])):
        yield "" if number else "before", _calibration(former)
    for number, warning in enumerate(info.get("warnings", [])):
        yield "" if number else "warnings", warning


def _region(roi: dict[str, Any]) -> str:
    """What a model reads of an image."""
    (width, height), box = roi["frame"], ",".join(map(str, roi["box"]))
    mask = f", {roi['share']:.0%} of it by a mask" if roi["share"] < 1 else ""
    return f"{box} (x,y,width,height) of images of {width}x{height}{mask}"


def _reads(info: dict[str, Any], colour: str) -> str:
    """What of an image the model is shown."""
    rows, columns = info["shape"]
    read = f"{columns}x{rows} pixels"
    if "tile" not in info:
        return f"{read}, {colour}, by {info['fit']}"
    tile, scaled = info["tile"], "" if info["side"] == info["tile"] else f", each as {read}"
    shared = "one descriptor for all" if info["tile_descriptors"] == "shared" else "each its own"
    return (
        f"tiles of {tile}x{tile} pixels{scaled}, {colour}, {info['overlap']:.1%} overlap, {shared}"
    )


def _calibration(record: dict[str, Any]) -> str:
    """One calibration, as far as a file tells of it."""
    source = f" of {record['source']}" if "source" in record else ""
    how = f" ({record['how']})" if "how" in record else ""
    when = f"{record['made_at']}: " if "made_at" in record else ""
    rate, threshold = record.get("false_alarm_rate"), record.get("threshold")
    promise = f", {rate:.1%} above {threshold:.4f}" if rate and threshold is not None else ""
    return f"{when}{record['images']} images{source}{how}{promise}"


def _histogram(histogram: dict[str, Any], threshold: float) -> Iterator[tuple[str, str]]:
    """Scores of the calibration images as small bars, with a mark under the threshold."""
    low, high, counts = (histogram[name] for name in ("low", "high", "counts"))
    yield "scores", f"{bars(counts, _levels())}  {low:.3f} to {high:.3f}"
    place = min(len(counts) - 1, int((threshold - low) / (high - low) * len(counts)))
    yield "", f"{' ' * place}^ threshold"


def bars(counts: list[int], levels: str = BLOCKS) -> str:
    """A bar for each count; only nothing has none.

    >>> bars([0, 1, 8, 4])
    ' ▁█▄'
    """
    most = max(*counts, 1)
    return "".join(levels[-(-each * (len(levels) - 1) // most)] for each in counts)


def _levels() -> str:
    """Bars that standard output can write."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return PLAIN
    return BLOCKS

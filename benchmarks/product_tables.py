"""Tables of what users rely on: promises, audits, exports, tiles, updates, faults."""

from __future__ import annotations

from typing import Any

from markdown_table import table

from igd.scales.recipes import FORMER_NAMES


def promises_table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['calibration_images']} images to calibrate with and {result['new_images']} new "
        f"ones in a split. Splits of one scored pool hold whatever the detector is; the second "
        f"table tests this one.\n",
        "| promised | realised, mean of splits | 95 % interval of that mean | 95 % binomial "
        "interval of one split | "
        "splits inside (should be) |",
        "|---|---|---|---|---|",
    ]
    for row in result["promises"]:
        lines.append(
            f"| {row['promised']:.1%} | {row['realised_mean']:.2%} | "
            f"{spread(row['interval_of_the_mean'])} | "
            f"{spread(row['binomial_interval_of_a_split'])} | "
            f"{row['share_of_splits_inside']:.1%} ({row['share_that_should_be']:.1%}) |"
        )
    lines += [
        f"\nAs used: the detector's own {result['own_calibration_images']} held-out images set "
        f"the threshold, the other "
        f"{result['own_new_images']} are new; one draw.\n",
        "| promised | realised | 95 % interval, both draws counted |",
        "|---|---|---|",
    ]
    for row in result["own_promises"]:
        lines.append(
            f"| {row['promised']:.1%} | {row['realised']:.2%} | {spread(row['interval'])} |"
        )
    return "\n".join(lines) + "\n"


def audits_table(result: dict[str, Any]) -> str:
    lines = [
        "| training images | planted among | precision in the top 10 % | by chance | AUROC | "
        "time, s |",
        "|---|---|---|---|---|---|",
    ]
    for run in result["audits"]:
        lines.append(
            f"| {run['name']} | {run['planted']} of {run['images']} | {run['precision']:.3f} | "
            f"{run['planted'] / run['images']:.3f} | {run['auroc']:.3f} | {run['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def exported_table(result: dict[str, Any]) -> str:
    rows = []
    for row in result["exported"]:
        onnx, int8 = row["onnx"], row["int8"]
        sizes = " / ".join(
            f"{each / 1e6:.1f}" for each in (row["bytes"], onnx["bytes"], int8["bytes"])
        )
        found = " / ".join(f"{each:.4f}" for each in (row["auroc"], onnx["auroc"], int8["auroc"]))
        differences = (f"{onnx['score']:.0e}", f"{onnx['map']:.0e}", f"{int8['score']:.2f}")
        scales = ", ".join(FORMER_NAMES.get(name, name) for name in row["scales"])
        rows.append([scales, sizes, *differences, found])
    names = ("scales", ".igd / .onnx / int8, MB", "scores differ by", "maps by", "int8: scores by")
    return table((*names, "image AUROC of the original / .onnx / int8"), rows)


def torture_table(result: dict[str, Any]) -> str:
    names = ("tried", "refused", "survived", "unnoticed", "wrong", "crashed", "hung", "peak_mb")
    rows = [
        [row["name"], *(f"{row[name]:,}" for name in names)]
        for part in result["torture"].values()
        for row in part
    ]
    found = "".join(
        f"- {row['name']}: `{example}`\n"
        for part in result["torture"].values()
        for row in part
        for example in (*row["examples"], *([row["note"]] if "note" in row else ()))
    )
    words = (
        "*Refused*: with a sentence. *Unnoticed*: those of the survived whose answer changed where "
        "nothing in the file could tell, a changed byte of a JPEG or a forged file with a right "
        "checksum. *Wrong*: any other changed answer, or a file that was lost "
        "(`benchmarks/torture/tally.py`).\n"
    )
    return f"{table(('what', *names[:-1], 'peak memory, MB'), rows)}\n{words}" + (
        f"\nWhat went wrong, up to twelve of each row, and notes:\n\n{found}" if found else ""
    )


def spread(interval: list[float]) -> str:
    return f"{interval[0]:.2%} to {interval[1]:.2%}"


def recalibrations_table(result: dict[str, Any]) -> str:
    ways = list(next(iter(next(iter(result["recalibrations"].values())).values())))
    lines = [
        f"| set | change | {' | '.join(f'{way} renewed' for way in ways)} |",
        "|---|---|" + len(ways) * "---|",
    ]
    for name, changes in result["recalibrations"].items():
        for change, found in changes.items():
            cells = (
                f"{found[way]['image_auroc']:.3f}, {found[way]['miss_rate']:.0%} missed"
                for way in ways
            )
            lines.append(f"| {name} | {change} | {' | '.join(cells)} |")
    said = (
        "Image AUROC, and misses at a promised rate of 5 %. `igd calibrate` renews medians and the "
        "threshold. Test figures of these sets were seen when that was decided.\n"
    )
    return "\n".join(lines) + f"\n\n{said}"


def aimed_table(result: dict[str, Any]) -> str:
    movements = list(next(iter(result["aimed"].values()))["default"])
    lines = [f"| set | with | {' | '.join(movements)} |", "|---|---|" + len(movements) * "---|"]
    for name, ways in result["aimed"].items():
        for way, found in ways.items():
            cells = (
                f"{found[each]['image_auroc']:.3f}, {found[each]['miss_rate']:.0%}, "
                f"{found[each]['false_alarm_rate']:.0%}"
                if "refused" not in found
                else "refused"
                for each in movements
            )
            lines.append(f"| {name} | {way} | {' | '.join(cells)} |")
    said = (
        "Image AUROC, misses and false alarms at a promised rate of 5 %. Boxes were drawn around "
        "what the training images show. What comes into sight when an image is moved is mirrored.\n"
    )
    return "\n".join(lines) + f"\n\n{said}"


def tiles_table(result: dict[str, Any]) -> str:
    rows = [
        [
            tiled_settings(row["settings"]),
            f"{row['seconds']:.0f}",
            f"{row['cpu_seconds']:.0f}",
            f"{row['peak_mb']:,}",
            f"{row['model_mb']:.0f}",
            *(f"{row[kind]['alarms']} of {row[kind]['images']}" for kind in ("scratch", "mark")),
            *(f"{row[kind]['located']} of {row[kind]['images']}" for kind in ("scratch", "mark")),
            row["mark"]["width"] or "-",
            f"{row['good']['alarms']} of {row['good']['images']}",
            row["cpu_seconds_an_image"],
        ]
        for row in result["tiled"]
    ]
    names = ("each tile as", "training, s", "CPU, s", "peak memory, MB", "model, MB")
    found = ("scratches found", "marks found", "scratches located", "marks located")
    last = ("a mark's region, pixels", "false alarms", "scoring, CPU s an image")
    return table((*names, *found, *last), rows) + (
        "\nScratches are two pixels wide, marks twelve. *Found*: the image is an alarm, at a "
        "promised rate of 5 %. *Located*: a region of the map lies at the defect. The machine was "
        "busy: CPU time tells more. The scale `grain` was added, and the photograph enlarged, "
        "after 7 of 18 scratches were found on a denser wall without it.\n"
    )


def tiled_settings(settings: dict[str, Any]) -> str:
    side = settings.get("image_size")
    return f"{side} x {side} pixels" if settings.get("tile") else "no tiles, 256 x 256 pixels"


def updates_table(result: dict[str, Any]) -> str:
    ways = list(next(iter(next(iter(result["updates"].values())).values())))
    rows = []
    for name, changes in result["updates"].items():
        for change, found in changes.items():
            for light in ("new", "former"):
                each = [found[way][light] for way in ways]
                rows.append(
                    [
                        name,
                        change,
                        light,
                        *(
                            f"{of['image_auroc']:.3f}, {of['miss_rate']:.0%}, "
                            f"{of['false_alarm_rate']:.0%}"
                            for of in each
                        ),
                    ]
                )
    said = (
        "Image AUROC, misses, and false alarms where 5 % are promised, on test images under the "
        "new light and under the former one. Nothing was chosen by these figures.\n"
    )
    return f"{table(('set', 'change', 'tested in', *ways), rows)}\n{said}"

"""Tables of what things cost: time, memory, disk."""

from __future__ import annotations

from typing import Any

from markdown_table import table


def costs_table(result: dict[str, Any]) -> str:
    costs = result["ms_an_image"]
    alone = costs["lite0, ONNX Runtime"]["median"]
    rows = [
        [name, cost["median"], cost["least"], f"{cost['median'] / alone:.2f}"]
        for name, cost in costs.items()
    ]
    return table(
        ("what", "median, ms", "least, ms", "median / that of Lite0 in ONNX Runtime"), rows
    )


def ratios_table(result: dict[str, Any]) -> str:
    rows = [
        [name, row["ours_ms"], row["theirs_ms"], f"{row['ratio']:.2f}"]
        for name, row in result["ratios"].items()
    ]
    return table(("what", "ours, ms", "plain, ms", "times as fast"), rows)


def served_table(result: dict[str, Any]) -> str:
    rows = [
        [
            f"model alone, {row['batch']} at a time",
            f"{row['images_per_second']:.0f}",
            f"{row['ms']:.0f}",
            "",
            "",
        ]
        for row in result["model_alone"]
    ]
    for row in result["served"]:
        times = (f"{row['p50_ms']:.0f}", f"{row['p99_ms']:.0f}", row["refused"])
        rows.append(
            [f"served, {row['clients']} clients at once", f"{row['images_per_second']:.0f}", *times]
        )
    readings = ", ".join(
        f"{row['mb']:.0f} MB after {row['requests']:,}" for row in result["memory"]
    )
    names = ("what", "images a second", "median, ms", "99th percentile, ms", "refused")
    return f"{table(names, rows)}\nMemory of the server, by number of requests: {readings}.\n"


def engines_table(result: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{row['images_per_second']:.1f}",
            f"{row['of_the_model_alone']:.0%}",
            f"{row['core_ms']:.0f}",
        ]
        for name, row in result["engines"].items()
    ]
    memory = ", ".join(f"{name} {mb:,.0f} MB" for name, mb in result["memory_mb"].items())
    said = (
        f"Shares are of the model alone in as many threads, in the same round; core ms are the "
        f"time that cores spent on an image, which other work on the machine changes less. Of an "
        f"image, Ray takes {result['ray_core_ms']:.1f} core ms beside one thread without it, and "
        f"{result['ray_start_seconds']:.0f} s to start. Memory: {memory}. Load of the "
        f"{result['cores']} cores, by round: {listed(result['load'])}.\n"
    )
    names = ("way", "images a second", "of the model alone", "core ms an image")
    return f"{table(names, rows)}\n{said}"


def ranks_table(result: dict[str, Any]) -> str:
    rows = list(result["ranks"].items())
    faster = result["times_as_fast"]
    return f"{table(('processes', 'seconds'), rows)}\nTwo are {faster} times as fast as one.\n"


def waiting_table(result: dict[str, Any]) -> str:
    policies = ("spinning", "briefly", "sleeping")
    rows = [
        [beside, name, *(f"{row[policy]:.2f}" for policy in policies)]
        for beside, by_name in result["waited"].items()
        for name, row in by_name.items()
    ]
    return table(
        ("machine", "work", "spinning, s", "a thousand spins, s", "sleeping at once, s"), rows
    )


def listed(values: list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def growth_table(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['images']:,}",
            f"{row['pixels_mb']:,.0f}",
            row["seconds"],
            f"{1e3 * row['seconds'] / row['images']:.1f}",
            row["peak_mb"],
        ]
        for row in result["growth"]
    ]
    return (
        table(("images", "their pixels, MB", "seconds", "ms an image", "peak memory, MB"), rows)
        + "\n![](growth.svg)\n"
    )


def seconds_table(result: dict[str, Any]) -> str:
    return table(("what", "seconds"), result["seconds"].items())


def installations_table(result: dict[str, Any]) -> str:
    rows = [
        [name, row["seconds"], row["megabytes"]] for name, row in result["installations"].items()
    ]
    return table(("what is installed", "seconds", "MB on disk"), rows)


def roofline_table(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{shape}: {side}",
            row["gflop_a_step"],
            row["ms_a_step"],
            row["least_ms_a_step"],
            f"{row['gflop_a_second']} of {row['machine_gflop_a_second']}",
            f"{row['share_of_arithmetic']:.0%}",
        )
        for shape, sides in result["roofline"].items()
        for side, row in sides.items()
    ]
    head = (
        "a step of", "GFLOP", "ms", "ms at the rate of a matrix product", "GFLOP a second",
        "convolutions and matrix products, of the time",
    )  # fmt: skip
    return table(head, rows)

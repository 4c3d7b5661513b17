"""Bytes, images and headers changed by a seed and a number: the same two give the same case."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
DEEP = (100, 900, 950, 975, 990, 2000, 100_000)  # levels of nesting
NESTED = "nested to level "  # stands for them until the header is written
WILD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 7, 4096, 2**31, 2**63, 10**40, 0.5, -1e308, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "../x",
        "\x1b[2J",
        "x" * 10_000,
        [],
        {},
        [[]],
        [0] * 999,
    ),
)


def chance(seed: int, number: int) -> Generator:
    return np.random.default_rng([seed, number])


def flip(data: bytearray, rng: Generator) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return data


def overwrite(data: bytearray, rng: Generator) -> bytearray:
    """A number in the file, of one, two or four bytes, becomes an extreme one."""
    size = int(rng.choice([1, 2, 4]))
    place = int(rng.integers(max(1, len(data) - size)))
    value = int(rng.choice(EXTREMES)) & (256**size - 1)
    data[place : place + size] = value.to_bytes(size, str(rng.choice(["big", "little"])))
    return data


def head(data: bytearray, rng: Generator) -> bytearray:
    """The same among the first bytes, where sizes are."""
    return overwrite(data[:64], rng) + data[64:]


def zero(data: bytearray, rng: Generator) -> bytearray:
    start, end = sorted(map(int, rng.integers(len(data) + 1, size=2)))
    data[start:end] = bytes(end - start)
    return data


def delete(data: bytearray, rng: Generator) -> bytearray:
    start = int(rng.integers(len(data)))
    del data[start : start + int(rng.integers(1, 200))]
    return data


def repeat(data: bytearray, rng: Generator) -> bytearray:
    start = int(rng.integers(len(data)))
    data[start:start] = data[start : start + int(rng.integers(1, 200))]
    return data


def noise(data: bytearray, rng: Generator) -> bytearray:
    start = int(rng.integers(len(data)))
    there = data[start : start + int(rng.integers(1, 200))]
    data[start : start + len(there)] = rng.bytes(len(there))
    return data


def append(data: bytearray, rng: Generator) -> bytearray:
    return data + rng.bytes(int(rng.integers(1, 500)))


def truncate(data: bytearray, rng: Generator) -> bytearray:
    return data[: int(rng.integers(len(data)))]


BYTES: dict[str, Callable[[bytearray, Generator], bytearray]] = {
    each.__name__: each
    for each in (flip, overwrite, head, zero, delete, repeat, noise, append, truncate)
}


def closed(data: bytearray, rng: Generator) -> bytearray:
    """A JPEG that was cut, with an end put behind it."""
    start = data.find(b"\xff\xda") + 14  # within the first scan
    return data[: int(rng.integers(start, len(data) - 12))] + b"\xff\xd9"


def resealed(data: bytearray, rng: Generator) -> bytearray:
    """A PNG of which one chunk was changed and has the checksum that belongs to it: a forged file,
    not a damaged one.
    """
    at, chunks = 8, []
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        chunks.append((at + 4, at + 8 + length))
        at += 12 + length
    start, end = chunks[int(rng.integers(len(chunks)))]
    if end > start + 4:
        data[start + 4 : end] = overwrite(data[start + 4 : end], rng)
    data[end : end + 4] = zlib.crc32(data[start:end]).to_bytes(4, "big")
    return data


def changed_image(
    suffix: str, contents: bytes, rng: Generator
) -> tuple[str, bytes]:  # what was done, and the file
    kinds: dict[str, Callable[[bytearray, Generator], bytearray]] = dict(BYTES)
    if suffix == "jpg":
        kinds["closed"] = closed
    if suffix == "png":
        kinds["resealed"] = resealed
    kind = str(rng.choice(sorted(kinds)))
    return kind, bytes(kinds[kind](bytearray(contents), rng))


def changed_bytes(contents: bytes, rng: Generator) -> tuple[str, bytes]:
    kind = str(rng.choice(sorted(BYTES)))
    return kind, bytes(BYTES[kind](bytearray(contents), rng))


def changed_header(header: Any, rng: Generator) -> tuple[str, Any]:
    """A JSON header with one value somewhere replaced, removed, or nested out of all reason."""
    header = copy.deepcopy(header)
    places = list(_places(header))
    where, key = places[int(rng.integers(len(places)))]
    way = int(rng.integers(12))
    if way == 0 and isinstance(where, dict):
        del where[key]
    elif way == 1 and isinstance(where[key], list) and where[key]:
        where[key] = where[key] * 1000
    elif way == 2:
        where[key] = f"{NESTED}{rng.choice(DEEP)}"
    else:
        where[key] = WILD[int(rng.integers(len(WILD)))]
    return f"{key}, {way}", header


def written(header: Any) -> str:
    """A header as JSON, with its nesting, which no encoder would write."""
    before, found, after = json.dumps(header).partition(f'"{NESTED}')
    if not found:
        return before
    levels, _, after = after.partition('"')
    return before + "[" * int(levels) + "]" * int(levels) + after


def _places(value: Any) -> Any:
    for key, inner in list(
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield value, key
        yield from _places(inner)


def forged_igd(path: Path, target: Path, rng: Generator) -> str:
    """An .igd file with a changed header or tensor, and the checksum that belongs to it."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    from igd.files.tensors import CHECKSUM, HEADER, checksum

    with safe_open(path, framework="pt") as opened:
        header = json.loads(opened.metadata()[HEADER])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    del header[CHECKSUM]
    name = str(rng.choice(sorted(tensors)))
    way = int(rng.integers(8))
    told = f"{name}, {way}"
    if way == 0:
        del tensors[name]
    elif way == 1:
        tensors[name] = tensors[name].flatten()[:0]
    elif way == 2:
        tensors[name] = tensors[name].double()
    elif way == 3:
        value = -1e30 if tensors[name].is_floating_point() else 1
        tensors[name] = torch.full_like(tensors[name], value)
    elif way == 4:
        tensors[name] = tensors[name].unsqueeze(0).contiguous()
    else:
        told, header = changed_header(header, rng)
    try:
        header[CHECKSUM] = checksum(json.loads(written(header)), tensors)
    except RecursionError:  # it won't be asked for
        header[CHECKSUM] = "0" * 64
    save_file(tensors, target, metadata={HEADER: written(header)})
    return told


def forged_onnx(contents: bytes, rng: Generator) -> tuple[str, bytes]:
    """An .onnx file with changed bytes or header, and the checksum that belongs to it."""
    import onnx

    from igd.inference.checksum import DIGITS, KEY, with_checksum
    from igd.inference.runtime import HEADER

    own = contents[: contents.rindex(KEY) - 4]
    assert with_checksum(own) == contents, DIGITS
    if rng.integers(2):
        kind, changed = changed_bytes(own, rng)
        return kind, with_checksum(changed)
    model = onnx.load_model_from_string(own)
    (entry,) = [each for each in model.metadata_props if each.key == HEADER]
    told, header = changed_header(json.loads(entry.value), rng)
    entry.value = written(header)
    return told, with_checksum(model.SerializeToString())

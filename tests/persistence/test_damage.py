"""A model file that was changed is refused; none gives another answer, a traceback or gigabytes."""

from __future__ import annotations

import copy
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import stripes

from igd import IGD
from igd.errors import UserError
from igd.files.tensors import read_tensors, write_tensors
from igd.persistence.model_file import FORMAT, KIND

# Fmt: skip.
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    0.5,
    4096,
    2**31,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 100,
    "\x1b[2J\n",
    [],
    [[]],
    {},
    {"a": 1},
    [1] * 1000,
]


@pytest.fixture
def saved(fitted: IGD, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model.igd")
    return tmp_path / "model.igd"


def test_flipped_bits(fitted: IGD, saved: Path) -> None:
    whole, rng, image = saved.read_bytes(), np.random.default_rng(0), stripes(1, seed=9)[0]
    score = fitted.predict(image).score
    for place in rng.integers(0, 8 * len(whole), 60):
        flipped = np.frombuffer(whole, np.uint8).copy()
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(flipped.tobytes())
        try:
            loaded = IGD.load(saved)
        except UserError:
            continue
        assert loaded.predict(image).score == pytest.approx(score, abs=1e-6)


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a header."""
    if way:
        yield way
    items = node.items() if isinstance(node, dict) else enumerate(node[:2])
    for key, value in items:
        if isinstance(value, dict | list):
            yield from places(value, (*way, key))
        else:
            yield (*way, key)


def test_headers_that_were_changed_with_their_checksum(saved: Path) -> None:
    header, tensors = read_tensors(saved, KIND, FORMAT)
    ways = [way for way in places(header) if way[0] not in ("kind", "format")]
    image = stripes(1)[0]
    expected, others = IGD.load(saved).predict(image).score, []
    rng, refused, accepted, told = np.random.default_rng(0), 0, 0, []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(100):
        changed = copy.deepcopy(header)
        *above, last = ways[rng.integers(len(ways))]
        node = changed
        for key in above:
            node = node[key]
        if number % 5 == 0 and isinstance(node, dict):
            del node[last]
        else:
            node[last] = ODD[rng.integers(len(ODD))]
        write_tensors(saved, changed, tensors)
        try:
            score = IGD.load(saved).predict(image).score
            accepted += 1
            assert 0 <= score <= 1
            if score != expected:
                others.append((*above, last, node.get(last) if isinstance(node, dict) else None))
        except UserError as error:
            refused += 1
            told.append(str(error))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # in KB, on Linux
    # What is accepted changes nothing: names, details of the training, what is its default anyway.
    assert others == []
    assert refused > 60, f"{accepted} accepted"
    assert not any("\n" in text or "\x1b" in text for text in told)
    assert grown < 1_000_000


@pytest.mark.parametrize("side", [4096, 10**9, 2**63])
def test_a_large_side_is_refused_before_anything_is_made_for_it(saved: Path, side: int) -> None:
    header, tensors = read_tensors(saved, KIND, FORMAT)
    header["geometry"]["side"] = side
    if side == 4096:
        tensors["calibration.examples"] = torch.zeros(0, 1, side, side, dtype=torch.uint8)
    write_tensors(saved, header, tensors)
    with pytest.raises(UserError):
        IGD.load(saved)


def test_a_thousand_scales_and_a_deep_header(saved: Path) -> None:
    header, tensors = read_tensors(saved, KIND, FORMAT)
    write_tensors(saved, {**header, "scales": header["scales"] * 1000}, tensors)
    with pytest.raises(UserError, match="1000 scales"):
        IGD.load(saved)
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    for key in ("geometry", "objective", "scales", "fusion", "parameters"):
        write_tensors(saved, {**header, key: deep}, tensors)
        with pytest.raises(UserError):
            IGD.load(saved)
    assert json.dumps(deep)


def test_another_model_in_its_place_changes_nothing(fitted: IGD, saved: Path) -> None:
    image = stripes(1, seed=9)[0]
    loaded = IGD.load(saved)
    with saved.open("rb+") as opened:  # in place, as `cp` does it
        opened.write(bytes(saved.stat().st_size))
        opened.truncate(100)
    assert loaded.predict(image).score == pytest.approx(fitted.predict(image).score, abs=1e-6)


def test_numbers_of_a_kind_that_igd_never_writes(saved: Path) -> None:
    header, tensors = read_tensors(saved, KIND, FORMAT)
    name = next(iter(tensors))
    write_tensors(saved, header, {**tensors, name: torch.zeros(4, dtype=torch.float8_e4m3fn)})
    with pytest.raises(UserError, match="damaged"):
        IGD.load(saved)

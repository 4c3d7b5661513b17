"""A flipped bit anywhere in an exported model is noticed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from igd.inference.checksum import KEY, has_its_checksum, with_checksum


def model() -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:])
    return helper.make_model(graph).SerializeToString()


def test_it_stays_a_model_that_says_its_checksum() -> None:
    read = onnx.load_from_string(with_checksum(model()))
    onnx.checker.check_model(read)
    assert [entry.key for entry in read.metadata_props] == [KEY.decode()]


def test_of_what_was_written() -> None:
    assert has_its_checksum(with_checksum(model())) is True
    assert has_its_checksum(model()) is None
    assert has_its_checksum(b"") is None


def test_every_flipped_bit_is_noticed() -> None:
    whole = with_checksum(model())
    for bit in range(8 * len(whole)):
        flipped = np.frombuffer(whole, np.uint8).copy()
        flipped[bit // 8] ^= 1 << bit % 8
        assert has_its_checksum(flipped.tobytes()) is not True


@pytest.mark.parametrize("left", [1, 40, 90])
def test_what_was_cut_off_is_noticed(left: int) -> None:
    assert has_its_checksum(with_checksum(model())[:-left]) is not True

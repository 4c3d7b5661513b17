"""An exported model that ONNX Runtime loads and can't run is an error that says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

from igd.errors import DamagedModel
from igd.inference.runtime import Runtime


def test_a_graph_that_fails_names_the_model() -> None:
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : node_Conv\nmore")

    runtime = Runtime.__new__(Runtime)
    runtime.channels_, runtime.session = 3, SimpleNamespace(run=fail)
    with pytest.raises(DamagedModel, match=r"can't be run, or is damaged \(.*node_Conv\)"):
        runtime.score_batch(np.zeros((1, 3, 8, 8), dtype=np.uint8))

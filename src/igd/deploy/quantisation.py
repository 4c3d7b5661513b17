"""Convolutions in 8-bit integers: a smaller file, faster where the processor has instructions for
it, and less exact.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from igd.inference.runtime import INPUT, PLACES


def quantised(
    model: onnx.ModelProto, pixels: NDArray[np.uint8], places: NDArray[np.int64] | None = None
) -> onnx.ModelProto:
    """The same graph with 8-bit convolutions, their ranges measured on images (n, channels, side,
    side).
    """
    with tempfile.TemporaryDirectory(prefix="igd-") as folder:
        plain, prepared, small = (
            Path(folder) / name for name in ("plain.onnx", "prepared.onnx", "small.onnx")
        )
        onnx.save(model, plain)
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            small,
            _Images(pixels, places),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Conv"],
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(small)


class _Images(CalibrationDataReader):
    """One image after another, in colour."""

    def __init__(self, pixels: NDArray[np.uint8], places: NDArray[np.int64] | None) -> None:
        colour = np.repeat(pixels, 3, axis=1) if pixels.shape[1] == 1 else pixels
        given: dict[str, NDArray[Any]] = {INPUT: colour}
        if places is not None:
            given[PLACES] = places
        self.images = iter(
            {name: each[n : n + 1] for name, each in given.items()} for n in range(len(colour))
        )

    def get_next(self) -> dict[str, Any] | None:
        return next(self.images, None)

"""Exported models without PyTorch: NumPy, Pillow and ONNX Runtime are enough.

>>> from igd.runtime import Runtime
>>> judge = Runtime.load("parts.onnx")                 # doctest: +SKIP
>>> judge.predict("parts/new/0001.png").score          # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from igd.data.geometry import FITS, LARGEST_SIDE, Geometry
from igd.errors import UserError
from igd.judging import Judge, Seen
from igd.timing import cores

FORMAT = 1
HEADER = "igd"  # key of the JSON header among the metadata of the graph
INPUT = "pixels"
OUTPUTS = ("score", "p_value", "map")  # and the terms of the score behind them


class Runtime(Judge):
    """A model in ONNX Runtime; judges images as the detector does that it was exported from."""

    def __init__(self, model: bytes, described: str, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or _threads()
        options.log_severity_level = 3
        try:  # from memory: a graph can name other files, and none of them is opened
            self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime has a dozen kinds of its own
            reason = str(error).splitlines()[0][:200]
            raise UserError(
                f"{described}: not a model that ONNX Runtime can run, or damaged ({reason}); export it again"
            ) from None
        try:
            self._read(json.loads(self.session.get_modelmeta().custom_metadata_map[HEADER]))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UserError(f"{described}: not a model exported by igd, or damaged; make it with: igd export") from None
        self.terms = [output.name for output in self.session.get_outputs()][len(OUTPUTS) :]

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> Runtime:
        """Read an exported model; nothing but its graph is run, and no other file is opened."""
        path = Path(path)
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        return cls(path.read_bytes(), str(path), threads)

    def _read(self, header: dict[str, Any]) -> None:
        if header["format"] > FORMAT:
            raise UserError(f"made by a newer igd (format {header['format']}); upgrade with: pip install -U igd-anomaly")
        self.geometry_ = Geometry(**header["geometry"])
        self.channels_, self.smallest_side_ = header["channels"], header["smallest_side"]
        self.calibration_scores_ = np.array(header["calibration_scores"], dtype=np.float64)
        self.calibration_peaks_ = np.array(header["calibration_peaks"], dtype=np.float64)
        self.false_alarm_rate_, self.usual_heat_ = header["false_alarm_rate"], header["usual_heat"]
        self.provenance_, self.parity_ = header["provenance"], header["parity"]
        count, side = len(self.calibration_scores_), self.geometry_.side
        known = [output.name for output in self.session.get_outputs()[: len(OUTPUTS)]]
        possible = (
            self.geometry_.fit in FITS
            and 0 < side <= LARGEST_SIDE
            and self.channels_ in (1, 3)
            and self.calibration_scores_.shape == self.calibration_peaks_.shape == (count,)
            and np.isfinite([*self.calibration_scores_, *self.calibration_peaks_]).all()
            and 0 < self.false_alarm_rate_ < 1
            and (count + 1) * self.false_alarm_rate_ >= 1 - 1e-9
            and math.isfinite(self.usual_heat_)
            and known == list(OUTPUTS)
            and self.session.get_inputs()[0].shape[1:] == [3, side, side]
        )
        if not possible:
            raise ValueError("impossible description")

    def see(self, pixels: NDArray[np.uint8]) -> Seen:
        colour = np.repeat(pixels, 3, axis=1) if self.channels_ == 1 else pixels
        score, _, heat, *terms = self.session.run(None, {INPUT: colour})
        return Seen(score, heat, dict(zip(self.terms, terms, strict=True)))


def _threads() -> int:
    """Threads to use: what OMP_NUM_THREADS asks for, else every core that this process may run on."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return cores()

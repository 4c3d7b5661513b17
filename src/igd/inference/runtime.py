"""Exported models without PyTorch: NumPy, Pillow and ONNX Runtime are enough.

>>> from igd.inference.runtime import Runtime
>>> predictor = Runtime.load("parts.onnx")                 # doctest: +SKIP
>>> predictor.predict("parts/new/0001.png").score          # doctest: +SKIP
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igd import cpu
from igd.data.geometry import LARGEST_SIDE, Geometry
from igd.data.tiles import Tiling
from igd.errors import DamagedModel, ModelWarning, UserError
from igd.files import read_whole
from igd.inference.checksum import has_its_checksum
from igd.inference.conformal import Calibration
from igd.inference.header import check_values, read_as
from igd.inference.predictor import BatchScores, Predictor
from igd.ops.session import Session

FORMAT = 4
CHECKED_SINCE = 2  # the format whose files must have a checksum
HEADER = "igd"  # key of the JSON header among the metadata of the graph
INPUT = "pixels"
PLACES = "places"  # of tiles, a second input where each place has a descriptor of its own
TOLD = ("exported_by", "int8", "identity", "calibration", "history")  # for people, unchecked
OUTPUTS = ("score", "p_value", "map")  # and the terms of the score behind them


class Runtime(Predictor):
    """A model in ONNX Runtime; predicts what the detector predicts that it was exported from."""

    def __init__(self, model: bytes, described: str, threads: int | None = None) -> None:
        self.is_checked = has_its_checksum(model)
        if self.is_checked is False:
            raise DamagedModel(
                f"{described}: damaged: its contents don't have its checksum; export it again or "
                f"copy it again"
            )
        try:
            self.session = Session(lambda: model, threads or cpu.threads())
        except Exception as error:  # ONNX Runtime has a dozen kinds of its own
            reason = str(error).splitlines()[0][:200]
            raise UserError(
                f"{described}: not a model that ONNX Runtime can run, or damaged ({reason}); "
                f"export it again"
            ) from None
        try:
            self._read(json.loads(self.session.opened.get_modelmeta().custom_metadata_map[HEADER]))
        except UserError as error:
            raise type(error)(f"{described}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
            raise UserError(
                f"{described}: not a model exported by igd, or damaged; make it with: igd export"
            ) from None
        self.terms = [output.name for output in self.session.opened.get_outputs()][len(OUTPUTS) :]
        if not self.is_checked:
            warnings.warn(
                f"{described}: made before exports had a checksum, so damage may go unnoticed; "
                f"export it again",
                ModelWarning,
                stacklevel=2,
            )

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> Runtime:
        """Read an exported model; nothing but its graph is run, and no other file is opened."""
        return cls(read_whole(Path(path)), str(path), threads)

    def _read(self, header: dict[str, Any]) -> None:
        if header["format"] > FORMAT:
            raise UserError(
                f"made by a newer igd (format {header['format']}); upgrade with: pip install -U "
                f"igd-anomaly"
            )
        if header["format"] >= CHECKED_SINCE and not self.is_checked:
            raise DamagedModel("damaged: its checksum is missing; export it again or copy it again")
        check_values(header)
        self.geometry_ = read_as(Geometry, header["geometry"])
        self.tiling_ = _tiling(header.get("tiling"))
        self.channels_, self.smallest_side_ = header["channels"], header["smallest_side"]
        self.calibration_ = Calibration(
            np.array(header["calibration_scores"], dtype=np.float64),
            np.array(header["calibration_peaks"], dtype=np.float64),
            header["usual_heat"],
            header["false_alarm_rate"],
        )
        self.calibration_.check()
        self.provenance_, self.parity_ = header["provenance"], header["parity"]
        self.probe_score_ = header.get("probe_score")
        self.told_ = {name: header[name] for name in TOLD if name in header}
        known = [output.name for output in self.session.opened.get_outputs()[: len(OUTPUTS)]]
        places = [PLACES] if self.tiling_ and self.tiling_.size else []
        possible = (
            self.channels_ in (1, 3)
            and not (self.tiling_ and self.geometry_.rectangle)
            and isinstance(self.smallest_side_, int)
            and 0 <= self.smallest_side_ <= LARGEST_SIDE
            and isinstance(self.provenance_, dict)
            and known == list(OUTPUTS)
            and [each.name for each in self.session.opened.get_inputs()] == [INPUT, *places]
            and self.session.opened.get_inputs()[0].shape[1:] == [3, *self.geometry_.shape]
        )
        if not possible:
            raise ValueError("impossible description")

    @property
    def identity_(self) -> dict[str, Any]:
        told = self.told_.get("identity")  # which older exports don't have
        return dict(told) if isinstance(told, dict) else super().identity_

    def score_batch(
        self, pixels: NDArray[np.uint8], places: NDArray[np.int64] | None = None
    ) -> BatchScores:
        colour = np.repeat(pixels, 3, axis=1) if self.channels_ == 1 else pixels
        given = {INPUT: colour, **({} if places is None else {PLACES: places})}
        try:
            score, _, anomaly_map, *terms = self.session.run(given)
        except Exception as error:  # ONNX Runtime has a dozen kinds of its own
            reason = str(error).splitlines()[0][:200]
            raise DamagedModel(f"the model can't be run, or is damaged ({reason})") from None
        return BatchScores(score, anomaly_map, dict(zip(self.terms, terms, strict=True)))

    @property
    def probe(self) -> NDArray[np.uint8]:
        """An image of noise, the same everywhere: no image of anybody's is kept in the file, and
        its score is.
        """
        shape = (1, self.channels_, *self.geometry_.shape)
        noise = np.random.default_rng(0).integers(0, 256, shape)
        return noise.astype(np.uint8)

    @property
    def probe_places(self) -> NDArray[np.int64] | None:
        """Where the probe is taken to be, if it matters."""
        own = self.tiling_ is not None and self.tiling_.size is not None
        return np.zeros(1, dtype=np.int64) if own else None


def _tiling(described: Any) -> Tiling | None:
    """How images are cut; None where they are read as a whole, as by all older exports."""
    if described is None:
        return None
    tiling = read_as(Tiling, described)
    tiling.check()
    return tiling

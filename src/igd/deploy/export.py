"""A detector as an ONNX file: from 8-bit colour pixels to score, p-value and map, for any number of
images.

The file is written only when it agrees with the detector on images that it was not trained on.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from igd.deploy.parity import Parity, check, compare
from igd.deploy.tracing import Traced
from igd.detector import IGD
from igd.errors import UserError
from igd.files import atomic, check_writable
from igd.inference.checksum import with_checksum
from igd.inference.runtime import FORMAT, HEADER, INPUT, PLACES, Runtime
from igd.progress import Progress
from igd.training.calibration_history import CalibrationRecord, record_of
from igd.version import __version__

if TYPE_CHECKING:
    import onnx

TOLERANCE = 1e-3  # of scores and maps in 32-bit floats: far below what decides, far above rounding
TOLERANCE_INT8 = 0.1
TRACER = "onnxscript"  # what PyTorch traces by
MOST_IMAGES = 4096  # in a batch


def export(
    detector: IGD,
    path: Path,
    *,
    images: NDArray[np.uint8] | None = None,
    places: NDArray[np.int64] | None = None,
    int8: bool = False,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> Parity:
    """Write a detector to `path`, or nothing where the exported model strays further than
    `tolerance` from it.

    `images` to compare them on, (n, channels, h, w), and their `places` if they are tiles and
    it matters; by default those held-out ones that the model file keeps.
    """
    check_writable(path)
    if find_spec(TRACER) is None:
        raise UserError(
            f"export needs the package {TRACER}; install it with: pip install 'igd-anomaly[export]'"
        )
    tried, kept = images, detector.fitted_.example_places
    if tried is None:
        tried = detector.fitted_.examples.numpy()
        places = None if kept is None else kept.numpy()
    if not len(tried):
        raise UserError(
            f"{path}: no images to compare the exported model on; name some with --check"
        )
    allowed = tolerance if tolerance is not None else TOLERANCE_INT8 if int8 else TOLERANCE
    (progress or Progress()).say(
        "tracing the model and comparing it with the original takes half a minute"
    )
    model = as_graph(detector)
    if int8:
        from igd.deploy.quantisation import quantised

        with _quiet():
            model = quantised(
                model, detector.fitted_.examples.numpy(), None if kept is None else kept.numpy()
            )
    described = describe(detector)
    runtime = Runtime(_with_header(model, {**described, "parity": None}), str(path))
    parity = compare(detector, runtime, tried, allowed, places)
    check(parity, str(path))
    measured = {
        "parity": parity.to_json(),
        "probe_score": float(runtime.score_batch(runtime.probe, runtime.probe_places).score[0]),
        "int8": int8,
    }
    with atomic(path) as part:
        part.write_bytes(_with_header(model, {**described, **measured}))
    return parity


def as_graph(detector: IGD) -> onnx.ModelProto:
    """All that a detector computes, as one graph."""
    traced = Traced(detector.fitted_).eval()
    examples = {INPUT: traced.example}
    if traced.example_places is not None:
        examples[PLACES] = traced.example_places
    with torch.no_grad(), _quiet():
        names = traced.outputs
        # So that what is computed once and kept is there, and goes into the graph as it is.
        traced(*examples.values())
        batch = torch.export.Dim("batch", min=1, max=MOST_IMAGES)
        program = torch.onnx.export(
            traced,
            tuple(examples.values()),
            dynamo=True,
            dynamic_shapes=tuple({0: batch} for _ in examples),
            input_names=[*examples],
            output_names=names,
            verbose=False,
        )
    assert program is not None
    return _without_traces(program.model_proto)


def _without_traces(model: onnx.ModelProto) -> onnx.ModelProto:
    """The exporter notes at every node in which file of this machine it began, which is nobody
    else's business.
    """
    graph = model.graph
    for each in (
        *graph.node,
        *graph.value_info,
        *graph.initializer,
        *graph.input,
        *graph.output,
        graph,
    ):
        del each.metadata_props[:]
        each.doc_string = ""
    return model


def describe(detector: IGD) -> dict[str, object]:
    """What a runtime must know beside the graph."""
    told = ("made_by", "made_at", "images", "calibration_images", "backbone", "fingerprint")
    backbone = detector.fitted_.backbone
    attribution = backbone.backbone.attribution if backbone else None
    learnt = ("image_size", "image_mode")  # which older files don't have
    grouped = ("grouped_by", "groups")  # which models of images without groups don't have
    return {
        "format": FORMAT,
        "exported_by": f"igd {__version__}",
        "geometry": asdict(detector.geometry_),
        "tiling": detector.tiling_ and asdict(detector.tiling_),
        "channels": detector.channels_,
        "smallest_side": detector.smallest_side_,
        "calibration_scores": np.asarray(detector.calibration_.scores, dtype=np.float64).tolist(),
        "calibration_peaks": np.asarray(detector.calibration_.peaks, dtype=np.float64).tolist(),
        "false_alarm_rate": detector.false_alarm_rate_,
        "usual_heat": detector.background_level_,
        "attribution": attribution and asdict(attribution),
        "identity": detector.identity_,
        "calibration": _without_source(record_of(detector.provenance_, detector.calibration_)),
        "history": [_without_source(each) for each in detector.fitted_.former],
        "provenance": {
            **{name: detector.provenance_[name] for name in told},
            **{name: detector.provenance_.get(name) for name in learnt},
            **{name: made for name, made in detector.provenance_.items() if name in grouped},
        },
    }


def _without_source(record: CalibrationRecord) -> dict[str, object]:
    """Nothing in the file tells where it was made."""
    return {name: value for name, value in record.to_json().items() if name != "source"}


def _with_header(model: onnx.ModelProto, header: dict[str, object]) -> bytes:
    del model.metadata_props[:]
    entry = model.metadata_props.add()
    entry.key, entry.value = HEADER, json.dumps(header, sort_keys=True)
    return with_checksum(model.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell their own developers a great deal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

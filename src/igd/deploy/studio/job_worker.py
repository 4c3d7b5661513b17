"""The process of one job: `python -m igd.deploy.studio.job_worker WORKSPACE JOB`.

It trains, calibrates, compares or exports by the same functions as the command line, writes how far
it is into the workspace's database, and stops in order when it is told to or the studio is gone.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from igd.data.dataset import Dataset
from igd.data.formats.folders import read_folder
from igd.data.frames import file_of
from igd.data.groups import group_by_pattern
from igd.data.sample import Sample
from igd.deploy.loading import load_predictor
from igd.deploy.server.http_errors import RequestError
from igd.deploy.studio.data_folders import data_folder
from igd.deploy.studio.image_sets import ImageSets
from igd.deploy.studio.job_progress import JobProgress
from igd.deploy.studio.job_queue import INTERRUPTED
from igd.deploy.studio.job_store import JobStore
from igd.deploy.studio.pictures import photo_and_layer
from igd.deploy.studio.workspace import Workspace
from igd.detector import IGD
from igd.errors import DataWarning, Interrupted, TrainingWarning, UserError
from igd.evaluation.compare_models import compare_models
from igd.evaluation.evaluate import evaluate
from igd.files import locked
from igd.inference.predictor import Prediction
from igd.rng import spread

DONE, FAILED = 0, 1
SHOWN = 24  # odd images with a map
TYPICAL = 3  # others
PATIENCE = 60.0  # seconds for a former process to let go of the model
OF_ODD_IMAGES = "far above the rest and raise"  # of what is said of them
FLAG = re.compile(r" \(--[\w-]+\)")  # of the command line, which whoever reads this does not use
FIGURES = (
    "image_auroc",
    "average_precision",
    "promised_false_alarm_rate",
    "n_normal",
    "n_anomalous",
)


class Job:
    """What a job needs: where everything is, how far it is, and whether it is to stop."""

    def __init__(
        self, workspace: Workspace, number: int, data_root: Path | None, most: int
    ) -> None:
        self.workspace, self.data_root = workspace, data_root
        self.store = JobStore(workspace.database)
        self.sets = ImageSets(workspace, data_root, most)
        self.number = number
        about = self.store.get(number)
        self.kind, self.model, self.spec = about["kind"], about["model"], about["spec"]
        self.progress = JobProgress(self.store, number)
        self.target = workspace.model_file(self.model)
        self.checkpoint = workspace.checkpoint(number)

    def dataset(self) -> Dataset:
        """The normal images that the job is about, in groups where that was asked."""
        samples = self.sets.samples(self.spec["set"], self.spec.get("excluded", ()))
        training = [replace(sample, split="train") for sample in samples]
        dataset = Dataset(self.model, training, self.sets.describe(self.spec["set"])["described"])
        pattern = self.spec.get("group_by")
        return group_by_pattern(dataset, pattern) if pattern else dataset

    def labelled(self) -> list[Sample]:
        """Images of which it is known whether they are defects."""
        if self.spec.get("folder") is not None:
            return read_folder(data_folder(self.data_root, self.spec["folder"])).test_samples()
        described = self.sets.describe(self.spec["set"])["described"]
        return Dataset(self.model, self.sets.samples(self.spec["set"]), described).test_samples()


def train(job: Job, stop: Callable[[], bool]) -> dict[str, Any]:
    """Learn, show the first anomaly maps, save."""
    dataset = job.dataset()
    sizes = {_size(sample) for sample in dataset.samples}
    detector = IGD(
        max_false_alarms=job.spec.get("rate"),
        fit_to="resize" if len(sizes) > 1 else None,
        roi=tuple(job.spec["roi"]) if "roi" in job.spec else None,
    )
    job.progress.draw = partial(_draw_first_maps, job, dataset.samples)
    with _locked(job.target):
        detector.fit(
            dataset,
            checkpoint=job.checkpoint,
            resume=job.checkpoint.exists(),
            progress=job.progress,
            stop=stop,
        )
        _draw_maps(job, detector, dataset.samples)
        detector.save(job.target)
    job.checkpoint.unlink(missing_ok=True)
    return _learnt(job, detector)


def calibrate(job: Job, _: Callable[[], bool]) -> dict[str, Any]:
    """Another threshold, from good images that the model did not learn from."""
    with _locked(job.target):
        detector = IGD.load(job.target)
        before = {"rate": detector.false_alarm_rate_, "threshold": detector.threshold_}
        dataset = job.dataset()
        detector.calibrate(dataset, max_false_alarms=job.spec.get("rate"), progress=job.progress)
        _draw_maps(job, detector, dataset.samples)
        detector.save(job.target)
    return {**_learnt(job, detector), "before": before}


def compare(job: Job, _: Callable[[], bool]) -> dict[str, Any]:
    """Two models on the same labelled images."""
    first, second = (
        load_predictor(job.workspace.model_file(name)) for name in (job.model, job.spec["other"])
    )
    compared = compare_models(first, second, job.labelled(), job.progress)
    told = compared.to_json()
    return {
        **{n: _figures(getattr(compared, n)) for n in ("first", "second")},
        **{n: told[n] for n in ("image_auroc_difference", "interval_95", "in_words")},
        "differing": told["differing"][:SHOWN],
        "differing_count": len(told["differing"]),
    }


def report(job: Job, _: Callable[[], bool]) -> dict[str, Any]:
    """One model on labelled images, as a page of its own."""
    from igd.evaluation.report import write_report

    detector = load_predictor(job.target)
    evaluation = evaluate(detector, job.labelled(), job.progress)
    write_report(job.workspace.report_file(job.number), detector, evaluation, job.model)
    return {"summary": evaluation.metrics["summary"], "first": _figures(evaluation)}


def export(job: Job, _: Callable[[], bool]) -> dict[str, Any]:
    from igd.deploy.export import export as write_onnx

    path = job.workspace.model_file(job.model, ".onnx")
    parity = write_onnx(IGD.load(job.target), path, progress=job.progress)
    return {"bytes": path.stat().st_size, "parity": str(parity)}


KINDS = {
    "train": train,
    "calibrate": calibrate,
    "compare": compare,
    "report": report,
    "export": export,
}


def _learnt(job: Job, detector: IGD) -> dict[str, Any]:
    made = detector.provenance_
    if made["odd_images"]:  # which the page names itself, with a way out of its own
        job.progress.unsay(OF_ODD_IMAGES)
    return {
        "images": made["images"],
        "calibration_images": len(detector.calibration_.scores),
        "groups": made.get("groups"),
        "rate": detector.false_alarm_rate_,
        "threshold": detector.threshold_,
        "seconds": made["seconds"],
        "skipped": made["skipped"],
        "odd": len(made["odd_images"]),
    }


def _draw_first_maps(job: Job, samples: list[Sample], fitted: Any, names: list[str]) -> None:
    """Of images that a first model did not learn from, those that it finds least usual."""
    detector = IGD()
    detector.fitted_ = fitted
    by_name = {sample.identifier: sample for sample in samples}
    _keep_maps(job, detector, [by_name[name] for name in names[:TYPICAL]], ())


def _draw_maps(job: Job, detector: IGD, samples: list[Sample]) -> None:
    """Anomaly maps of the odd images and of some others."""
    odd = detector.provenance_["odd_images"][:SHOWN]
    by_name = {sample.identifier: sample for sample in samples}
    others = [sample for sample in samples if sample.identifier not in odd]
    typical = [others[number] for number in spread(len(others), TYPICAL).tolist()]
    chosen = [by_name[name] for name in odd] + typical
    job.store.forget_pictures(job.number)
    _keep_maps(job, detector, chosen, odd)


def _keep_maps(job: Job, detector: IGD, chosen: list[Sample], odd: Sequence[str]) -> None:
    numbers = job.sets.numbers(job.spec["set"])
    for prediction in detector.predictions(chosen, keep_images=True):
        if isinstance(prediction, Prediction):
            photo, layer = photo_and_layer(detector, prediction)
            job.store.keep_picture(
                job.number,
                name=prediction.name,
                number=numbers.get(prediction.name),
                odd=prediction.name in odd,
                score=prediction.score,
                p_value=prediction.p_value,
                photo=photo,
                layer=layer,
            )


def _figures(evaluation: Any) -> dict[str, Any]:
    """What a person compares: the ranking, and mistakes at the model's own threshold."""
    verdicts = [(each.sample.label, each.is_anomalous) for each in evaluation.predicted]
    return {
        **{name: evaluation.metrics.get(name) for name in FIGURES},
        "misses": verdicts.count((1, False)),
        "false_alarms": verdicts.count((0, True)),
    }


def _size(sample: Sample) -> Any:
    from PIL import Image

    try:
        with Image.open(file_of(Path(str(sample.image)))) as opened:
            return opened.size
    except Exception:  # reading will say what is wrong with it
        return None


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """The model's place; a process that a former studio left behind may need a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        held = locked(target, "writing")
        try:
            held.__enter__()
            break
        except UserError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    try:
        yield
    finally:
        held.__exit__(None, None, None)


@contextmanager
def _warnings_said(progress: JobProgress) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, TrainingWarning | DataWarning):
                    progress.say(str(warning.message))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("job", type=int)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--max-pixels", type=int, required=True)
    options = parser.parse_args(arguments)
    if hasattr(os, "nice"):
        os.nice(5)  # whoever inspects waits for an answer
    job = Job(Workspace(options.workspace), options.job, options.data_root, options.max_pixels)
    asked = threading.Event()

    def ask(*_: Any) -> None:
        asked.set()
        if job.kind != "train":  # which alone has something to keep
            raise Interrupted("stopped")

    def follow_studio() -> None:
        while os.read(0, 1):  # not through a buffer, whose lock the interpreter's end would want
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, ask)
    threading.Thread(target=follow_studio, daemon=True).start()
    try:
        with _warnings_said(job.progress):
            result = KINDS[job.kind](job, asked.is_set)
        job.store.succeed(job.number, result)
        return DONE
    except Interrupted:
        return INTERRUPTED
    except (UserError, RequestError) as error:
        job.store.advance(job.number, error=FLAG.sub("", str(error)))
        return FAILED


if __name__ == "__main__":
    sys.exit(main())

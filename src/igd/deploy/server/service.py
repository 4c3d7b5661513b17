"""Models and threads: from uploads to predictions."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from typing import Literal, TypeVar

from igd.cpu import DECODERS
from igd.data.decoding import (
    FORMATS,
    TooManyPixels,
    UnreadableImage,
    claimed_pixels,
    decode_image,
)
from igd.deploy.server.admission import Admission
from igd.deploy.server.http_errors import RequestError, service_unavailable
from igd.deploy.server.prometheus import ServerMetrics
from igd.deploy.server.scorer import Job, Scorer
from igd.deploy.server.settings import Settings
from igd.deploy.server.uploads import Upload
from igd.errors import UserError
from igd.inference.drift import DriftMonitor
from igd.inference.predictor import Prediction, Predictor

Result = TypeVar("Result")


class Service:
    """What the routes ask. All but the work of its threads happens on the event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state: Literal["loading", "ready", "draining"] = "loading"
        self.predictors: Mapping[str, Predictor] = {}  # replaced, never changed
        self.drift: Mapping[str, DriftMonitor] = {}  # of each model; replaced likewise
        self.metrics = ServerMetrics(waiting=lambda: self._scorer.waiting)
        self.admission = Admission(settings)
        self._watching = threading.Lock()  # what gauges tell is of the monitor in use
        self._scorer = Scorer(settings.batch, self.metrics.batch)
        self._threads = ThreadPoolExecutor(DECODERS, thread_name_prefix="decoder")

    def open(self, predictors: Mapping[str, Predictor]) -> None:
        """Serve these models from now on."""
        for name, predictor in predictors.items():
            self.put(name, predictor, DriftMonitor(predictor.calibration_))
        if self.state == "loading":
            self.state = "ready"

    def put(self, name: str, predictor: Predictor, drift: DriftMonitor) -> None:
        """Serve a model, in the place of one of this name: images that were taken for that one are
        still scored by it. Any thread may call this.
        """
        with self._watching:
            self.drift = {**self.drift, name: drift}
            self.predictors = {**self.predictors, name: predictor}
            self.metrics.watched(name, drift)

    def remove(self, name: str) -> None:
        """Serve a model no longer; what was taken for it is still scored. Any thread may."""
        with self._watching:
            self.predictors = {n: each for n, each in self.predictors.items() if n != name}
            self.drift = {n: each for n, each in self.drift.items() if n != name}
            self.metrics.forget(name)

    def drain(self) -> None:
        """Refuse what is new and finish what was admitted."""
        self.state = "draining"

    def close(self) -> None:
        self._scorer.close()
        self._threads.shutdown()

    def check_ready(self) -> None:
        if self.state == "loading":
            raise service_unavailable("the models are being loaded; ask again in a moment")
        if self.state == "draining":
            raise service_unavailable("the server is being stopped; ask again when it is back")

    def predictor(self, name: str) -> Predictor:
        """The model of this name."""
        self.check_ready()
        if name not in self.predictors:
            raise RequestError(
                404,
                f"there is no model '{name}'; there are: "
                f"{', '.join(sorted(self.predictors)) or 'none'}",
            )
        return self.predictors[name]

    async def claimed_pixels(self, uploads: Sequence[Upload]) -> int:
        """How many pixels the headers of images claim together; nothing is decoded."""
        return await self.in_thread(partial(_claimed_pixels, uploads))

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Decoding and encoding, which would hold up the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def score(
        self, model: str, predictor: Predictor, uploads: Sequence[Upload], keep_images: bool
    ) -> list[Prediction]:
        """Decode and score images; all of them or, with the reason, none. The model may be replaced
        meanwhile: what a request began with answers it.
        """
        preparing = (
            self.in_thread(partial(self._prepare, predictor, upload, keep_images))
            for upload in uploads
        )
        jobs = await asyncio.gather(*preparing)
        self._scorer.submit(jobs)
        try:
            predicted = await asyncio.gather(*(asyncio.wrap_future(job.prediction) for job in jobs))
        except asyncio.CancelledError:  # nobody waits any more
            self._scorer.withdraw(jobs)
            raise
        except Exception as error:
            raise service_unavailable(
                f"the model failed ({type(error).__name__}: {error}); if it does so again, "
                f"restart it"
            ) from error
        self.metrics.scored(model, len(predicted))
        self._watch(model, predicted)
        return predicted

    def _watch(self, model: str, predicted: Sequence[Prediction]) -> None:
        """Do these images look like those that calibrated the model? Said once, where not."""
        drift = self.drift.get(model)
        if drift is None:  # removed meanwhile
            return
        if sum(drift.update(each.score, each.is_anomalous) for each in predicted):
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            line = {"time": now, "model": model, "drift": drift.notice}
            sys.stderr.write(json.dumps(line) + "\n")
        with self._watching:
            if self.drift.get(model) is drift:  # else another's figures, or none, are told now
                self.metrics.watched(model, drift)

    def _prepare(self, predictor: Predictor, upload: Upload, keep_image: bool) -> Job:
        try:
            with upload.file as file:
                image = decode_image(file, upload.name, self.settings.max_pixels, FORMATS)  # type: ignore[arg-type]
        except TooManyPixels as error:
            raise RequestError(413, f"{error}; send a smaller picture") from None
        except UnreadableImage as error:
            raise RequestError(415, f"{error}; send PNG, JPEG, TIFF, BMP or WebP") from None
        try:
            return Job(predictor, upload.name, predictor.decoded(upload.name, image, keep_image))
        except UserError as error:
            raise RequestError(422, str(error)) from None


def _claimed_pixels(uploads: Sequence[Upload]) -> int:
    total = 0
    for upload in uploads:
        total += claimed_pixels(upload.file, FORMATS)  # type: ignore[arg-type]
        upload.file.seek(0)
    return total

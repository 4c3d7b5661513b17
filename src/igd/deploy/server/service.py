"""Models, places and threads: from uploads to predictions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

from igd.data.images import DECODERS, FORMATS, TooManyPixels, UnreadableImage, decode_image
from igd.deploy.server.figures import Figures
from igd.deploy.server.refusals import Refused, busy, unavailable
from igd.deploy.server.scorer import Job, Scorer
from igd.deploy.server.settings import Settings
from igd.deploy.server.uploads import Upload
from igd.errors import UserError
from igd.judging import Judge, Prediction

Result = TypeVar("Result")


class Service:
    """What the routes ask. All but the work of its threads happens on the event loop, so that counting needs no lock."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state: Literal["loading", "ready", "draining"] = "loading"
        self.judges: Mapping[str, Judge] = {}
        self.figures = Figures()
        self.taken = 0  # places: images that were admitted and are not answered yet
        self._scorer = Scorer(settings.batch, self.figures.batch)
        self._threads = ThreadPoolExecutor(DECODERS, thread_name_prefix="decoder")
        self.figures.waiting = lambda: self._scorer.waiting

    def open(self, judges: Mapping[str, Judge]) -> None:
        """Serve these models from now on."""
        self.judges = judges
        if self.state == "loading":
            self.state = "ready"

    def drain(self) -> None:
        """Refuse what is new and finish what was admitted."""
        self.state = "draining"

    def close(self) -> None:
        self._scorer.close()
        self._threads.shutdown()

    def check_ready(self) -> None:
        if self.state == "loading":
            raise unavailable("the models are being loaded; ask again in a moment")
        if self.state == "draining":
            raise unavailable("the server is being stopped; ask again when it is back")

    def judge(self, name: str) -> Judge:
        """The model of this name."""
        self.check_ready()
        if name not in self.judges:
            raise Refused(404, f"there is no model '{name}'; there are: {', '.join(sorted(self.judges))}")
        return self.judges[name]

    @contextmanager
    def admitted(self) -> Iterator[Callable[[int], None]]:
        """A place for the first image of a request, and a way to take more for its further ones; all are given back."""
        own = 0

        def admit(images: int) -> None:
            nonlocal own
            if self.taken + images > self.settings.queue:
                raise busy(
                    f"{self.taken} images are waiting already, of at most {self.settings.queue}; send again in a moment"
                )
            self.taken += images
            own += images

        admit(1)
        try:
            yield admit
        finally:
            self.taken -= own

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Decoding and encoding, which would hold up the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def score(self, model: str, uploads: Sequence[Upload], keep_images: bool) -> list[Prediction]:
        """Decode and judge images; all of them or, with the reason, none."""
        judge = self.judges[model]
        preparing = (self.in_thread(partial(self._prepare, judge, upload, keep_images)) for upload in uploads)
        jobs = await asyncio.gather(*preparing)
        self._scorer.submit(jobs)
        try:
            judged = await asyncio.gather(*(asyncio.wrap_future(job.prediction) for job in jobs))
        except asyncio.CancelledError:  # nobody waits any more
            self._scorer.withdraw(jobs)
            raise
        except Exception as error:
            raise unavailable(
                f"the model failed ({type(error).__name__}: {error}); if it does so again, restart it"
            ) from error
        self.figures.scored(model, len(judged))
        return [replace(prediction, name=upload.name) for prediction, upload in zip(judged, uploads, strict=True)]

    def _prepare(self, judge: Judge, upload: Upload, keep_image: bool) -> Job:
        try:
            with upload.file as file:
                image = decode_image(file, upload.name, self.settings.max_pixels, FORMATS)  # type: ignore[arg-type]
        except TooManyPixels as error:
            raise Refused(413, f"{error}; send a smaller picture") from None
        except UnreadableImage as error:
            raise Refused(415, f"{error}; send PNG, JPEG, TIFF, BMP or WebP") from None
        try:
            return Job(judge, judge.prepared(upload.name, image, keep_image))
        except UserError as error:
            raise Refused(422, str(error)) from None

"""What has been let in and is not answered yet, counted in requests, bytes, images and pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from igd.deploy.server.http_errors import RequestError, too_many_requests
from igd.deploy.server.settings import Settings

# Times the pixels that an image may have: a picture of few bytes may claim all of them.
IN_A_REQUEST, AT_ONCE = 4, 8
# Times the bytes that a body may have: what all bodies that are being sent may have together.
BODIES_AT_ONCE = 8


class Admission:
    """The counts of all requests. They change on the event loop alone and need no lock."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.requests = self.body_bytes = self.images = self.pixels = 0

    @contextmanager
    def request(self) -> Iterator[Ticket]:
        """The place of one request; all that it took is given back at the end."""
        self._check_room(1)
        ticket = Ticket(self)
        self.requests += 1
        try:
            yield ticket
        finally:
            self.requests -= 1
            self.body_bytes -= ticket.body_bytes
            self.images -= ticket.images
            self.pixels -= ticket.pixels

    def _check_room(self, images: int) -> None:
        if self.images + images > self.settings.queue:
            raise too_many_requests(
                f"{self.images} images are waiting already, of at most {self.settings.queue}; "
                f"send again in a moment"
            )


class Ticket:
    """What one request takes. A body counts by the bytes that have come, so that slow ones keep
    nobody out; images count once all of them are there.
    """

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.body_bytes = self.images = self.pixels = 0

    def receive(self, length: int) -> None:
        """Room for so many more bytes of the body."""
        total = self.admission
        if total.body_bytes + length > BODIES_AT_ONCE * total.settings.max_bytes:
            raise too_many_requests(
                "too many bytes of images are waiting already; send again in a moment"
            )
        total.body_bytes += length
        self.body_bytes += length

    def admit(self, images: int, pixels: int) -> None:
        """Room in the queue for images of so many pixels together."""
        total, largest = self.admission, self.admission.settings.max_pixels
        if pixels > IN_A_REQUEST * largest:
            raise RequestError(
                413,
                f"the images have {pixels:,} pixels together, and {IN_A_REQUEST * largest:,} are "
                f"accepted in a request; send fewer at once",
            )
        if total.pixels + pixels > AT_ONCE * largest:
            raise too_many_requests(
                "images of too many pixels are waiting already; send again in a moment"
            )
        total._check_room(images)
        total.images += images
        total.pixels += pixels
        self.images += images
        self.pixels += pixels

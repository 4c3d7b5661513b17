"""Images out of a request's body, no more of it than is accepted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from igd.deploy.server.http_errors import RequestError
from igd.text import visible

IN_MEMORY = 1_000_000  # bytes of a file; more go to the disk until they are decoded
LONGEST_NAME = 200
# Seconds in which the rest of a refused body is thrown away, so that its sender hears why.
LINGER = 2.0


class Upload(NamedTuple):
    """An image as it came, not decoded yet."""

    name: str  # said back to the client, never used as a path
    file: IO[bytes]


async def receive(
    request: Request, max_bytes: int, max_files: int, on_bytes: Callable[[int], None]
) -> list[Upload]:
    """The files of a multipart body, or the body itself as one image. `on_bytes` hears how many
    came, and may refuse them.
    """
    if (
        request.headers.get("content-length", "").isdigit()
        and int(request.headers["content-length"]) > max_bytes
    ):
        raise _too_large(max_bytes)
    body = _limited(request, max_bytes, on_bytes)
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await _parts(request, body, max_files)
    file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by who decodes it
    async for chunk in body:
        file.write(chunk)
    if not file.tell():
        raise RequestError(
            422, "the body is empty; send an image, or several as multipart/form-data"
        )
    file.seek(0)
    return [Upload("image", file)]


async def discard(request: Request, max_bytes: int) -> None:
    """Read on what a refused client is still sending, for a while: closing on it would take the
    answer along.
    """
    with contextlib.suppress(Exception):
        await asyncio.wait_for(_exhaust(_limited(request, 4 * max_bytes)), LINGER)


async def _limited(
    request: Request, max_bytes: int, on_bytes: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[bytes, None]:
    """The body as it comes, whatever length its header claims."""
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > max_bytes:
            raise _too_large(max_bytes)
        on_bytes(len(chunk))
        yield chunk


async def _parts(
    request: Request, body: AsyncGenerator[bytes, None], max_files: int
) -> list[Upload]:
    parser = MultiPartParser(request.headers, body, max_files=max_files, max_fields=max_files)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        if "Too many files" in error.message:
            raise RequestError(
                413, f"more than {max_files} images at once; send fewer in a request"
            ) from None
        raise RequestError(422, f"the multipart body can't be read: {error.message}") from None
    except (
        KeyError,
        ValueError,
        LookupError,
    ) as error:  # what the parser makes of a body without boundary or charset
        raise RequestError(
            422, f"the multipart body can't be read: {type(error).__name__} {error}"
        ) from None
    files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
    if not files:
        raise RequestError(422, "the multipart body has no file in it; send at least one image")
    names = (
        visible(upload.filename or f"image {number}")[:LONGEST_NAME]
        for number, upload in enumerate(files, start=1)
    )
    return [Upload(name, upload.file) for name, upload in zip(names, files, strict=True)]


async def _exhaust(body: AsyncGenerator[bytes, None]) -> None:
    async for _ in body:
        pass


def _too_large(max_bytes: int) -> RequestError:
    return RequestError(
        413,
        f"the body has more than {max_bytes:,} bytes; send fewer or smaller images in a request",
    )

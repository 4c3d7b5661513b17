"""An answer that is no result: status, reason, way out."""

from __future__ import annotations

RETRY_SECONDS = 1


class Refused(Exception):
    """A request that is not served; the text says why and what to do."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def busy(detail: str) -> Refused:
    return Refused(429, detail, {"Retry-After": str(RETRY_SECONDS)})


def unavailable(detail: str) -> Refused:
    return Refused(503, detail, {"Retry-After": str(RETRY_SECONDS)})

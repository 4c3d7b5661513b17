"""Requests that are refused: status, reason, way out."""

from __future__ import annotations

RETRY_SECONDS = 1


class RequestError(Exception):
    """A request that is not served; the text says why and what to do."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def too_many_requests(detail: str) -> RequestError:
    return RequestError(429, detail, {"Retry-After": str(RETRY_SECONDS)})


def service_unavailable(detail: str) -> RequestError:
    return RequestError(503, detail, {"Retry-After": str(RETRY_SECONDS)})

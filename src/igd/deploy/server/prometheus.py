"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from igd.inference.drift import DriftMonitor

__all__ = ["CONTENT_TYPE", "ServerMetrics"]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)

disable_created_metrics()  # else a gauge beside every counter


class ServerMetrics:
    """The metrics of one server; `waiting` says how many images wait at the moment."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "igd_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "igd_request_seconds",
            "Time from the first byte of a request to its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.images = Counter(
            "igd_images_scored", "Images that got a score.", ["model"], registry=registry
        )
        self.batches = Histogram(
            "igd_batch_images",
            "Images that were scored together.",
            buckets=SIZES,
            registry=registry,
        )
        self.alarms = Gauge(
            "igd_recent_alarm_share",
            "Share of alarms among the last 200 images, at the model's own rate.",
            ["model"],
            registry=registry,
        )
        self.drifting = Gauge(
            "igd_drift",
            "1 since incoming images no longer look like the calibration images.",
            ["model"],
            registry=registry,
        )
        queue = Gauge("igd_queue_images", "Images that wait to be scored.", registry=registry)
        queue.set_function(waiting)

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def scored(self, model: str, images: int) -> None:
        self.images.labels(model).inc(images)

    def watched(self, model: str, drift: DriftMonitor) -> None:
        self.alarms.labels(model).set(drift.alarm_share)
        self.drifting.labels(model).set(drift.noticed_at is not None)

    def forget(self, model: str) -> None:
        """A model that is no longer served has no state to tell of."""
        for gauge in (self.alarms, self.drifting):
            gauge.remove(model)

    def batch(self, size: int) -> None:
        self.batches.observe(size)

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self.registry)

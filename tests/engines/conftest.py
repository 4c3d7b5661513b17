"""One Ray cluster of two workers for all tests of a process, on 127.0.0.1."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def storage() -> Iterator[str]:
    """An S3 server on this machine; the cluster is started after it and inherits its address."""
    pytest.importorskip("moto", reason="moto is not installed: pip install 'igd-anomaly[dev]'")
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'igd-anomaly[dev]'")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    named = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    yield named["AWS_ENDPOINT_URL"]
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def two_workers(storage: str) -> Iterator[int]:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'igd-anomaly[ray]'")
    from igd.engines.cluster import cluster

    with cluster(workers=2) as workers:
        yield workers

"""The API keeps to what its own description says, whatever is sent to it."""

import json
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from igd import IGD
from igd.deploy.server.app import create_app
from igd.deploy.server.routes import ERRORS
from igd.deploy.server.service import Service
from igd.deploy.server.settings import Settings

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
OPERATIONS = [
    ("/v1/models/{name}/score", "POST"),
    *((path, "GET") for path in ("/v1/models", "/healthz", "/readyz", "/metrics")),
]


@pytest.fixture
def service(fitted: IGD) -> Iterator[Service]:
    service = Service(Settings())
    service.open({"parts": fitted})
    yield service
    service.close()


@pytest.mark.parametrize("name", [None, "parts"])  # None: whatever comes to mind
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_as_described(service: Service, path: str, method: str, name: str | None) -> None:
    described = schemathesis.openapi.from_asgi("/openapi.json", create_app(service))

    @given(case=described[path][method].as_strategy())
    @settings(
        max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    def ask(case: schemathesis.Case) -> None:
        if name and case.path_parameters:
            case.path_parameters["name"] = name
        case.call_and_validate(checks=CHECKS)

    ask()


def test_every_refusal_is_described(service: Service) -> None:
    described = create_app(service).openapi()["paths"]
    assert set(described["/v1/models/{name}/score"]["post"]["responses"]) == {
        "200",
        *map(str, ERRORS),
    }
    assert set(described) == {path for path, _ in OPERATIONS}
    assert "HTTPValidationError" not in json.dumps(described)

"""The OpenAPI document is kept: schemathesis sends what it allows, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.index.index_samples import asked_for, docs
from tests.server.servers import make, running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
QUIET = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.function_scoped_fixture,
]
NOTHING_TO_GET_WRONG = (
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /v1/version",
    "GET /v1/info",
    "GET /v1/figures",
    "GET /v1/documents/{id}",
)
OPERATIONS = (
    *NOTHING_TO_GET_WRONG,
    "GET /v1/map",
    "GET /v1/search",
    "POST /v1/search",
    "POST /v1/teach",
    "POST /v1/clicks",
    "POST /v1/learn",
    "GET /v1/gaps",
    "GET /v1/documents",
    "POST /v1/documents",
    "POST /v1/documents/upsert",
    "POST /v1/files",
    "PUT /v1/documents/{id}",
    "PATCH /v1/documents/{id}",
    "DELETE /v1/documents/{id}",
    "POST /v1/documents/delete",
    "POST /v1/documents/list",
    "POST /v1/documents/count",
)
CASES = [
    pytest.param(operation, mode, id=f"{operation}-{name}")
    for operation in OPERATIONS
    for name, mode in (("sound", GenerationMode.POSITIVE), ("unsound", GenerationMode.NEGATIVE))
    if name == "sound" or operation not in NOTHING_TO_GET_WRONG
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The schema of a running server with a few documents."""
    folder = tmp_path_factory.mktemp("schema") / "shop"
    some = docs(5)
    with make(folder) as index:
        index.add_many(some, asked_for(some))
        logs = {"log_clicks": folder.parent / "clicks.jsonl", "log_queries": folder.parent / "queries.jsonl"}
        with running(index, folder, rate=1e6, burst=10**6, quality_seconds=1000, **logs) as url:
            yield schemathesis.openapi.from_url(f"{url}/openapi.json")


def ask(api: Any, operation: str, examples: int, mode: Any) -> None:
    """Send so many requests of that kind; whatever is not as the schema says fails."""
    method, path = operation.split()
    described = api[path][method]

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate], suppress_health_check=QUIET, database=None)
    @seed(1)
    @given(case=described.as_strategy(generation_mode=mode))
    def asking(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=300)  # what was taught often takes long, on a busy machine

    asking()


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_answer_is_as_the_schema_says(api: Any, operation: str, mode: GenerationMode) -> None:
    ask(api, operation, 8, mode)


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_every_answer_is_as_the_schema_says_for_long(api: Any, operation: str, mode: GenerationMode) -> None:
    ask(api, operation, 300, mode)


def test_the_document_has_examples_and_describes_every_path(api: Any) -> None:
    document = api.raw_schema
    found = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert found == set(OPERATIONS)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert "example" in content, (method, path)

"""The OpenAPI document: complete, true to what the API does, with examples; checked by generated requests too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from app.main import create_app
from tests.integration.web_client import Robot, demo_engagement
from tests.people import Cast

PROMISED = {
    ("post", "/engagements"),
    ("get", "/engagements"),
    ("get", "/engagements/{engagement_id}"),
    ("post", "/engagements/{engagement_id}/gates/{gate}/attempts"),
    ("get", "/attempts/{attempt_id}"),
    ("get", "/attempts/{attempt_id}/events"),
    ("get", "/attempts/{attempt_id}/samples"),
    ("get", "/attempts/{attempt_id}/verdict"),
    ("get", "/attempts/{attempt_id}/evidence"),
    ("get", "/attempts/{attempt_id}/reports"),
    ("get", "/attempts/{attempt_id}/stream"),
    ("post", "/attempts/{attempt_id}/cancel"),
    ("post", "/attempts/{attempt_id}/retry"),
    ("post", "/attempts/{attempt_id}/extend"),
    ("post", "/approvals"),
    ("get", "/reports/{report_id}.pdf"),
}


@pytest.fixture
def robot(cast: Cast) -> Iterator[Robot]:
    demo_engagement(cast)
    return Robot(cast.li_wei.user_id)


def document(robot: Robot) -> dict[str, Any]:
    answer = robot.get("/openapi.json")
    assert answer.status_code == 200
    spec: dict[str, Any] = answer.json()
    return spec


def test_it_is_openapi_3_1_and_holds_every_promised_operation(robot: Robot) -> None:
    spec = document(robot)
    assert spec["openapi"].startswith("3.1")
    offered = {(method, path) for path, operations in spec["paths"].items() for method in operations}
    assert offered >= PROMISED
    assert spec["servers"] == [{"url": "/api/v1"}]


def test_every_operation_says_what_it_does_and_that_its_errors_are_problems(robot: Robot) -> None:
    for path, operations in document(robot)["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], path
            assert operation["description"], path
            assert {"token", "session"} <= {name for entry in operation["security"] for name in entry}, path
            errors = {status: answer for status, answer in operation["responses"].items() if not status.startswith("2")}
            assert "4XX" in errors, (method, path)
            assert all(list(answer["content"]) == ["application/problem+json"] for answer in errors.values()), path


def test_the_problem_has_an_example(robot: Robot) -> None:
    problem = document(robot)["components"]["schemas"]["Problem"]
    assert problem["example"]["code"] in problem["example"]["type"]


def test_the_bundled_page_lists_every_operation_and_loads_nothing_from_elsewhere(robot: Robot) -> None:
    page = robot.get("/docs").text
    for method, path in PROMISED:
        assert path in page
        assert method.upper() in page
    assert "http://" not in page
    assert "https://" not in page


def test_generated_requests_meet_no_crash_and_no_undocumented_answer(robot: Robot) -> None:
    from app.kit.db import new_id

    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app())
    headers = {"Authorization": robot.http.headers["Authorization"]}
    called = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @_given(operation)
        def send(case: Any) -> None:
            if "attempt_id" in case.path_parameters:
                case.path_parameters["attempt_id"] = new_id()  # an unknown one: a stream would be followed to its end
            answer = case.call(headers=headers)
            case.validate_response(
                answer, checks=[not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
            )
            called.add((case.method.lower(), case.path))

        send()
    assert called >= PROMISED


def _given(operation: Any) -> Any:
    from hypothesis import given

    return given(case=operation.as_strategy())

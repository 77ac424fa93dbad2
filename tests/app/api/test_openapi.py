"""The OpenAPI document holds: schemathesis finds no server error, no undocumented answer; its examples work.

Event streams are asked to end by themselves, and forms of networks are taken from those that are built quickly.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation.stateful import run_state_machine_as_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.app.servers import TINY, Server
from valleyscope.app.experiments.spec import Spec

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
PATIENCE = 180.0
FEW_AND_MANY = [3, pytest.param(40, marks=pytest.mark.drill)]
"""Examples of each operation: a few in `make test`, many in `make drill`."""


def calm(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="session")
def document(bare: Server) -> dict[str, Any]:
    found: dict[str, Any] = bare.client.get("/api/openapi.json").json()
    return found


@pytest.fixture(scope="session")
def described(bare: Server) -> Any:
    return schemathesis.openapi.from_url(f"{bare.url}/api/openapi.json")


@pytest.fixture(scope="session")
def charted(bare: Server) -> str:
    return bare.charted()


def tamed(case: Any) -> Any:
    """A stream must end, and a network must not take seconds to build."""
    if case.operation.path.endswith("/events"):
        case.query = {**(case.query or {}), "follow": False}
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), dict):
        case.body = {**case.body, "model": {"name": case.body["model"].get("name", "cnn")}}
    return case


def ask(operation: Any, examples: int, **path_parameters: str) -> None:
    """Call an operation with whatever its description allows, and with what it does not."""

    @given(operation.as_strategy())
    @calm(examples)
    def check(case: Any) -> None:
        case.path_parameters = {**case.path_parameters, **path_parameters}
        response = tamed(case).call(timeout=PATIENCE)
        case.validate_response(response, checks=CHECKS)

    check()


@pytest.mark.parametrize("examples", FEW_AND_MANY)
def test_every_operation_answers_as_it_is_described(described: Any, examples: int) -> None:
    operations = [result.ok() for result in described.get_all_operations()]
    assert len(operations) > 25
    for operation in operations:
        ask(operation, examples)


@pytest.mark.parametrize("examples", FEW_AND_MANY)
def test_results_of_a_real_landscape_answer_as_they_are_described(described: Any, charted: str, examples: int) -> None:
    """Random ids are unknown, so the results are asked for once more where there are some."""
    for name in ("contents", "minima", "surface", "profile", "verdict", "figure", "files", "events"):
        ask(described[f"/api/experiments/{{id}}/{name}"]["GET"], examples, id=charted)


def test_every_file_is_of_the_type_that_is_described(described: Any, bare: Server, charted: str) -> None:
    (bare.directory(charted) / "verdict.json").write_text('{"kind": "one valley"}')
    names = [file["name"] for file in bare.client.get(f"/api/experiments/{charted}/files").json()["items"]]
    assert {"landscape.h5", "surface.csv", "verdict.json"} <= set(names)
    for name in names:
        case = described["/api/experiments/{id}/files/{name}"]["GET"].Case(
            path_parameters={"id": charted, "name": name}
        )
        response = case.call(timeout=PATIENCE)
        assert response.status_code == 200
        case.validate_response(response, checks=CHECKS)


@pytest.mark.parametrize("lives", FEW_AND_MANY)
def test_experiments_can_be_led_through_any_life(described: Any, lives: int) -> None:
    """Submit, then read, cancel, retry, delete and look at results in any order that the links allow."""

    class Life(described.as_state_machine()):  # type: ignore[misc]
        def before_call(self, case: Any) -> None:
            tamed(case)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:  # noqa: ARG002
            return {"timeout": PATIENCE}  # the usual ten seconds are not enough on a busy machine

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=lives,
            stateful_step_count=8,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_two_operations_share_an_id(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operations in document["paths"].values() for operation in operations.values()]
    assert len(ids) == len(set(ids))


def test_every_operation_documents_its_errors_as_problems(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["operationId"], where
            assert {"401", "403", "421", "422", "429", "500"} <= set(operation["responses"]), where
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], where


def test_the_examples_of_a_submission_work(bare: Server, document: dict[str, Any]) -> None:
    for path in ("/api/experiments", "/api/estimate"):
        content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for name, example in content["examples"].items():
            response = bare.client.post(path, json=example["value"])
            assert response.status_code in (200, 202), f"{name}: {response.text}"


def test_the_spec_is_described_once_and_completely(document: dict[str, Any]) -> None:
    described = document["components"]["schemas"]["SpecSubmission"]["properties"]
    assert set(described) == set(Spec.model_fields) | {"force", "priority"}
    assert all("description" in field or "$ref" in field for field in described.values())


words = st.text(max_size=8) | st.sampled_from(["sgd", "altsdp", "valley.bend", "cnn", "digits", "halving", "../x"])
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def spoilt(spec: Any, draw: Any) -> Any:
    """The spec with one value, at any depth, replaced, added or removed."""
    if isinstance(spec, dict) and spec and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(spec)))
        return {**spec, key: spoilt(spec[key], draw)}
    if isinstance(spec, list) and spec and draw(st.booleans()):
        index = draw(st.integers(0, len(spec) - 1))
        return [*spec[:index], spoilt(spec[index], draw), *spec[index + 1 :]]
    if isinstance(spec, dict):
        return {**spec, draw(words): draw(values)}
    return draw(values)


@pytest.mark.parametrize("examples", [50, pytest.param(500, marks=pytest.mark.drill)])
def test_a_spoilt_spec_is_accepted_or_refused_at_a_field(bare: Server, examples: int) -> None:
    @given(st.data())
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def check(data: st.DataObject) -> None:
        submit_spoilt(bare, spoilt(TINY, data.draw))

    check()


def submit_spoilt(server: Server, spec: Any) -> None:
    if isinstance(spec, dict) and isinstance(spec.get("model"), dict):
        spec = {**spec, "model": {"name": spec["model"].get("name", "cnn")}}  # others take seconds to build
    body = json.dumps(spec).encode()
    headers = {"content-type": "application/json"}
    response = server.client.post("/api/experiments", content=body, headers=headers)
    if response.status_code == 202:
        assert server.client.post(f"{response.headers['location']}/cancel").status_code == 202
        return
    problem = response.json()
    assert response.status_code == 422, problem
    assert problem["code"] == "too-expensive" or all(error["path"] and error["message"] for error in problem["errors"])

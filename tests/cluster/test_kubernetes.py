"""The manifests for Kubernetes: valid by its schemas, closed, and of the same shape as docker-compose.yml."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.cluster.compose_file import HOUSE, Service, read_choices, read_compose

FOLDER = HOUSE / "deploy" / "kubernetes"
BASE: dict[str, Any] = yaml.safe_load((FOLDER / "base" / "kustomization.yaml").read_text())
OVERLAY: dict[str, Any] = yaml.safe_load((FOLDER / "store" / "kustomization.yaml").read_text())
FILES = [FOLDER / "base" / name for name in BASE["resources"]]
OBJECTS: list[dict[str, Any]] = [found for path in FILES for found in yaml.safe_load_all(path.read_text()) if found]
VERSIONS = ("1.30", "1.37")
NAMES = ("api", "worker", "worker-gpu", "postgres")


def workload(name: str) -> dict[str, Any]:
    kinds = ("Deployment", "StatefulSet")
    (found,) = [item for item in OBJECTS if item["kind"] in kinds and item["metadata"]["name"] == name]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = workload(name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def composed(name: str) -> Service:
    return read_compose("gpu" if name == "worker-gpu" else "cpu", read_choices())[name]


def environment(name: str) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(name)["env"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_object_fits_the_schema(path: Path, version: str) -> None:
    objects = [found for found in yaml.safe_load_all(path.read_text()) if found]
    assert objects
    for found in objects:
        kubernetes_validate.validate(found, version, strict=True)
        assert found["kind"] == "Namespace" or found["metadata"]["namespace"] == "valleyscope"


def test_the_validator_would_see_a_wrong_field() -> None:
    wrong = {**workload("api"), "spec": {**workload("api")["spec"], "replica": 3}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_is_what_compose_runs(name: str) -> None:
    here, there = container(name), composed(name)
    assert here["image"] == there.definition["image"]
    # A pod sees the GPU that it was given; a container of compose sees all of them.
    given_device = ["worker", "--device", "cuda:0"] if name == "worker-gpu" else there.definition["command"]
    assert here["args"] == given_device
    assert "command" not in here, "the entry point is the image's"
    given = {key: str(value) for key, value in there.definition["environment"].items()}
    assert environment(name) == given | ({"PGDATA": environment(name)["PGDATA"]} if name == "postgres" else {})
    assert ("envFrom" in here) == ("env_file" in there.definition)
    assert all(source["secretRef"]["optional"] for source in here.get("envFrom", []))
    assert workload(name)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == there.grace
    (secrets,) = [v["secret"] for v in workload(name)["spec"]["template"]["spec"]["volumes"] if "secret" in v]
    assert {item["key"] for item in secrets["items"]} == set(there.definition["secrets"])


@pytest.mark.parametrize("name", ["worker", "worker-gpu", "postgres"])
def test_probes_are_the_health_checks_of_compose(name: str) -> None:
    for probe in ("startupProbe", "livenessProbe"):
        assert container(name)[probe]["exec"]["command"] == composed(name).healthcheck
        assert container(name)[probe]["timeoutSeconds"] >= 5, "one second, the default, is less than a program's start"


def test_the_api_lives_while_it_answers_and_is_ready_while_its_database_does() -> None:
    api = container("api")
    assert api["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert api["readinessProbe"]["httpGet"]["path"] == "/readyz"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert api[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


@pytest.mark.parametrize("name", NAMES)
def test_pods_have_no_privileges_and_limits(name: str) -> None:
    pod, here = workload(name)["spec"]["template"]["spec"], container(name)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert here["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= here["resources"]["limits"].keys()
    if composed(name).image is not None:
        image = composed(name).image
        assert image is not None
        assert image.user == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
        mounts = {mount["mountPath"] for mount in here["volumeMounts"]}
        assert mounts == {*composed(name).mounts, "/tmp", "/run/secrets"}


def test_a_gpu_worker_gets_one_gpu_and_a_plain_one_none() -> None:
    assert container("worker-gpu")["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert "nvidia.com/gpu" not in container("worker")["resources"]["limits"]


def test_no_manifest_is_left_out_and_images_can_come_from_any_registry() -> None:
    assert {path.name for path in (FOLDER / "base").glob("*.yaml")} == {*BASE["resources"], "kustomization.yaml"}
    (image,) = BASE["images"]
    ours = {container(name)["image"].partition(":")[0] for name in NAMES if name != "postgres"}
    assert ours == {image["name"]}


def applied(patch: list[dict[str, Any]], document: Any) -> Any:
    """A document after the operations of a JSON patch (RFC 6902) that ours have."""
    document = copy.deepcopy(document)
    for step in patch:
        *path, last = (int(key) if key.isdigit() else key for key in step["path"].strip("/").split("/"))
        place = document
        for key in path:
            place = place[key]
        assert last in place if isinstance(place, dict) else last < len(place)
        match step["op"]:
            case "test":
                assert place[last] == step["value"]
            case "replace":
                place[last] = step["value"]
            case "remove":
                del place[last]
    return document


def test_with_a_store_no_pod_needs_a_shared_volume_and_all_need_the_store() -> None:
    assert OVERLAY["resources"] == ["../base"]
    deletion, patch = (yaml.safe_load(entry["patch"]) for entry in OVERLAY["patches"])
    assert (deletion["$patch"], deletion["kind"], deletion["metadata"]["name"]) == (
        "delete",
        "PersistentVolumeClaim",
        "home",
    )
    assert OVERLAY["patches"][1]["target"] == {"kind": "Deployment"}
    for name in ("api", "worker", "worker-gpu"):
        found = applied(patch, workload(name))
        kubernetes_validate.validate(found, VERSIONS[-1], strict=True)
        pod = found["spec"]["template"]["spec"]
        assert not any("persistentVolumeClaim" in volume for volume in pod["volumes"])
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
        assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "valleyscope-store"}}]


def test_only_the_api_is_open_and_only_our_processes_reach_postgres() -> None:
    policies = {item["metadata"]["name"]: item["spec"] for item in OBJECTS if item["kind"] == "NetworkPolicy"}
    assert policies["closed"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    assert policies.keys() == {"closed", "api", "postgres"}
    (rule,) = policies["postgres"]["ingress"]
    (source,) = rule["from"]
    assert set(source["podSelector"]["matchExpressions"][0]["values"]) == {"api", "worker", "worker-gpu"}
    assert {item["metadata"]["name"] for item in OBJECTS if item["kind"] == "Service"} == {"api", "postgres"}
    assert not any(item["kind"] in ("Secret", "Ingress") for item in OBJECTS)


def test_labels_selectors_and_budgets_belong_together() -> None:
    for name in NAMES:
        spec = workload(name)["spec"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
        assert spec["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == name
    budgets = {item["metadata"]["name"]: item["spec"] for item in OBJECTS if item["kind"] == "PodDisruptionBudget"}
    assert budgets.keys() == {"api", "worker", "worker-gpu"}
    for name, spec in budgets.items():
        assert spec["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}

"""The files around the code agree with each other: workflows, citation, constraints, and hooks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

HOUSE = Path(__file__).parent.parent
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))
GITHUB = HOUSE / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]


def constraints() -> dict[str, str]:
    lines = (HOUSE / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(re.fullmatch(r"([a-z0-9-]+)==(\S+)", line).groups() for line in lines if line[:1] not in ("", "#"))  # type: ignore[union-attr,misc]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("citation-file-format", [HOUSE / "CITATION.cff"]),
    ],
)
def test_a_file_is_valid_by_its_schema(schema: str, files: list[Path]) -> None:
    assert files
    tool = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run([tool, "--builtin-schema", f"vendor.{schema}", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_call_targets_that_the_makefile_has_and_pin_their_actions() -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (HOUSE / "Makefile").read_text(encoding="utf-8")))
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"\bmake ([a-z]+)$", text, flags=re.MULTILINE)) <= targets
        for action in re.findall(r"uses: (?!\./)(\S+)", text):
            assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", action), action
        for local in re.findall(r"uses: \./(\S+)", text):
            assert (HOUSE / local).is_file()


def test_the_tests_run_on_every_python_that_the_package_names() -> None:
    tests = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == named == ["3.11", "3.12", "3.13"]


def test_the_citation_names_the_version_and_the_licence_of_the_package() -> None:
    citation = yaml.safe_load((HOUSE / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]


def test_the_constraints_fit_the_ranges_and_are_what_the_images_get() -> None:
    pins = constraints()
    assert {"torch", "torchvision", "numpy"} <= pins.keys()
    wanted = {Requirement(line).name: Requirement(line).specifier for line in PROJECT["project"]["dependencies"]}
    locked = dict(
        re.findall(r"(?m)^([a-z0-9._-]+)==([^ ;]+)", (HOUSE / "deploy/locks/cuda.txt").read_text(encoding="utf-8"))
    )
    for name, version in pins.items():
        assert wanted[name].contains(version), f"{name}{wanted[name]} excludes {version}"
        assert locked[name] == version, f"{name} is locked at {locked[name]}: make lock"
    assert not any(specifier.operator == "==" for name in pins for specifier in wanted[name]), "ranges, not pins"


def test_every_install_of_the_makefile_keeps_to_the_constraints() -> None:
    lines = (HOUSE / "Makefile").read_text(encoding="utf-8").splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert installs == ["INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt"]
    assert sum(line.startswith("\t$(INSTALL) ") for line in lines) >= 4


def test_the_commit_hooks_are_the_tools_of_make_check() -> None:
    hooks = yaml.safe_load((HOUSE / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    check = (HOUSE / "Makefile").read_text(encoding="utf-8").partition("\ncheck:")[2].partition("\n\n")[0]
    for hook in hooks:
        tool = " ".join(hook["entry"].removeprefix(".venv/bin/").split()[:2]).replace(" --fix", "")
        assert f"$(BIN)/{tool}" in check, tool

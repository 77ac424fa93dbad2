"""The Dockerfile: lint-free, unprivileged, and built from locks that fit pyproject.toml."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cluster.compose_file import HOUSE, read_image
from valleyscope.app.settings import Settings

LOCKS = HOUSE / "deploy" / "locks"
DOCKERFILE = (HOUSE / "Dockerfile").read_text(encoding="utf-8")


def locked(name: str) -> dict[str, str]:
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^([a-z0-9._-]+)==([^ ;]+)", text))


def test_the_linter_has_nothing_to_say() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, HOUSE / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_an_image_runs_valley_as_nobody_in_particular(target: str) -> None:
    image = read_image(target)
    assert image.entrypoint == ["valley"]
    assert image.command == ["serve"]
    assert image.healthcheck == ["valley", "health"]
    assert image.user == "10001:10001"
    known = {f"VALLEY_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in image.environment if name.startswith("VALLEY_")} <= known
    written = ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "VALLEY_HEARTBEAT")
    assert all(image.environment[name].startswith("/tmp") for name in written)


def test_the_base_is_pinned_and_nothing_is_fetched_but_locked_libraries() -> None:
    assert re.search(r"^ARG BASE=python:3\.11\.\d+-slim-\w+$", DOCKERFILE, flags=re.MULTILINE)
    installs = re.findall(r"pip (?:install|wheel)[^&;|\n]*", DOCKERFILE)
    assert len(installs) == 8
    for command in installs:
        assert "--no-deps" in command
        assert any(word in command for word in ("--require-hashes", "--no-index", '--index-url "$TORCH_INDEX"'))
    assert not re.search(r"curl|wget|apt-get|https?://", DOCKERFILE)


@pytest.mark.parametrize("name", ["cuda", "cpu", "build"])
def test_every_locked_library_has_a_hash_and_no_address(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    blocks = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert blocks
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text


def test_the_locks_fit_what_the_project_asks_for() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))
    versions = locked("cuda")
    for line in [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["s3"]]:
        wanted = Requirement(line)
        found = versions.get(canonicalize_name(wanted.name))
        assert found is not None, f"{wanted.name} is not locked: make lock"
        assert wanted.specifier.contains(found), f"{wanted} is locked at {found}: make lock"
    (build,) = project["build-system"]["requires"]
    assert Requirement(build).specifier.contains(locked("build")["setuptools"])


def test_the_cpu_lock_is_the_cuda_lock_without_cuda() -> None:
    specification = importlib.util.spec_from_file_location("lock", HOUSE / "deploy" / "lock.py")
    assert specification is not None
    assert specification.loader is not None
    lock = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(lock)
    whole = (LOCKS / "cuda.txt").read_text(encoding="utf-8")
    assert (LOCKS / "cpu.txt").read_text(encoding="utf-8") == lock.without_cuda(whole)
    gone = locked("cuda").keys() - locked("cpu").keys()
    assert {"torch", "torchvision", "triton", "nvidia-cublas"} <= gone
    assert "numpy" in locked("cpu")


def test_the_build_gets_what_it_copies_and_neither_secrets_nor_results() -> None:
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, flags=re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert {"app", "training", "landscape", "static", "deploy/locks/cuda.txt"} <= set(copied)
    assert all((HOUSE / source).exists() for source in copied)
    assert all(_enters(source) for source in copied)
    for kept_out in (
        "secrets/api_key",
        ".env",
        ".git/config",
        "demo/valley.db",
        "tests/conftest.py",
        ".venv/bin/python",
    ):
        assert not _enters(kept_out), kept_out


def _enters(path: str) -> bool:
    """Whether a path is part of the build: the last pattern of .dockerignore that fits it, or a parent, decides."""
    parts = Path(path).parts
    names = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    enters = True
    for line in (HOUSE / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip().lstrip("!")
        if pattern and not pattern.startswith("#") and any(fnmatch.fnmatch(name, pattern) for name in names):
            enters = line.startswith("!")
    return enters

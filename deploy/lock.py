"""Writes deploy/locks: every library of the images with its exact version and the hashes of its files.

    make lock

`cuda.txt` is what the public index gives on Linux (its torch is the CUDA build, with its libraries); `cpu.txt` is
the same without torch and what only CUDA needs, since CPU builds of torch come from an index of their own;
`build.txt` is what makes our wheel. One resolution serves both images, so they never differ in anything else. The
extra `s3` is in it, so that VALLEY_STORE works in a container; constraints.txt holds for both.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
LOCKS = HOUSE / "deploy" / "locks"
ONLY_CUDA = re.compile(r"(torch|torchvision|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==")
_TARGET = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28")
_HEADER = "# Made by `make lock` for Python 3.11 on Linux x86-64; do not edit.\n"


def resolve(target: Path, *options: str, text: str | None = None) -> str:
    """What uv resolves, as requirements with hashes; the index is that of the machine and is not written down.

    Versions that the target has already stay where they still fit: a new library must not move all others.
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header", *_TARGET]
    command += ["--no-annotate", "--output-file", str(target), *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=HOUSE, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    lock = target.read_text(encoding="utf-8")
    target.write_text(_HEADER + lock, encoding="utf-8")
    return lock


def without_cuda(lock: str) -> str:
    """A lock without torch and the libraries that only its CUDA build needs."""
    blocks = re.split(r"(?m)^(?=[a-z0-9])", lock)
    return "".join(block for block in blocks if not ONLY_CUDA.match(block))


def main() -> None:
    upgrade = ("--upgrade",) if "--upgrade" in sys.argv[1:] else ()
    LOCKS.mkdir(exist_ok=True)
    lock = resolve(LOCKS / "cuda.txt", "pyproject.toml", "--extra", "s3", "--constraint", "constraints.txt", *upgrade)
    (LOCKS / "cpu.txt").write_text(_HEADER + without_cuda(lock), encoding="utf-8")
    resolve(LOCKS / "build.txt", "-", *upgrade, text="setuptools>=77\n")


if __name__ == "__main__":
    main()

"""What an engine gives a process, by the means of the kernel: a user without privileges, and a read-only file system.

Needs root. Where the interpreter lies in a folder that is closed to other users, as in root's own home, the process
gets a view in which that folder is open and holds nothing else; the folder itself stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

NOBODY = 65534
_SCRIPT = """
set -e
number=0
for path in $CONFINED_NEEDED; do
    number=$((number + 1)); mount --bind "$path" "$CONFINED_SPARE/$number"
done
for folder in $CONFINED_WRITABLE; do mount --bind "$folder" "$folder"; done
for folder in $CONFINED_CLOSED; do mount -t tmpfs -o mode=755 none "$folder"; done
number=0
for path in $CONFINED_NEEDED; do
    number=$((number + 1)); mkdir -p "$path"; mount --bind "$CONFINED_SPARE/$number" "$path"
    mount -o remount,bind,ro "$path"
done
for folder in $CONFINED_CLOSED; do mount -o remount,ro "$folder"; done
mount -o remount,bind,ro /
unset CONFINED_NEEDED CONFINED_WRITABLE CONFINED_CLOSED CONFINED_SPARE
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""
PREFIX = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _SCRIPT, "confined"]


def can_confine() -> bool:
    """Whether a process may get a mount namespace and another user here."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")):
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


def confinement(spare: Path, house: Path, writable: Iterable[Path]) -> dict[str, str]:
    """What PREFIX must find in the environment; `spare` is a folder for its use."""
    paths = {house, Path(sys.prefix), Path(sys.base_prefix), *(Path(entry) for entry in sys.path if entry)}
    closed = {path: folder for path in sorted(paths) if path.is_dir() and (folder := _closed(path)) is not None}
    needed = [path for path in closed if not any(parent in closed for parent in path.parents)]
    for number, _ in enumerate(needed, 1):
        (spare / str(number)).mkdir(parents=True, exist_ok=True)
    return {
        "CONFINED_NEEDED": " ".join(map(str, needed)),
        "CONFINED_CLOSED": " ".join(sorted({str(folder) for folder in closed.values()})),
        "CONFINED_WRITABLE": " ".join(map(str, writable)),
        "CONFINED_SPARE": str(spare),
    }


def _closed(path: Path) -> Path | None:
    """The first folder on the way to a path that other users may not enter."""
    way = [*reversed(path.parents), path]
    return next((folder for folder in way if not folder.stat().st_mode & 0o001), None)

"""Read uploaded landscapes in a process of its own, with limits on time and memory: files are not trusted.

`python -m valleyscope.app.experiments.landscape_import` is that process. It checks the files and writes each landscape
anew, so that nobody else opens what was uploaded.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from valleyscope.app.experiments.experiment_writer import LANDSCAPE, REPORT, SPEC, VERDICT
from valleyscope.app.experiments.judged_figures import judged_figures
from valleyscope.app.experiments.spec import Spec
from valleyscope.landscape.analysis.derived_tables import enter_derived_tables
from valleyscope.landscape.analysis.verdict_kind import VerdictKind
from valleyscope.landscape.claim import computed_planes
from valleyscope.landscape.importers import NotImportable, NoVerdict, Run, import_files, judged
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape

TIMEOUT_SECONDS: Final = 120.0  # a surface with a million points takes some seconds
_MEMORY_BYTES: Final = 4 * 2**30
_COMMAND: Final = (sys.executable, "-m", "valleyscope.app.experiments.landscape_import")
_LONGEST_NAME: Final = 120
_LONGEST_SENTENCE: Final = 4000
IMPORTED: Final = "imported"
"""The field of a stored spec that says which files an experiment was made from, and what they are about."""


@dataclass(frozen=True)
class ImportedLandscape:
    """A folder with landscape.h5 and report.html, and what the catalogue keeps of it.

    `spec` is the landscape's own, if it has a valid one, with the field `imported`. Without a verdict, `no_verdict`
    says why. `figures` are those of the judged network for the list.
    """

    folder: Path
    spec: dict[str, Any]
    verdict: dict[str, Any] | None
    no_verdict: str | None
    figures: dict[str, float | None]


def import_landscapes(
    files: Sequence[Path], target: Path, *, name: str | None = None, timeout: float = TIMEOUT_SECONDS
) -> list[ImportedLandscape]:
    """Write a folder under `target` for each landscape in these files.

    Raises FileNotFoundError, NotImportable, or OSError where the disk refuses.
    """
    request = {"files": [str(file) for file in files], "target": str(target), "name": name}
    shown = ", ".join(str(file) for file in files)
    kept = {key: value for key, value in os.environ.items() if key != "VALLEY_API_KEY"}
    try:
        done = subprocess.run(
            _COMMAND,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout,
            check=False,
            env={**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # each thread would reserve memory
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise NotImportable(f"{shown}: could not be read within {timeout:g} s: it is damaged or too large") from None
    if done.returncode != 0:
        raise NotImportable(f"{shown}: is damaged; reading it {_outcome(done.returncode)}")
    answer = json.loads(done.stdout)
    if "errno" in answer:
        raise OSError(answer["errno"], answer["error"])
    if "missing" in answer:
        raise FileNotFoundError(answer["missing"])
    if "error" in answer:
        raise NotImportable(answer["error"])
    return [ImportedLandscape(**{**found, "folder": Path(found["folder"])}) for found in answer["landscapes"]]


def _outcome(code: int) -> str:
    """How a process ended without a result."""
    return f"fails ({signal.Signals(-code).name})" if code < 0 else f"fails (exit status {code})"


def _write(run: Run, folder: Path, name: str | None) -> dict[str, Any]:
    from valleyscope.landscape.report import write_report  # plotly loads slowly

    landscape = run.landscape
    folder.mkdir(parents=True)
    landscape.name = _display_name(name or landscape.name)
    no_verdict = None
    if not _is_verdict(landscape.verdict):
        try:
            landscape.verdict = judged(landscape)
        except (NoVerdict, ValueError) as error:
            landscape.verdict, no_verdict = None, f"no verdict: {error}"
    spec = imported_spec(landscape, [file.name for file in run.files])
    enter_derived_tables(landscape)
    landscape.save(folder / LANDSCAPE)
    write_report(landscape, folder / REPORT)
    for file, value in ((SPEC, spec), (VERDICT, landscape.verdict)):
        if value is not None:
            with write_atomically(folder / file) as opened:
                opened.write(json.dumps(value, indent=2, allow_nan=False).encode())
    about = {"verdict": landscape.verdict, "no_verdict": no_verdict, "figures": judged_figures(landscape)}
    return {"folder": str(folder), "spec": spec, **about}


def imported_spec(landscape: Landscape, files: Sequence[str]) -> dict[str, Any]:
    """The spec of an imported experiment: its own where it is valid and fits, else only the names of its minima."""
    source = landscape.provenance.get("source")
    facts = {
        "files": list(files),
        "source": source[:200] if isinstance(source, str) else "landscape.h5",
        "minima": list(landscape.minima),
        "planes": list(dict.fromkeys([*(plane.name for plane in computed_planes(landscape)), *landscape.planes])),
        "splits": _splits(landscape),
        "dataset": "",
        "model": "",
    }
    own = _valid_spec(landscape)
    if own is not None:
        facts |= {"dataset": own.dataset, "model": str(own.model)}
        return {**own.to_json(), "name": landscape.name, IMPORTED: facts}
    return {"name": landscape.name, "minima": {minimum: {} for minimum in landscape.minima}, IMPORTED: facts}


def _valid_spec(landscape: Landscape) -> Spec | None:
    """The spec that the landscape was computed from, if all of it is there."""
    values: Mapping[str, Any] = {key: value for key, value in landscape.spec.items() if key != IMPORTED}
    if "minima" not in values:
        return None
    try:
        spec = Spec.model_validate(values)
    except (ValidationError, RecursionError):
        return None
    whole = list(spec.minima) == list(landscape.minima) and list(spec.all_planes) == list(landscape.planes)
    return spec if whole else None


def _splits(landscape: Landscape) -> list[str]:
    """The data of all surfaces and paths: train first."""
    found = {name for plane in landscape.planes.values() for name in plane.splits}
    found |= {name for path in (*landscape.curves.values(), *landscape.lines.values()) for name in path.splits}
    return [split for split in ("train", "test") if split in found]


def _is_verdict(verdict: Mapping[str, Any] | None) -> bool:
    """Whether a verdict from a file has the form of ours."""
    if verdict is None:
        return False
    kind, sentence = verdict.get("kind"), verdict.get("sentence")
    known = isinstance(kind, str) and kind in tuple(VerdictKind)
    return known and isinstance(sentence, str) and len(sentence) < _LONGEST_SENTENCE


def _display_name(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[:_LONGEST_NAME] or "landscape"


def _handle(request: Mapping[str, Any]) -> dict[str, Any]:
    files, target = [Path(file) for file in request["files"]], Path(request["target"])
    try:
        runs = import_files(files)
        made = [
            _write(run, target / str(number), request["name"] if len(runs) == 1 else None)
            for number, run in enumerate(runs)
        ]
    except FileNotFoundError as error:
        return {"missing": str(error)}
    except OSError as error:
        return {"error": str(error), **({} if error.errno is None else {"errno": error.errno})}
    except MemoryError:
        return {"error": f"{', '.join(map(str, files))}: needs more than {_MEMORY_BYTES} bytes of memory"}
    except ValueError as error:
        return {"error": str(error)}
    return {"landscapes": made}


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # other output must not mix with the answer
    print(json.dumps(_handle(json.load(sys.stdin))), file=answers, flush=True)


if __name__ == "__main__":
    _main()

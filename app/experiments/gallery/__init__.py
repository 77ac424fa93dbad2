"""Finished landscapes that ship with the project, to explore before anything is run.

`index.yaml` lists them; each is a folder with `landscape.h5`. `python docs/gallery.py` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.recipes import load_recipe
from valleyscope.app.experiments.spec import Spec, read_spec
from valleyscope.landscape.storage.landscape_file import Landscape

FOLDER: Final = Path(__file__).parent
_PREFIX: Final = "gallery-"


@dataclass(frozen=True)
class GalleryEntry:
    """A landscape of the gallery: `shows` says in a sentence what to look at, `verdict` is the kind it must have."""

    name: str
    title: str
    shows: str
    verdict: str
    recipe: str | None = None

    @property
    def id(self) -> str:
        """Its id among experiments."""
        return _PREFIX + self.name

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    def spec(self) -> Spec:
        """What the landscape is computed from."""
        return load_recipe(self.recipe) if self.recipe is not None else read_spec(self.folder / "spec.yaml")


@cache
def gallery_entries() -> tuple[GalleryEntry, ...]:
    """All entries, in the order in which they are shown."""
    listed = yaml.safe_load((FOLDER / "index.yaml").read_text(encoding="utf-8"))
    return tuple(GalleryEntry(**values) for values in listed)


def is_gallery_id(text: str) -> bool:
    """Whether an id is of the form that entries of the gallery have; ids of experiments are hexadecimal."""
    return text.startswith(_PREFIX)


def find_entry(text: str) -> GalleryEntry | None:
    """An entry by its name or id."""
    return next((entry for entry in gallery_entries() if text in (entry.name, entry.id)), None)


def gallery(name: str) -> Landscape:
    """Open a landscape of the gallery, such as ``gallery("demo")``; a ValueError lists the names."""
    entry = find_entry(name)
    if entry is None:
        known = ", ".join(entry.name for entry in gallery_entries())
        raise ValueError(f"{name!r} is not in the gallery: use one of {known}")
    return Landscape.open(entry.folder / LANDSCAPE)

"""The look of all figures: colours, sizes, titles and number rules, from the one file that the page reads, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

STATIC: Final = Path(__file__).parents[1] / "static"
STYLE: Final[Any] = json.loads((STATIC / "plots" / "style.json").read_text(encoding="utf-8"))

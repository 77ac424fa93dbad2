"""Files of other tools as landscapes: dnn-mode-connectivity (Garipov et al.) and loss-landscape (Li et al.)."""

from valleyscope.landscape.importers.import_file import NotImportable, import_file
from valleyscope.landscape.importers.judge import NoVerdict, judged
from valleyscope.landscape.importers.runs import Run, import_files

__all__ = ["NoVerdict", "NotImportable", "Run", "import_file", "import_files", "judged"]

"""Files of other tools as landscapes: dnn-mode-connectivity (Garipov et al.) and loss-landscape (Li et al.)."""

from valleyscope.landscape.importers.import_file import NotImportable, import_file

__all__ = ["NotImportable", "import_file"]

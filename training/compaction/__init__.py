"""Compact networks: zero groups removed exactly, saved, exported and timed.

It is in `training` because it needs the network's modules, its checkpoints and operation counts, and no landscape.
"""

from valleyscope.training.compaction.compact import Compact as Compact
from valleyscope.training.compaction.compact import compact as compact
from valleyscope.training.compaction.report import CompactReport as CompactReport
from valleyscope.training.compaction.tracing import NotCompactable as NotCompactable

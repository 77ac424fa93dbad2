"""Compact networks: zero groups removed exactly, saved, exported and timed.

It is in `training` because it needs the network's modules, its checkpoints and operation counts, and no landscape.
"""

from valleyscope.training.compaction.compact import Compact as Compact
from valleyscope.training.compaction.compact import compact as compact
from valleyscope.training.compaction.compact_file import load_compact as load_compact
from valleyscope.training.compaction.compact_file import save_compact as save_compact
from valleyscope.training.compaction.exports import export_onnx as export_onnx
from valleyscope.training.compaction.exports import export_program as export_program
from valleyscope.training.compaction.latency import Latency as Latency
from valleyscope.training.compaction.latency import latencies as latencies
from valleyscope.training.compaction.report import CompactReport as CompactReport
from valleyscope.training.compaction.tracing import NotCompactable as NotCompactable

"""What holds for all tests: one thread for each process, as in workers, since the tests run on all cores already."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

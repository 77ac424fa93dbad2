"""The browser of the tests, of the screenshots and of the benchmark of the page."""

from __future__ import annotations

import shutil

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, PROGRAMS) if path), None)
"""None: Playwright's own."""

# WebGL by software. Not with --disable-gpu: then it is a stand-in that complains of every pixel that is read.
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic"]

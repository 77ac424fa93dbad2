# CI runs the same commands. Everything is in .venv; only `make test` may also install a browser.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

SECRETS ?= secrets

# Where no byte code may be written, each of the hundreds of processes of the tests compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check audit browser bench drill dist screenshots docs reproduce setup clean secrets lock

setup: $(READY)

# One after the other: asked for all at once, pip looks for versions of the two libraries of S3 that suit each other among
# other builds of torch and ancient versions of everything else.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Valleyscope needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	$(INSTALL) --group stores
	$(INSTALL) --editable .
	$(INSTALL) --editable '.[dev]'
	touch $@

# Runs the demo experiment and keeps serving; ONCE=1 exits after the verdict.
demo: $(READY)
	$(BIN)/valley demo $(if $(ONCE),--once)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pip check
	$(BIN)/mkdocs build --strict --quiet --site-dir $(VENV)/site

# Known vulnerabilities of the installed packages. Needs the network, so it is not part of `check`; fails on unknown packages.
audit: $(READY)
	$(INSTALL) --editable '.[audit]'
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/requirements.txt
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement $(VENV)/requirements.txt

# A browser for the tests of the page: an installed one, else Debian's, else Playwright's.
browser: $(READY)
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && apt-get install -y -qq chromium; } \
	|| $(BIN)/playwright install chromium

# Three processes on two cores, since half of the time tests wait for servers. A file stays in one process: what its tests
# share, such as a running service, is made once. Tests that fail beside others run once more, alone: a machine that is
# too busy does not fail them, what is broken does. The summary of the first run names them; a race is still a fault.
test: check browser
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not drill" || { [ $$? = 1 ] \
	&& echo "Once more, alone: the tests that failed" \
	&& $(BIN)/python -m pytest --last-failed --last-failed-no-failures none --maxfail 5 -m "not drill"; }

# The long drills.
drill: $(READY) browser
	$(BIN)/python -m pytest -m drill

# Runs all benchmarks; fails if one misses its limit.
bench: $(READY)
	$(INSTALL) --editable '.[dev,bench]'
	missed=; for benchmark in benchmarks/*.py; do \
		echo "== $$benchmark"; $(BIN)/python $$benchmark --check || missed="$$missed $$benchmark"; \
	done; test -z "$$missed" || { echo "missed:$$missed" >&2; exit 1; }

# An API key and a Postgres password for docker compose; existing ones stay. Only you can open the folder; the files are
# world-readable because compose mounts them unchanged for another user.
secrets:
	@umask 077; mkdir -p "$(SECRETS)"
	@for name in api_key postgres_password; do \
		[ -s "$(SECRETS)/$$name" ] || head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > "$(SECRETS)/$$name"; \
		chmod 444 "$(SECRETS)/$$name"; \
	done
	@echo "$(SECRETS)/api_key has the key that clients send as X-API-Key"

# Exact versions and hashes for the images; UPGRADE=1 takes the newest compatible versions.
lock: $(READY)
	$(BIN)/python deploy/lock.py $(if $(UPGRADE),--upgrade)

# What a release uploads: the sdist, and the wheel that is built from it.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m uv build --quiet --out-dir dist

# The pictures of README and docs, from the landscapes of the gallery.
screenshots: $(READY) browser
	$(BIN)/python docs/screenshots.py

# The documentation as a site in build/site: offline, and any warning or broken link fails.
docs: $(READY)
	$(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# The paper's experiments. Without PART: what there is, and what it costs. A run goes on where it ended; OUT has its files.
reproduce: $(READY)
	$(BIN)/python -m docs.reproduction $(PART) $(if $(OUT),--out $(OUT)) $(if $(PHOTOGRAPHS),--photographs $(PHOTOGRAPHS))

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

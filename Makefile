# What a person types is what CI runs. Everything lives in .venv; nothing else on the machine is touched,
# except that `make test` fetches a browser if there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

SECRETS ?= secrets

.PHONY: demo test check audit browser bench drill screenshots setup clean secrets lock

setup: $(READY)

# One after the other: asked for all at once, pip looks for versions of the two libraries of S3 that suit each other among
# other builds of torch and ancient versions of everything else.
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Valleyscope needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group stores
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# The main job on the embedded default: trains, fits, maps, and says whether it is one valley. ONCE=1 ends after it.
demo: $(READY)
	$(BIN)/valley demo $(if $(ONCE),--once)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pip check

# Known vulnerabilities of all that is installed. It asks the PyPI vulnerability service, so it needs the network, and
# is not part of `check`; what that service does not know makes it fail rather than pass unseen.
audit: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[audit]'
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/requirements.txt
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement $(VENV)/requirements.txt

# A browser for the tests of the page: the one that is there, else Debian's, else Playwright's own.
browser: $(READY)
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && apt-get install -y -qq chromium; } \
	|| $(BIN)/playwright install chromium

# Four processes on two cores, since half of the time tests wait for servers. A file stays in one process: what its tests
# share, such as a running service, is made once.
test: check browser
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not drill"

# Long forms of the drills of `make test`.
drill: $(READY) browser
	$(BIN)/python -m pytest -m drill

# Ratios taken side by side in one run; all of them run, and it fails if one is below the floor that we promise.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	missed=; for benchmark in benchmarks/*.py; do \
		echo "== $$benchmark"; $(BIN)/python $$benchmark --check || missed="$$missed $$benchmark"; \
	done; test -z "$$missed" || { echo "missed:$$missed" >&2; exit 1; }

# A key for the API and a password for Postgres, for docker compose; those that are there stay. The folder is closed to
# others; the files in it can be read by everyone, since compose mounts them as they are for a user of its own.
secrets:
	@umask 077; mkdir -p "$(SECRETS)"
	@for name in api_key postgres_password; do \
		[ -s "$(SECRETS)/$$name" ] || head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > "$(SECRETS)/$$name"; \
		chmod 444 "$(SECRETS)/$$name"; \
	done
	@echo "$(SECRETS)/api_key is what clients send as X-API-Key"

# Exact versions and hashes of what the images install; UPGRADE=1 takes the newest that fit.
lock: $(READY)
	$(BIN)/python deploy/lock.py $(if $(UPGRADE),--upgrade)

# The pictures of README and docs, of a real run of the demo with two seeds.
screenshots: $(READY) browser
	$(BIN)/python docs/screenshots.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

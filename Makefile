# Every target makes what it needs. PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-all lint format wheel clean

# One stamp for each set of packages: nothing is installed twice.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,dev]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/python -m tools.demo

test: $(VENV)/.dev
	$(BIN)/reflectworld models pull --optional
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: lint
	$(BIN)/reflectworld models pull --optional
	$(BIN)/python -m pytest -m ''

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build demo-memory .cache

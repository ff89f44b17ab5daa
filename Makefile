# `make demo` and `make test` do everything on a machine with Python >= 3.11, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install demo demo-seeds bench test lint clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fewtags needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/fewtags demo --out runs/demo

demo-seeds: $(INSTALLED)
	$(BIN)/fewtags demo --seeds 2,3,4 --out runs/demo-seeds

# Measures for hours; goes on where it stopped. `make bench BENCH='--cases heads/C80 --rounds 1'` measures a part.
bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.bench $(BENCH)
	$(BIN)/python -m benchmarks.prototypes
	$(BIN)/python -m benchmarks.metrics
	$(BIN)/python -m benchmarks.loading
	$(BIN)/python -m benchmarks.tables docs/performance.md
	$(BIN)/python -m benchmarks.charts docs/performance.png

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	@command -v chromium >/dev/null || echo "WARNING: no chromium here: the tests of the review page in a browser are SKIPPED (apt-get install chromium)" >&2
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

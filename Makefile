# `make demo` and `make test` do everything on a machine with Python >= 3.11, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install demo demo-seeds bench torture test lint clean docs dist coverage

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
	$(BIN)/python -m benchmarks.side_by_side
	$(BIN)/python -m benchmarks.compiled
	$(BIN)/python -m benchmarks.tables docs/performance.md
	$(BIN)/python -m benchmarks.charts docs/performance.png

# Kills every command at random moments, over a hundred times; then the long tests.
torture: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture docs/reliability.md
	OMP_NUM_THREADS=1 $(BIN)/pytest -m torture --ignore tests/test_packaging.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	@command -v chromium >/dev/null || echo "WARNING: no chromium here: the tests of the review page in a browser are SKIPPED (apt-get install chromium)" >&2
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

# The documentation site, into site/: any warning is an error.
docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Wheel and sdist, into dist/; then both are installed into a new environment and used outside of this folder.
dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/pytest -m torture tests/test_packaging.py

# All tests, with coverage: a table, htmlcov/, and the line in README.md.
coverage: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term --cov-report=html --cov-report=json
	$(BIN)/python -m tests.coverage_line README.md

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache site htmlcov .coverage* coverage.json

PYTHON ?= python3
JOBS ?= 2
SIMULATIONS ?= 100
MINUTES ?= 5
CODE ?= src tests typings scripts/docs.py scripts/figures.py hot_modules.py $(wildcard bench)
BIN := .venv/bin
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal
PLAIN := $(wildcard tests/unit/protocol tests/unit/log tests/unit/broker tests/unit/client)

.DEFAULT_GOAL := help
.PHONY: help test test-slow lint fuzz torture bench demo docs annotate clean compiled

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: compiled ## the ordinary suite, compiled; then protocol, log and client once more, plain
	$(PYTEST) --ignore=tests/spark
	$(BIN)/pytest tests/spark
	PENSTOCK_PURE=1 $(PYTEST) $(PLAIN)

test-slow: compiled ## what takes longer than that
	$(PYTEST) -m slow --hypothesis-profile=fuzz --ignore=tests/spark
	$(BIN)/pytest -m slow tests/spark

lint: .venv/ready ## ruff, mypy, the table of imports; CODE="files" for some of it
	$(BIN)/ruff check $(CODE) setup.py
	$(BIN)/ruff format --check $(CODE) setup.py
	$(BIN)/mypy $(CODE)
	PENSTOCK_PURE=1 $(BIN)/pytest tests/unit/test_imports.py

fuzz: compiled ## random data and histories: EXAMPLES=1000 of each property test, SIMULATIONS=100 of each scene
	$(PYTEST) -m hypothesis --hypothesis-profile=fuzz
	SIMULATIONS=$(SIMULATIONS) $(PYTEST) -m "" tests/simulation

torture: compiled ## faults on purpose against real processes, MINUTES=5 of them; ROUNDS=50 for each one alone, SEED=n again
	$(BIN)/python -m tests.torture --minutes=$(MINUTES) $(if $(ROUNDS),--rounds=$(ROUNDS)) $(if $(SEED),--seed=$(SEED))

bench: compiled ## how fast it is, beside what this machine can do
	$(BIN)/python -m bench

demo: compiled ## see it work: a node is killed under load, archives, SQL, a replay, and every message counted
	@rm -rf build/demo
	@$(BIN)/python -m penstock.cli.demo --folder build/demo

docs: .venv/ready ## the pages of docs/ that are made from the code, and the tables of figures from bench/results/
	$(BIN)/python scripts/docs.py
	$(BIN)/python scripts/figures.py

annotate: .venv/ready ## Cython's view of the hot modules, as HTML in annotate/
	$(BIN)/python -c 'import hot_modules; hot_modules.annotate("annotate")'

clean: ## remove what was built, and .venv
	rm -rf .venv build dist annotate src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src $(wildcard tests bench) -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -delete

compiled: .venv/ready
	@$(BIN)/python setup.py -q build_ext --inplace

.venv/ready: pyproject.toml scripts/system-packages
	scripts/system-packages $(PYTHON)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q --group dev
	PENSTOCK_PURE=1 $(BIN)/pip install -q --no-build-isolation --check-build-dependencies -e .
	@touch $@

PYTHON ?= python3
CODE ?= src tests typings hot_modules.py $(wildcard bench)
BIN := .venv/bin
PLAIN := $(wildcard tests/unit/protocol tests/unit/log)

.PHONY: help test test-slow lint fuzz annotate clean compiled
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: compiled ## the ordinary suite, compiled; then protocol and log plain
	$(BIN)/pytest
	PENSTOCK_PURE=1 $(BIN)/pytest $(PLAIN)

test-slow: compiled ## what takes longer
	$(BIN)/pytest -m slow --hypothesis-profile=fuzz

lint: .venv/ready ## ruff, mypy, the table of imports
	$(BIN)/ruff check $(CODE) setup.py
	$(BIN)/ruff format --check $(CODE) setup.py
	$(BIN)/mypy $(CODE)
	PENSTOCK_PURE=1 $(BIN)/pytest -q tests/unit/test_imports.py

fuzz: compiled ## property tests with random data, EXAMPLES=1000 each
	$(BIN)/pytest -m hypothesis --hypothesis-profile=fuzz

annotate: .venv/ready ## Cython's view of the hot modules as HTML, into annotate/
	$(BIN)/cython --annotate -3 --output-dir annotate $$($(BIN)/python hot_modules.py)

clean: ## everything that was built, and .venv
	rm -rf .venv build dist annotate src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
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

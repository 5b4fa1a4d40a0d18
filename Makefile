# Every target sets up what it needs: python3 (3.11 or newer, with venv) and make are enough.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= auto
# The extras that the tests and the checks need.
TEST_EXTRAS := dev,all

PEERS_VENV  := .venv-peers
ORACLE_VENV := .venv-oracle
BIN         := $(VENV)/bin
CODE        := src tests conftest.py $(wildcard benchmarks)
PAGES       := $(wildcard README.md) docs

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# $(call new_environment,DIRECTORY)
define new_environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "fedaccord needs Python 3.11 or newer, and '$(PYTHON)' is older or not found: choose another, as in 'make PYTHON=python3.12'." >&2; \
	  exit 1; }
	@$(PYTHON) -m venv $(1) || { rm -rf $(1); exit 1; }
endef

# Pytest exits with 5 if it collects no tests, which is fine for an empty group.
allow_no_tests = || [ $$? -eq 5 ]

.DEFAULT_GOAL := help
.NOTPARALLEL:
# Their slow tests run real servers, which wait for one another much of the time: three at once on any machine,
# and nothing else beside them, as they have deadlines.
LIVE := tests/flower tests/deployment tests/ledger tests/console

# The tests start many short processes, each of which would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test test-slow mutants test-oracle check lint types imports doctests pages docs screenshots bench bench-check format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Install fedaccord into .venv
	@echo "Installed: $(BIN)/fedaccord"

demo: $(VENV)/.installed-train ## Run the demonstration
	@$(BIN)/fedaccord demo $(ARGS)

test: $(VENV)/.installed-test ## Run the tests that are not slow (ARGS="-k cost" goes to pytest)
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(VENV)/.installed-test ## Run the slow tests, and the properties with more examples
	@$(BIN)/python -m pytest -q -n 3 --dist loadfile -m slow $(LIVE) $(ARGS) $(allow_no_tests)
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m slow $(LIVE:%=--ignore=%) --ignore=tests/properties $(ARGS) $(allow_no_tests)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --hypothesis-profile=thorough tests/properties $(ARGS) $(allow_no_tests)

mutants: $(VENV)/.installed-test ## See which small faults the tests miss, for minutes a package (ARGS="agreement --minutes 10 --seed 2")
	@$(BIN)/python -m tests.mutants $(ARGS)

test-oracle: $(ORACLE_VENV)/.installed ## Compare with an independent solver (a large install)
	@$(ORACLE_VENV)/bin/python -m pytest -q -m slow tests/reference/test_nashopt.py $(ARGS)

check: lint types imports doctests pages docs ## Check style, types, imports, doctests, the pages' code and the site

lint: $(VENV)/.installed-test
	@echo "== Style"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --diff .

types: $(VENV)/.installed-test
	@echo "== Types"
	@$(BIN)/mypy --strict $(CODE)

imports: $(VENV)/.installed-test
	@echo "== Imports"
	@$(BIN)/lint-imports --no-logo

doctests: $(VENV)/.installed-test
	@echo "== Doctests"
	@$(BIN)/python -m pytest -q --doctest-modules src $(allow_no_tests)

pages: $(VENV)/.installed-test
	@echo "== Code in the pages"
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile $(PAGES) $(allow_no_tests)

docs: $(VENV)/.installed-docs ## Build the documentation site into build/site
	@echo "== Site"
	@$(BIN)/sphinx-build -q -W --keep-going -c docs -d build/doctrees . build/site
	@echo "Built: build/site/index.html"

screenshots: $(VENV)/.installed-test ## Make the pictures of the console anew (needs chromium and nginx)
	@PYTHONPATH=. $(BIN)/python docs/screenshots.py

ifdef PEERS
BENCH_VENV  := $(PEERS_VENV)
BENCH_STAMP := $(PEERS_VENV)/.installed
else
BENCH_VENV  := $(VENV)
BENCH_STAMP := $(VENV)/.installed-test
endif
bench: $(BENCH_STAMP) ## Run the benchmarks into build/bench.json (PEERS=1: also against peers)
	@mkdir -p build
	@$(BENCH_VENV)/bin/python -m benchmarks --output build/bench.json $(ARGS)

bench-check: $(VENV)/.installed-test ## Compare cheap benchmarks with those that landed (ARGS=--renew: write them anew)
	@$(BIN)/python -m benchmarks.landed $(ARGS)

format: $(VENV)/.installed-test ## Format the code
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

clean: ## Remove everything that make created
	@rm -rf $(VENV) $(PEERS_VENV) $(ORACLE_VENV) build dist .mypy_cache .pytest_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	@find src tests $(wildcard benchmarks) -name __pycache__ -prune -exec rm -rf {} +

# --- Environments: a stamp file in each records what is installed ------------------------------

$(VENV)/pyvenv.cfg:
	$(call new_environment,$(VENV))

$(PEERS_VENV)/pyvenv.cfg:
	$(call new_environment,$(PEERS_VENV))

$(ORACLE_VENV)/pyvenv.cfg:
	$(call new_environment,$(ORACLE_VENV))

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing fedaccord into $(VENV) (once) ..."
	@$(BIN)/python -m pip install -qq -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-train: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing fedaccord and its training dependencies into $(VENV) (once) ..."
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[train]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test: pyproject.toml constraints.txt Makefile | $(VENV)/pyvenv.cfg
	@echo "Installing fedaccord and its test tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[$(TEST_EXTRAS)]'
	@touch $(VENV)/.installed $(VENV)/.installed-train $@

# With every extra, because the notebooks on the site are executed.
$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing fedaccord and the documentation tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[all,docs]'
	@touch $(VENV)/.installed $(VENV)/.installed-train $@

$(PEERS_VENV)/.installed: pyproject.toml constraints.txt benchmarks/peers.txt | $(PEERS_VENV)/pyvenv.cfg
	@echo "Installing fedaccord and its peers into $(PEERS_VENV) (once) ..."
	@$(PEERS_VENV)/bin/python -m pip install -qq -e '.[all]' -r benchmarks/peers.txt
	@$(PEERS_VENV)/bin/python -m pip install -qq --no-deps pyDVL==0.10.0
	@touch $@

$(ORACLE_VENV)/.installed: pyproject.toml constraints.txt tests/oracle-requirements.txt | $(ORACLE_VENV)/pyvenv.cfg
	@echo "Installing fedaccord and the oracle into $(ORACLE_VENV) (once) ..."
	@$(ORACLE_VENV)/bin/python -m pip install -qq -c constraints.txt -e '.[dev]' -r tests/oracle-requirements.txt
	@touch $@

# Everything sets itself up: `make demo` and `make test` need only make and Python >= 3.11.
# `make help` lists the targets.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# The first Python that is new enough; PYTHON=/path/to/python chooses another one.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.logquake-stamp
UV_VERSION := 0.13.8
WORKERS ?= 2
FAST := not slow and not night and not kafka
LONG := slow or night

# Byte code is kept in one place, whatever the environment says: tests are collected in a third of the time.
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pyc
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup compile wheel demo quick test test-all test-kafka rehearse tenth turn night check lint format docs site gallery kafka-facts picture changes bench lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: compile  ## make .venv with the pinned dependencies and the command .venv/bin/logquake

compile: $(STAMP)  ## compile what has changed of the simulator's inner packages, if there is a C compiler
	@LOGQUAKE_PURE=1 $(BIN)/python -m tools.compile_packages

# What builds comes first: one dependency (pyspark) exists only as source, and it must be built by
# pinned tools too, not by whatever an isolated build would fetch.
$(STAMP): constraints.txt pyproject.toml
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python >= 3.11 is needed$(if $(PYTHON), and $(PYTHON) is not, and none was found); say where it is: make PYTHON=/path/to/python3 setup" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV) (once; a few minutes, mostly downloads)"
	@"$(PYTHON)" -m venv $(VENV)
	@sed -n -e '/^\(editables\|hatchling\|packaging\|pathspec\|pluggy\|setuptools\|tomlkit\|trove-classifiers\|wheel\)==/,/[^\\]$$/p' \
	  constraints.txt > $(VENV)/build-constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/build-constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation -r constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

wheel: $(STAMP)  ## a wheel in dist/; FORM=compiled has the compiled packages, too
	@LOGQUAKE_WHEEL=$(or $(FORM),pure) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/logquake-*.whl

demo:  ## run the main scenario and make its report; compiles nothing
	@began=$$(date +%s); $(MAKE) $(STAMP) \
	  && LOGQUAKE_SET_UP_S=$$(( $$(date +%s) - began )) $(BIN)/python -m tools.demo

quick: $(STAMP)  ## while working: style, types, floors, and the tests nearest to what has changed; about a minute
	@LOGQUAKE_PURE=1 $(BIN)/python -m tools.quick

test: lint compile  ## what must hold before every change: style, types, floors, fast tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m "$(FAST)"

test-all: lint compile  ## the fast tests and the slow ones
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m "not night and not kafka"

test-kafka: $(STAMP) compile  ## the tests in which a real Apache Kafka, brought by Maven, judges our files
	@LOGQUAKE_PURE=0 $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m "kafka and not slow" tests/kafka

rehearse: $(STAMP)  ## measure the truth table again on a real Kafka of this machine: three rehearsals of each, most of an hour; NAMES="load-small ..."
	@rm -rf build/real-cluster
	@$(BIN)/python -m tools.truth_table measure $(NAMES)
	@$(BIN)/python -m tools.truth_table table

tenth: compile  ## a tenth of what make night runs, chosen by the commit: ten landings run all of it; MINUTES=15 ends earlier
	@$(BIN)/python -m pytest -v -rs -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "$(LONG)" --tenth --minutes $(or $(MINUTES),0)

turn: $(STAMP)  ## before a landing: choose the next tenth
	@$(BIN)/python -m tools.tenth

night: test  ## everything: fast, slow and night tests, every scenario on three seeds, swarm 0..999, a real Kafka; hours
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m "$(LONG)"
	@$(MAKE) test-kafka

check: setup  ## run every scenario, the failure catalogue too, with three seeds each
	@$(BIN)/logquake check scenarios/ --seeds 1..3

lint: $(STAMP)  ## style, types, import floors
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP)  ## format the code
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: $(STAMP)  ## write what is generated: types of the trace's rows, sizes of messages, parts of the documents, the JSON Schema
	@$(BIN)/python -m tools.trace_rows
	@$(BIN)/python -m tools.message_sizes
	@$(BIN)/python -m tools.tables_doc

site: $(STAMP)  ## the documents as a site: build/site/index.html, which needs neither server nor network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

gallery: compile  ## draw the timelines of the failure catalogue again; a quarter of an hour after a change of the simulator
	@$(BIN)/python -m tools.site.gallery

kafka-facts: $(STAMP)  ## read Kafka's settings and messages out of its released jars again; needs mvn and Java 17
	@$(BIN)/python -m tools.kafka_facts

picture: demo  ## take the README's picture again: the report's first screen, in a headless CHROMIUM=chromium
	@$(or $(CHROMIUM),chromium) --headless --no-sandbox --hide-scrollbars --window-size=1180,665 \
	  --screenshot=$(CURDIR)/docs/images/quickstart.png file://$(CURDIR)/runs/quickstart-s7/report/index.html

changes: $(STAMP)  ## show what the next release says; VERSION=1.2.3 writes it to CHANGELOG.md
	@$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

bench: setup  ## measure the speed of the whole path on this machine
	@$(BIN)/logquake bench

lock: $(STAMP)  ## pin every dependency again, with hashes; UPGRADE=--upgrade takes newer versions
	@"$(PYTHON)" -m venv $(VENV)/lock
	@$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(VENV)/lock/bin/uv pip compile pyproject.toml --group build --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet \
	  $(UPGRADE) --output-file constraints.txt >/dev/null
	@echo "constraints.txt: $$(grep -c == constraints.txt) packages"

clean:  ## remove .venv, caches and build products; runs/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

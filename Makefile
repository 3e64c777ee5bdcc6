# `make` or `make help` prints what there is.
# SLUICE_DIR and SLUICE_PORT_BASE move the cluster's folder and ports, SLUICE_VENV the environment.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help venv everything demo up down status test lint types imports unit fuzz functional probe swift-suite swift-sample bench constraints clean

VENV := $(or $(SLUICE_VENV),.venv)
PYTHON := $(VENV)/bin/python
AIO := $(VENV)/bin/sluice-aio
CLUSTER := $(or $(SLUICE_DIR),.sluice)
PACKAGES := $(wildcard */sluice_*)
ROOMS := core dsl filters metrics middleware controller client devstack docs benchmarks

help:  ## print this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | awk -F'\t' '{printf "make %-12s %s\n", $$1, $$2}'

venv:  ## install what is missing: Debian packages and the virtual environment
	@tools/bootstrap

everything:  ## the same, and what only the tests need (a Docker engine, other people's clients)
	@tools/bootstrap everything

demo: venv  ## bring up a cluster, let a live workload switch compression on and off, check everything
	@$(AIO) demo

up: venv  ## start a cluster on 127.0.0.1 and leave it running
	@$(AIO) up

down:  ## stop the cluster
	@if [ -x $(AIO) ]; then $(AIO) down; else echo "no environment in $(VENV), so no cluster"; fi

status:  ## show what runs; fails unless everything does
	@if [ -x $(AIO) ]; then $(AIO) status; else echo "no environment in $(VENV), so no cluster"; exit 3; fi

test: everything lint  ## lint, types, import contracts, unit and functional tests
	@$(PYTHON) -m pytest -q $(ROOMS) tests/fuzz tests/functional

lint: venv types imports  ## ruff, mypy, import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: everything
	@$(VENV)/bin/mypy $(PACKAGES)

imports: venv
	@$(VENV)/bin/lint-imports

unit: everything  ## the tests of the rooms alone
	@$(PYTHON) -m pytest -q $(ROOMS) tests/fuzz

fuzz: everything  ## feed nonsense to the language and every decoder; SECONDS=… for each of them
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	@$(PYTHON) -m tests.fuzz --seconds $(or $(SECONDS),60)

functional: everything  ## the tests against a real cluster alone
	@$(PYTHON) -m pytest -q tests/functional

probe: everything  ## kill and cut things while a cluster is under load
	@$(PYTHON) -m pytest -q tests/probe

swift-suite: everything  ## Swift's own functional tests in every set-up, compared with plain Swift (hours); SUITE=… chooses
	@$(PYTHON) -m sluice_aio.swift_suite $(or $(SUITE),--all)

swift-sample: everything  ## a few of these tests in every set-up, others every day
	@$(PYTHON) -m sluice_aio.swift_suite --all --sample $(or $(SAMPLE),12)

bench: everything  ## measure, print a table and write JSON
	@$(PYTHON) -m benchmarks $(BENCH)

constraints:  ## renew constraints.txt in a throw-away environment
	@tools/constraints

clean: down  ## remove the cluster's folder, the environment and all caches
	@for folder in "$(CLUSTER)" "$(CLUSTER)/demo"; do \
	    if [ -e "$$folder/run/processes.json" ]; then rm -rf "$$folder"; fi; done
	@rm -rf $(VENV) .tox build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .fuzz .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

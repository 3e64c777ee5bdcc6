# `make` or `make help` prints what there is.
# SLUICE_DIR and SLUICE_PORT_BASE move the cluster's folder and ports, SLUICE_VENV the environment.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Servers and tests start from bytecode, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help venv everything demo demo-block up down status test lint types imports names scripts collected unit service functional probe browser-soak pictures roles repeat debian13 \
    faults coverage generate docs fuzz swift-suite swift-sample bench constraints clean

VENV := $(or $(SLUICE_VENV),.venv)
PYTHON := $(VENV)/bin/python
AIO := $(VENV)/bin/sluice-aio
CLUSTER := $(or $(SLUICE_DIR),.sluice)
PACKAGES := $(wildcard */sluice_*)
PYTEST := $(PYTHON) -m pytest -q
# Test processes beside each other; conftest.py says which tests stay together, and what measures rates runs alone.
WORKERS ?= 4
# What pytest exits with when no test was chosen.
NONE := 5
PARALLEL := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

help:  ## print this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | awk -F'\t' '{printf "make %-12s %s\n", $$1, $$2}'

venv:  ## install what is missing: Debian packages and the virtual environment
	@tools/bootstrap

everything:  ## the same, and what only the tests need (a Docker engine, other people's clients)
	@tools/bootstrap everything
	@$(PYTHON) -m tests.support.prepare

demo: venv  ## bring up a cluster, let a live workload switch compression on and off, check everything
	@$(AIO) demo

demo-block: everything  ## as root: a volume found by demand, attached, slowed by a sentence, the next one encrypted
	@$(AIO) demo-block

up: $(if $(WITH),everything,venv)  ## start a cluster on 127.0.0.1 and leave it running; WITH=block: with Cinder, WITH=horizon: the dashboard
	@$(AIO) up $(if $(WITH),--with $(WITH))

down:  ## stop the cluster
	@if [ -x $(AIO) ]; then $(AIO) down; else echo "no environment in $(VENV), so no cluster"; fi

status:  ## show what runs; fails unless everything does
	@if [ -x $(AIO) ]; then $(AIO) status; else echo "no environment in $(VENV), so no cluster"; exit 3; fi

test: everything  ## lint, types, import contracts, documentation, then the tiers unit, service and functional
	@$(MAKE) --no-print-directory --output-sync=target -j2 lint docs collected
	@$(PYTEST) $(PARALLEL) -m "not probe and not alone"
	@$(PYTEST) -m "alone and not probe" $$(grep -rl --include='test_*.py' --exclude-dir='.*' 'mark\.alone' .)

# Each worker would compile all tests for itself, where a clone is new.
collected: venv
	@found=$$($(PYTEST) --collect-only 2>&1) || { tail -n 50 <<< "$$found"; exit 1; }

lint: venv types imports names scripts  ## ruff, mypy, import contracts, retired names, shellcheck
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: everything
	@$(VENV)/bin/mypy $(PACKAGES)

imports: venv
	@$(VENV)/bin/lint-imports

names: venv
	@$(PYTHON) tools/check-retired-names

scripts: venv
	@tools/check-scripts $(VENV)/bin/shellcheck

unit: everything  ## the tests that start no server
	@$(PYTEST) $(PARALLEL) -m unit

service: everything  ## the tests that start Redis, RabbitMQ or processes of ours
	@$(PYTEST) $(PARALLEL) -m service

debian13: everything  ## demo, unit and service tests in a root with Debian 13; TARGETS=… chooses others
	@tools/debian13 $(TARGETS)

faults: everything  ## put known faults into a copy of the code and see that the tests catch each; FAULT=… chooses one
	@$(PYTHON) tools/seeded-faults $(if $(FAULT),"$(FAULT)")

# Tests of how long something takes may fail under a tracer.
coverage: everything  ## branches that unit and service tests take, by room, compared with what was recorded
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[coverage]'
	@$(PYTEST) $(PARALLEL) -m "unit or service" --cov --cov-report=json:.coverage.json || [ $$? = 1 ]
	@$(PYTHON) tools/coverage-by-room .coverage.json

generate: everything  ## write what is made out of the code: pages, samples, operations.json, entry points of the client
	@$(PYTHON) tools/generate

docs: venv  ## render the documentation into .docs/html; warnings are errors
	@$(VENV)/bin/sphinx-build -W --keep-going -n -q -d .docs/doctrees -b html docs .docs/html

fuzz: everything  ## feed nonsense to the language and every decoder; SECONDS=… for each of them
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	@$(PYTHON) -m tests.fuzz --seconds $(or $(SECONDS),60)

functional: everything  ## one journey of every capability on a real cluster
	@$(PYTEST) $(PARALLEL) -m "functional and not alone"
	@$(PYTEST) -m "functional and alone"

probe: everything  ## kill and cut things under load, and try what a journey does not; PROBES=… chooses modules
	@$(PYTEST) $(PARALLEL) -n 2 -m "probe and not alone" $(PROBES) || [ $$? = $(NONE) ]
	@$(PYTEST) -m "probe and alone" $(PROBES) || [ $$? = $(NONE) ]

browser-soak: everything  ## ten minutes of a live page in a browser: its memory and its requests
	@SLUICE_OPEN_SECONDS=600 $(PYTEST) -s tests/probe/horizon/test_open_for_long.py

pictures: everything  ## as root: take the pictures of the dashboard that the pages show, a quarter of an hour; ONLY=… chooses
	@$(PYTHON) -m docs.pictures.take $(ONLY)

roles: everything  ## install each role alone and collect the tests of its room
	@$(VENV)/bin/tox run --quiet -m roles -- --collect-only -qq
	@$(VENV)/bin/uv cache prune --quiet  # of wheels built from source it keeps each build, 0.9 GB a run, and uses the last

repeat: everything  ## repeat one test: N=20 T=path::name
	@for i in $$(seq $(N)); do echo "run $$i of $(N)"; $(PYTEST) "$(T)" || exit; done

swift-suite: everything  ## Swift's own functional tests in every set-up, compared with plain Swift (hours); SUITE=… chooses
	@$(PYTHON) -m tests.support.swift_suite $(or $(SUITE),--all)

swift-sample: everything  ## a few of these tests in every set-up, others every day
	@$(PYTHON) -m tests.support.swift_suite --all --sample $(or $(SAMPLE),12)

bench: everything  ## measure, print a table and write JSON
	@$(PYTHON) -m benchmarks $(BENCH)

constraints:  ## renew constraints.txt in a throw-away environment
	@tools/constraints

clean: down  ## remove the cluster's folder, the environment and all caches
	@for folder in "$(CLUSTER)" "$(CLUSTER)/demo"; do \
	    if [ -e "$$folder/run/processes.json" ]; then rm -rf "$$folder"; fi; done
	@rm -rf $(VENV) $(VENV).log .tox .docs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .fuzz .import_linter_cache .coverage .coverage.json
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make demo` and `make test` set up everything they need; `make help` lists the rest.

BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -q
CLASSES := .venv/spark-classes.jsa
LIGHT_JVM := -XX:SharedArchiveFile='$(CURDIR)/$(CLASSES)' -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable
LONG := benchmarks/soak.py  # an hour
BENCHMARKS := $(filter-out $(LONG) %_scenarios.py %_stage.py %_source.py %/rounds.py benchmarks/faults_%,$(wildcard benchmarks/*.py))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup java services demo demo-kafka test lint format unit live spark e2e bench experiments docs clean

help:  ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 13

setup: $(READY)  ## make .venv with the package and all tools, at pinned versions

$(READY): pyproject.toml constraints.txt scripts/setup.sh scripts/common.sh
	@scripts/setup.sh
	@touch $@

$(CLASSES): $(READY) scripts/spark_classes.py  # JVMs start in half the time with it, and without it where Java cannot
	@echo "keeping Spark's classes for the JVMs of tests"; $(BIN)/python scripts/spark_classes.py $@ || true; touch $@

java:  ## make sure that there is a Java runtime for Spark
	@scripts/java.sh

services:  ## install what tests start for themselves: Kafka, HDFS, RabbitMQ, PostgreSQL, Chromium
	@scripts/services.sh

demo: $(READY) java  ## run the Twitter application for about two minutes
	@$(BIN)/penstock demo

demo-kafka: $(READY) java  ## from topic to topic on a Kafka of its own, for about a minute
	@$(BIN)/python scripts/demo_kafka.py

test: lint unit live  ## lint, then all tests

lint: $(READY)  ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## let ruff put the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

unit: $(READY) services  ## tests without Spark, and the examples in docstrings
	OPENBLAS_NUM_THREADS=1 $(PYTEST) -n auto --dist worksteal --doctest-modules src experiments tests/unit

live: $(READY) java services $(CLASSES)  ## all tests on Spark, two at a time: they wait more than they work
	JAVA_TOOL_OPTIONS="$(LIGHT_JVM)" $(PYTEST) -n 2 --dist worksteal tests/spark tests/e2e

spark: $(READY) java  ## tests of the engine on Spark
	$(PYTEST) tests/spark

e2e: $(READY) java services  ## whole runs, faults included
	$(PYTEST) tests/e2e

bench: $(READY) java  ## all benchmarks but the soak, one after another
	@set -e; for file in $(BENCHMARKS); do echo "== $$file"; $(BIN)/python $$file; done

experiments: $(READY)  ## the papers' evaluation in the simulator: out/experiments.html and .json
	@$(BIN)/python -m experiments

docs: $(READY)  ## the documents as a site in site/, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean:  ## remove .venv, caches and what runs left behind
	rm -rf .venv .bench-venv .kafka .hdfs .s3 out dist site .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples experiments -name __pycache__ -type d -prune -exec rm -rf {} +

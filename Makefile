# `make demo` and `make test` need make and Python >= 3.11 with venv; everything else they install into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-fail test check format golden clean cluster cluster-down test-cluster conformance parity bench-argo

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## retrain a model in a Kubeflow pipeline on this machine: crash, restart, resume, promote
	$(BIN)/python pipelines/retrain_xgboost.py

demo-fail: $(VENV)/.demo  ## the same pipeline where training fails for good: the other branch
	$(BIN)/python pipelines/retrain_xgboost.py --fail

test: $(VENV)/.dev  ## every test that needs no cluster
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

cluster: $(VENV)/.dev  ## start a throw-away Kubernetes with JobSet, Kueue and Argo here (root, Go); prints KUBECONFIG
	$(BIN)/python -m tests.cluster.harness up --install

cluster-down: $(VENV)/.dev  ## end that cluster
	$(BIN)/python -m tests.cluster.harness down

test-cluster: $(VENV)/.dev  ## the tests that need a real cluster: this one, or JOBSET_STEPS_KUBECONFIG=...
	$(BIN)/python -m pytest tests/cluster $(ARGS)

conformance: $(VENV)/.dev  ## 300 random scenarios on the local and on the real cluster (most of an hour)
	$(BIN)/python -m tests.conformance --scenarios 300

parity: $(VENV)/.dev  ## 10,000 random specs: what we say of each, and what the real API server says
	$(BIN)/python -m tests.parity --specs 10000 $(ARGS)

bench-argo: $(VENV)/.dev  ## how soon a workflow ends once its training has: each mode beside Argo's own templates
	$(BIN)/python -m benchmarks.argo $(ARGS)

check: $(VENV)/.dev  ## ruff, mypy --strict and the import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(VENV)/.dev  ## write anew what is compared with golden files, and what is generated
	$(BIN)/python -m pytest -q --regenerate tests/unit

clean:  ## remove the virtual environment and what runs left here
	rm -rf $(VENV) out local_outputs

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jobset-steps needs Python >= 3.11 with venv (Debian: apt-get install python3-venv), or make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --upgrade pip

$(VENV)/.demo: $(BIN)/python pyproject.toml
	@echo "Installing what the demo needs into $(VENV) (once) ..."
	$(BIN)/pip install -q --disable-pip-version-check -e '.[kfp,examples]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	@echo "Installing what the tests need into $(VENV) (once) ..."
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

# Everything runs in $(VENV), which the first command creates. `make` alone lists the commands.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test e2e e2e-hosts e2e-docker fuzz lint docs bench clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/^([a-z0-9-]+):.*## /\1|/' | awk -F'|' '{printf "make %-11s %s\n", $$1, $$2}'

setup: $(READY) ## create the virtual environment and install everything into it

$(READY): pyproject.toml
	$(PYTHON) -m venv "$(VENV)"
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch "$(READY)"

demo: $(READY) ## simulate a federation of 10 on the built-in digits and show the rewards
	"$(BIN)/aequa" run

test: $(READY) ## check format, lint and types, and run all tests that CI runs
	"$(BIN)/ruff" format --check .
	"$(BIN)/ruff" check .
	"$(BIN)/mypy"
	FLWR_TELEMETRY_ENABLED=0 RAY_USAGE_STATS_ENABLED=0 "$(BIN)/python" -m pytest

e2e: $(READY) ## test a federation of real processes on the loopback, with TLS and keys
	"$(BIN)/python" -m pytest -m "not lab" tests/e2e/test_federation.py tests/e2e/test_deployed_run.py tests/e2e/test_resume.py tests/e2e/test_faults.py \
		tests/e2e/test_ray_cluster.py tests/e2e/test_simulate.py tests/e2e/test_own_flower_app.py

e2e-hosts: $(READY) ## test the same on four hosts, one of them offline for a while (needs root)
	"$(BIN)/python" -m pytest -m lab tests/lab/test_hosts.py

e2e-docker: $(READY) ## test the image and the compose demo (needs Docker, or root on Debian 12)
	"$(BIN)/python" -m pytest -m lab -s tests/lab/test_docker.py

fuzz: $(READY) ## test with more than 100,000 damaged messages, checkpoints and rewards
	AEQUA_FUZZ=5000 "$(BIN)/python" -m pytest tests/fuzz

lint: $(READY) ## format the code and fix what ruff can fix
	"$(BIN)/ruff" format .
	"$(BIN)/ruff" check --fix .

docs: $(READY) ## write the reference pages, build the documentation into site/, run the tutorial and the notebook
	"$(BIN)/python" docs/generate.py
	"$(BIN)/mkdocs" build --strict
	"$(BIN)/python" -m pytest -m "not lab" tests/e2e/test_tutorial.py tests/e2e/test_notebook.py

bench: $(READY) ## measure speed and memory, and write docs/benchmarks.md (20 minutes)
	"$(BIN)/python" benchmarks/suite.py

clean: ## remove the environment and caches; runs/ stays
	rm -rf "$(VENV)" .mypy_cache .ruff_cache .hypothesis

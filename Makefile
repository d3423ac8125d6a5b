# Every target first installs what it needs into .venv, once (install/). `make` alone lists the targets.

.DEFAULT_GOAL := help
.PHONY: help setup setup-workloads rehearse rehearse-pipeline test test-slow test-killed run-workloads run-workloads-pytorch lint types bench test-providers test-cluster test-dashboards outdated layout snapshots clean
# One thing at a time: the targets share one environment, and two cores.
.NOTPARALLEL:
# pytest rewrites the assertions of every test file, in every process, where it may not keep what it wrote.
unexport PYTHONDONTWRITEBYTECODE

python := .venv/bin/python

# The settings and the fleet of a case of tests/cases, in a folder as TPUENV_FOLDER names one.
case_in = rm -rf $(1) && mkdir $(1) && cp tests/cases/$(CASE).env $(1)/vars.env \
	&& for fleet in tests/cases/$(CASE).fleet.y*ml; do [ ! -e "$$fleet" ] || cp "$$fleet" $(1)/fleet.yaml; done

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '%-24s %s\n' "$$name" "$$what"; done

setup:  ## Install everything into .venv (a network is needed the first time, and never after)
	@sh install/run

setup-workloads: setup  ## Install what the workloads run and compile with into .venv-workloads (5.0 GB; Python 3.12)
	@$(python) -m install workloads

rehearse: setup  ## Deploy, check, re-plan and destroy the environment of vars.env against a fake cloud; CASE=autopilot: that of tests/cases
	@$(if $(CASE),$(call case_in,.venv/case) && TPUENV_FOLDER=.venv/case) .venv/bin/tpuenv rehearse

rehearse-pipeline: setup  ## Plan, deploy, check and destroy as Cloud Build would, by the files in cloudbuild/
	@.venv/bin/tpuenv rehearse-pipeline

test: setup  ## The fast tests
	@$(python) -m pytest -n auto --dist worksteal

lint: setup  ## Style: ruff's checks and its format; hadolint's checks of the Dockerfiles
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .
	@.venv/bin/hadolint $(wildcard */*/Dockerfile)

types: setup  ## mypy, strictly
	@$(python) -m mypy

bench: setup  ## Measure synthesis and a rehearsal, and write the table into docs/performance.md
	@$(python) -m bench --write

test-slow: setup  ## Every environment of tests/cases up and down with jobs running, and what else takes its time
	@TPUENV_TEST_ALL_EXAMPLES=1 $(python) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "(slow or hypothesis) and not killed"

test-killed: setup  ## Runs ended at further moments and in further ways than test-slow has (half an hour)
	@$(python) -m pytest -m killed

run-workloads: setup-workloads  ## Run the programs of the recipes as their pods would start them, a process a host
	@$(python) -m pytest -m workloads tests/workloads

run-workloads-pytorch: setup  ## Run the program of ray-pytorch, on request: PyTorch/XLA needs 7 GB more in .venv-workloads
	@$(python) -m install workloads pytorch
	@$(python) -m pytest -m pytorch tests/workloads/test_ray_pytorch.py

test-providers: setup  ## init, validate, plan with the real Terraform providers, and compare, where they can be had
	@$(python) -m pytest -m providers

test-cluster: setup  ## What needs an API server, against the empty cluster that KUBECONFIG names: it is left as it was
	@$(python) -m pytest -m cluster tests/cluster

test-dashboards: setup  ## The queries of dashboards and alerts against the real Prometheus, which Go builds once (3 minutes)
	@$(python) -m tests.dashboards
	@$(python) -m tests.generate.dashboard_pictures

outdated: setup  ## What has a newer version than the one that is pinned, of all that can be asked from here
	@$(python) -m tests.outdated

layout: setup  ## Where what is: a line for each package and Python file
	@$(python) -m tests.generate.layout

snapshots: setup  ## Accept what the stacks synthesize now, and write the tables of the docs; read the diff before committing
	@$(python) -m pytest tests/stacks/test_snapshots.py --snapshot-update
	@$(python) -m tests.generate.docs_tables
	@$(python) -m tests.generate.dashboard_pictures

clean:  ## Remove everything that was installed or synthesized
	@left=$$(find . -name errored.tfstate -not -path './.venv*' 2>/dev/null); [ -z "$$left" ] || { \
		echo "clean: $$left is a state that Terraform could not write: bring it in with tpuenv recover first" >&2; exit 1; }
	rm -rf .venv .venv-workloads cdktf.out .pytest_cache .mypy_cache .ruff_cache .hypothesis

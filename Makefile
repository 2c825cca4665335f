# Quadgate. `make` lists the targets; each sets up what it needs.
SHELL := /bin/bash
PY := .venv/bin/python
SETUP := .venv/.ready
DEV := .venv/.ready-dev
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo up test test-ui test-crash test-probe test-recovery test-playbooks test-faults test-faults-short test-config test-hardware test-exhaustive test-units test-sweep test-vllm test-clients test-postgres test-compose bench bench-client chaos chaos-long scale lint format lock wheelhouse target-archive clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s $$'\t'

$(SETUP): requirements/run.txt tools/setup.sh
	@tools/setup.sh run

$(DEV): requirements/dev.txt tools/setup.sh
	@tools/setup.sh dev

setup: $(SETUP) ## make the virtual environment with what Quadgate runs on

setup-dev: $(DEV) ## the same, with what tests and checks need

demo: $(SETUP) ## one engagement G1 -> G4 on the simulated engine: progress, a table, four reports in two languages (OUT=DIR, ARGS="--fault slow-tier")
	@.venv/bin/quadgate demo $(if $(OUT),--out $(OUT)) $(ARGS)

up: $(SETUP) ## start everything on this machine and serve the web pages
	@.venv/bin/quadgate up

test: $(DEV) ## the tests (real Ansible, broker, HTTP, SIGKILL, Chromium), four files at a time since most of them wait
	@$(PY) -m pytest tests -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-ui: $(DEV) ## the Chromium tests alone
	@$(PY) -m pytest tests/e2e $(ARGS)

test-crash: $(DEV) ## the tests that kill processes alone
	@$(PY) -m pytest tests/crash $(ARGS)

test-probe: $(DEV) ## whole jobs of the probe on the simulated engine, from store to exit: runs, cells, two hosts, SGLang, calibration (three minutes)
	@$(PY) -m pytest lanes/probe -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

test-recovery: $(DEV) ## retries, take-over, hand-over, restore, stop-loss, interrupted demos: soaks and their reboots; what the engine and the service outlive (four minutes)
	@$(PY) -m pytest lanes/recovery -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

test-playbooks: $(DEV) ## the shipped playbooks run, surveyed, removed on simulated hosts, also over SSH (two minutes)
	@$(PY) -m pytest lanes/playbooks -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

test-faults: $(DEV) ## whole demo engagements, each with one fault (about 35 minutes)
	@$(PY) -m pytest lanes/faults --timeout 1200 $(ARGS)

test-faults-short: $(DEV) ## the same for four of them, as CI does (about ten minutes)
	@$(PY) -m pytest lanes/faults --timeout 1200 -k "missing-drive or warm-cache or lost-kv or killing" $(ARGS)

test-config: $(DEV) ## what the roles render, held against the parsers of the pinned vLLM, LMCache and SGLang (490 MB once, then 25 s)
	@$(PY) -m pytest lanes/config --timeout 1500 $(ARGS)

test-hardware: $(DEV) ## packages, fabric, array, volume, wiping, engines (venv, unit, container) and the target archive by the real playbooks, deployed and removed twice (eight minutes)
	@$(PY) -m pytest lanes/hardware --timeout 1500 $(ARGS)

test-exhaustive: $(DEV) ## every key of a run's documents lost or exchanged in evidence that must not pass; every reader on a file eight times as long (two minutes)
	@$(PY) -m pytest lanes/exhaustive -n 3 --ignore lanes/exhaustive/test_every_unit.py $(ARGS)

test-units: $(DEV) ## every numeric field of every breach of G2, G3 and G4 told in other units: nothing may pass (about ten minutes; ARGS="-k main_gate")
	@$(PY) -m pytest lanes/exhaustive/test_every_unit.py -n 3 $(ARGS)

test-sweep: $(DEV) ## seven bandwidths of the tier move G3 from fail through pass to above the band (about 14 minutes)
	@$(PY) -m pytest lanes/sweep --timeout 1200 $(ARGS)

test-vllm: $(DEV) ## G2 and G3 on the real vLLM with KV on XFS on a loop device, four controls that must not pass, then G1 -> G4 (an hour; downloads at the first run; ARGS="-k deleted")
	@$(PY) -m pytest lanes/vllm -s --timeout 3600 $(ARGS)

test-clients: $(DEV) ## AIPerf, GuideLLM and vLLM bench as a cell of a run on the simulated engine; stand-ins for those that are not installed (BENCH_CLIENTS=DIR)
	@$(PY) -m pytest lanes/clients --timeout 900 $(ARGS)

test-postgres: $(DEV) ## every test that uses a database, on PostgreSQL instead of SQLite (twelve minutes; needs its server programs; PARTS=tests for the first half)
	@for part in $(or $(PARTS),tests lanes/recovery); do QUADGATE_TEST_DATABASE=postgres $(PY) -m pytest $$part -n 3 --dist loadfile --no-loadscope-reorder $(ARGS) || exit 1; done

test-compose: $(DEV) ## docker-compose.yml brought up for real: an engagement through it, containers killed, upgraded (needs Docker)
	@$(PY) -m pytest lanes/compose --timeout 3600 $(ARGS)

bench: $(DEV) ## time and memory of every script of bench/ against its limits (a soak of 1,000,000 requests takes some minutes and 1 GB)
	@for script in bench/*.py; do $(PY) $$script || exit 1; done

chaos: $(DEV) ## at least 200 injected faults, nothing lost, doubled or judged wrongly, engagements through all gates, and a control that shows losses (about 12 minutes; SEED=N, ARGS="--waves gates", --write for docs/chaos.md)
	@$(PY) -m lanes.chaos $(if $(SEED),--seed $(SEED)) $(ARGS)

chaos-long: $(DEV) ## the same without end: until Ctrl-C, or for SECONDS=N
	@$(PY) -m lanes.chaos --long --no-control $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

scale: $(DEV) ## 10, 100 and 1,000 soaks at once on fake targets: what a poll costs and how late it is, against limits (25 minutes, a quiet machine; ARGS=--write for docs/scaling.md)
	@$(PY) -m lanes.scale $(ARGS)

bench-client: $(SETUP) ## our driver beside vLLM bench, AIPerf and GuideLLM on a server of known truth, into docs/bench-client.md (5 minutes; installs them once, several GB)
	@$(PY) -m lanes.bench_client $(ARGS)

lint: $(DEV) ## ruff, mypy strict, import contracts, ansible-lint, shellcheck where it is installed
	@tools/lint.sh

format: $(DEV) ## format the Python code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix -q .

lock: $(DEV) ## resolve the dependencies again into requirements/*.txt (needs uv)
	@tools/lock.sh

wheelhouse: $(SETUP) ## gather every wheel for a site without internet into wheelhouse/
	@tools/wheelhouse.sh

target-archive: $(SETUP) ## everything that a target needs, in one archive with hashes (OUT=FILE ARGS="--engine vllm --offload lmcache --accelerator cuda --image FILE --os-packages debian-12=FOLDER")
	@$(PY) -m tools.target_archive --out $(or $(OUT),out/target-archive.tar) $(ARGS)

clean: ## remove what the targets made, but no state (var/)
	@rm -rf .venv out wheelhouse .pytest_cache .mypy_cache .ruff_cache

# The commands. A line that begins with ## is one of them and appears in make help.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PYTHONUTF8 := 1

# Handed on through the environment: a path may contain anything.
export kata from on

# make PYTHON=python3 ... uses that Python, which has CuPy and pytest, and installs nothing.
ifeq ($(origin PYTHON),command line)
py := $(PYTHON)
install := @:
else
py := .venv/bin/python
install := @sh requirements/install.sh
endif

.PHONY: help test check bench-simulator clean

## make | this list
help:
	@sed -n 's/^## //p' Makefile | awk -F ' [|] ' '{ printf "%-44s %s\n", $$1, $$2 }'

## make kata=tiled test | grade katas/02_tiled.cu; kata is tiled, 02_tiled or 2
## make kata=tiled from=solutions test | grade another file: a folder's of the same name, or any .cu file
## make kata=tiled on=cpu test | on the simulator only; on=gpu: on the GPU only
## make kata=tiled ARGS=-v test | hand options on to pytest
test:
	$(install) run
	@$(py) -m dojo test "$$kata" $${from:+--from "$$from"} $${on:+--on "$$on"} $(if $(ARGS),-- $(ARGS))

## make check | the repository's own tests, lint and types
check:
	$(install) run check
	$(py) -m ruff check .
	$(py) -m ruff format --check .
	$(py) -m mypy
	$(py) -m pytest tests/meta --numprocesses=auto --dist=worksteal $(ARGS)

## make bench-simulator | time the simulator
bench-simulator:
	$(install) run
	@$(py) tests/bench_simulator.py

## make clean | remove all that can be made again: .venv, caches
clean:
	rm -rf .venv .cache .benchmarks .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

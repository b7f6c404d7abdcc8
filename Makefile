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

.PHONY: help list test bench compare tune watch hint reset doctor scoreboard check fidelity bench-simulator bench-peers clean

## make | this list
help:
	@sed -n 's/^## //p' Makefile | awk -F ' [|] ' '{ printf "%-36s %s\n", $$1, $$2 }'

## make kata=tiled test | grade katas/02_tiled.cu; kata=2 does too
## make kata=tiled from=solutions test | another file: a folder's, or any .cu
## make kata=tiled on=cpu test | simulator only; on=gpu: GPU only
## make kata=tiled ARGS=-v test | hand options on to pytest
test:
	$(install) run
	@$(py) -m dojo test "$$kata" $${from:+--from "$$from"} $${on:+--on "$$on"} $(if $(ARGS),-- $(ARGS))

## make kata=tiled bench | on a GPU: the grade, and its times in full
bench:
	$(install) run
	@$(py) -m dojo bench "$$kata" $${from:+--from "$$from"} $(if $(ARGS),-- $(ARGS))

## make kata=tiled compare | beside the solutions, and the card's roofs
compare:
	$(install) run
	@$(py) -m dojo compare "$$kata" $${from:+--from "$$from"} $${on:+--on "$$on"}

## make kata=register tune | what other tiles cost, save and reach
tune:
	$(install) run
	@$(py) -m dojo tune "$$kata" $${from:+--from "$$from"} $${on:+--on "$$on"}

## make kata=tiled watch | grade at every save, on the simulator
watch:
	$(install) run
	@exec $(py) -m dojo watch "$$kata" $${from:+--from "$$from"} $${on:+--on "$$on"}

## make kata=tiled hint | the next of three hints
hint:
	$(install) run
	@$(py) -m dojo hint "$$kata"

## make kata=tiled reset | back to the stub; attempts/ keeps your file
reset:
	$(install) run
	@$(py) -m dojo reset "$$kata"

## make list | how far you are with each kata
list:
	$(install) run
	@$(py) -m dojo list

## make doctor | what is here, and what mends the rest
doctor:
	@if command -v $(py) >/dev/null; then exec $(py) -m dojo doctor; fi; \
	if command -v python3 >/dev/null; then exec python3 -m dojo doctor fresh; fi; \
	echo "There is no python3 here: install Python 3.10 or newer."

## make scoreboard | on a GPU: time the solutions for README.md
scoreboard:
	$(install) run
	@$(py) -m dojo scoreboard

## make check | the repository's own tests, lint and types
check:
	$(install) run check
	$(py) -m ruff check .
	$(py) -m ruff format --check .
	$(py) -m mypy
	$(py) -m pytest tests/meta --numprocesses=auto --dist=worksteal $(ARGS)

## make fidelity | on a GPU, ten minutes: record what ncu counts
fidelity:
	$(install) run
	@$(py) tests/fidelity/measure.py $(ARGS)

## make bench-simulator | time the simulator
bench-simulator:
	$(install) run
	@$(py) tests/bench_simulator.py

## make bench-peers | the same beside Oclgrind, mlsys-lab
bench-peers:
	$(install) run
	@$(py) tests/bench_peers.py

# These are folders too: make would say that there is nothing to do.
.PHONY: tests katas solutions
tests katas solutions:
	@echo "make $@ is no command; did you mean make kata=tiled test? make help lists them all" >&2; exit 2

## make clean | remove .venv and caches
clean:
	rm -rf .venv .cache .benchmarks .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

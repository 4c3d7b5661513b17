# make demo, make test: each sets up what it needs, on a machine where nothing was installed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench clean

demo: $(READY)
	$(BIN)/igd demo

# Two processes of one thread are faster here than one process of two.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest tests src -n 2 --dist loadgroup

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/similarity.py
	$(BIN)/python benchmarks/training_step.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,serve]'
	touch $@

clean:
	rm -rf $(VENV) igd-demo build dist

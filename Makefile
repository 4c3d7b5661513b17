# make demo, make test: each sets up what it needs, on a machine where nothing was installed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint docs package bench clean browser

demo: $(READY)
	$(BIN)/igd demo

# Two processes of one thread are faster here than one process of two.
test: $(READY) browser
	OMP_NUM_THREADS=1 $(BIN)/pytest tests src -n 2 --dist loadgroup

# The page is tested in a real browser; where it can't be installed, those tests are skipped and say so.
browser:
	@command -v chromedriver >/dev/null || \
	{ test "$$(id -u)" = 0 && apt-get install -qq -y chromium chromium-driver >/dev/null 2>&1; } || \
	echo "no chromedriver: the tests of the page will be skipped"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pages of docs/ as a site, without anything from elsewhere; a link that leads nowhere is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# What a user of the package gets: built from the sdist, installed where nothing else is, and run.
package: $(READY)
	mkdir -p build && rm -rf build/dist build/clean build/igd-demo
	$(BIN)/python -m build --no-isolation --outdir build/dist . >build/package.log || { cat build/package.log; exit 1; }
	$(PYTHON) -m venv build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/dist/*.whl
	cd build && clean/bin/igd doctor && clean/bin/igd demo --quiet

bench: $(READY)
	$(BIN)/python benchmarks/similarity.py
	$(BIN)/python benchmarks/training_step.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs,export,serve]'
	touch $@

clean:
	rm -rf $(VENV) igd-demo igd-examples build dist

# make demo, make test: each sets up what it needs, on a machine where nothing was installed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

PARTS := images models kills disk server cli

.PHONY: demo test lint docs package bench clean browser torture $(PARTS:%=torture-%) lock sbom licences

demo: $(READY)
	$(BIN)/igd demo

# Two processes of one thread are faster here than one process of two. The tests of the page need a
# browser (make browser); without one they are skipped and say so.
test: $(READY)
	SE_AVOID_STATS=true OMP_NUM_THREADS=1 $(BIN)/pytest tests src -n 2 --dist loadgroup

# Chromium and its driver from the distribution's packages (Debian, Ubuntu), for the tests of the page.
browser:
	@if command -v chromedriver >/dev/null; then echo "browser: $$(command -v chromedriver) is there"; \
	elif test "$$(id -u)" != 0; then echo "browser: not root; run: sudo apt-get install chromium chromium-driver"; exit 1; \
	else echo "browser: apt-get install chromium chromium-driver, for the tests of the page"; \
	apt-get install -qq -y chromium chromium-driver >/dev/null; fi

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pages of docs/ as a site, without anything from elsewhere; a link that leads nowhere is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# What users get: built from the sdist, installed where nothing else is, and run; then the runtime
# without PyTorch, likewise.
package: $(READY)
	mkdir -p build && rm -rf build/dist build/clean build/runtime build/igd-demo
	$(BIN)/python -m build --no-isolation --outdir build/dist . >build/package.log || { cat build/package.log; exit 1; }
	$(BIN)/python -m build --no-isolation --wheel --outdir build/dist packaging/runtime >build/package.log || { cat build/package.log; exit 1; }
	$(PYTHON) -m venv build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/dist/igd_anomaly-*.whl
	cd build && clean/bin/igd doctor && clean/bin/igd demo --quiet
	$(BIN)/igd export build/igd-demo/bricks.igd build/bricks.onnx --quiet
	$(PYTHON) -m venv build/runtime
	build/runtime/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build/dist/igd_anomaly_runtime-*.whl
	build/runtime/bin/python packaging/runtime/check.py build/bricks.onnx build/igd-demo/bricks/test/good

bench: $(READY)
	$(BIN)/python benchmarks/similarity.py
	$(BIN)/python benchmarks/training_step.py

# Damaged files, kills, failing writes, odd command lines and bad requests, all by a seed: about three
# quarters of an hour of one core for all parts. COUNT=100 makes a part short.
torture: $(READY)
	$(TORTURE) $(COUNT:%=--count %)

$(PARTS:%=torture-%): torture-%: $(READY)
	$(TORTURE) $* $(COUNT:%=--count %)

TORTURE = PYTHONPATH=benchmarks OMP_NUM_THREADS=1 $(BIN)/python -m torture.campaign $(if $(COUNT),,-o docs/results/torture.json)

# Hashes of the files that constraints.txt leads to on this platform; nothing is installed.
lock:
	mkdir -p build
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check --dry-run --ignore-installed \
		--report build/report.json -c constraints.txt '.[export,serve]'
	$(PYTHON) packaging/lock.py build/report.json requirements.lock

# What the README installs, as CycloneDX JSON with licences, by a tool in an environment of its own.
sbom: package
	build/clean/bin/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls build/dist/igd_anomaly-*.whl)[export,serve]"
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	build/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
		--output-reproducible -o build/sbom.json build/clean/bin/python
	$(PYTHON) packaging/check_sbom.py build/sbom.json requirements.lock

licences: $(READY)
	$(BIN)/python docs/licences.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs,export,serve]'
	touch $@

clean:
	rm -rf $(VENV) igd-demo igd-examples build dist

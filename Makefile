# Each target makes its own virtual environment under build/ and installs what it needs.

PYTHON ?= python3
DATA ?= build/data
PICTURES ?= build/screenshots
# One more than there are cores: tests of browsers, servers and Spark wait a good part of their time.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 7) + 1)')
export ARCHIVES

DEMO := build/venv-demo
DEV := build/venv-dev

.PHONY: help demo examples test pytest check bench eval torture screenshots wheel-check data clean

help:
	@echo "make demo         show what Siteloom does on built-in web sites"
	@echo "make examples     make workspaces to try things with, see examples/README.md"
	@echo "make test         run every test, installing what they need"
	@echo "make check        lint, types, import direction, licences, known vulnerabilities"
	@echo "make bench        measure speed and memory on real pages"
	@echo "make eval         measure accuracy on real pages"
	@echo "make torture      do the worst to it, at length: hostile input, kill -9, full disks, load"
	@echo "make screenshots  take pictures of every page of the web application"
	@echo "make clean        remove all that these made"

demo: $(DEMO)/.installed
	@$(DEMO)/bin/siteloom demo

examples: $(DEMO)/.installed
	@$(DEMO)/bin/python examples/make_workspaces.py examples/workspaces
	@echo; echo "examples/README.md says what can be done with them."

test: $(DEV)/.installed
	@scripts/install-postgresql
	@scripts/install-java
	@scripts/install-xsltproc
	@scripts/install-documented
	@scripts/install-chromium
	@$(MAKE) --no-print-directory -j3 -Oline check wheel-check pytest

# What `test` does beside checking, once all is installed.
pytest: $(DEV)/.installed
	$(DEV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: $(DEV)/.installed
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports
	$(DEV)/bin/python scripts/audit-dependencies

# Sdist and wheel as they are released: the wheel is built from the sdist, and is the same, byte for byte, as the one that is
# built from here. Then the wheel as a user gets it: in an empty environment, run from another folder. What it must bring
# besides code are the migrations of workspaces, the weights of confidence, the templates and files of web pages, and how
# Spark is to log.
LEARN := import siteloom as s; pages = [s.Page(f"http://x/{n}", f"<h1>{n}</h1>".encode()) for n in "ab"]; \
	print(s.learn([s.Example(p, {"name": [p.url[-1]]}) for p in pages]).extract(pages[0]).values)
wheel-check: $(DEV)/.installed
	@rm -rf build/packages build/wheel-from-here build/venv-wheel build/wheel-workspace
	$(DEV)/bin/python -m build --outdir build/packages .
	$(DEV)/bin/python -m build --wheel --outdir build/wheel-from-here .
	cmp build/packages/*.whl build/wheel-from-here/*.whl
	$(DEV)/bin/twine check --strict build/packages/*
	$(DEV)/bin/python scripts/check-packages build/packages
	$(PYTHON) -m venv build/venv-wheel
	build/venv-wheel/bin/pip install --quiet --upgrade pip
	build/venv-wheel/bin/pip install --quiet "$$(ls build/packages/*.whl)[server]"
	cd / && $(CURDIR)/build/venv-wheel/bin/siteloom init --workspace $(CURDIR)/build/wheel-workspace
	cd / && $(CURDIR)/build/venv-wheel/bin/siteloom doctor --workspace $(CURDIR)/build/wheel-workspace
	cd / && $(CURDIR)/build/venv-wheel/bin/python -c '$(LEARN)'
	cd / && $(CURDIR)/build/venv-wheel/bin/python $(CURDIR)/scripts/check-server $(CURDIR)/build/wheel-workspace

bench: $(DEV)/.eval-installed data
	$(DEV)/bin/python -m benchmarks $(DATA)

eval: $(DEV)/.eval-installed data
	$(DEV)/bin/python -m evals $(DATA)

torture: $(DEV)/.torture-installed
	@scripts/install-postgresql
	$(DEV)/bin/python -m torture

screenshots: $(DEV)/.installed
	@scripts/install-chromium
	$(DEV)/bin/python -m tests.browser.screenshots $(PICTURES)

# Real pages lie beside the project where they are present; they are never part of it.
data:
	@scripts/unpack-data $(DATA)

$(DEMO)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/pip install --quiet --upgrade pip
	$(DEMO)/bin/pip install --quiet --editable .
	@touch $@

$(DEV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install --quiet --upgrade pip
	$(DEV)/bin/pip install --quiet --editable '.[parquet,postgres,embedded,text,server,crawl,render,spark,web-poet]' --group dev
	@touch $@

$(DEV)/.eval-installed: $(DEV)/.installed
	$(DEV)/bin/pip install --quiet --group eval
	@touch $@

$(DEV)/.torture-installed: $(DEV)/.installed
	$(DEV)/bin/pip install --quiet --group torture
	@touch $@

clean:
	rm -rf build

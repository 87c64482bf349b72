# Each target makes its own virtual environment under build/ and installs what it needs.

PYTHON ?= python3
DATA ?= build/data
PICTURES ?= build/screenshots
# One more than there are cores: tests of browsers, servers and Spark wait a good part of their time.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 7) + 1)')
# The highest share of names in src that may say nothing, in percent: see docs/style.md.
VAGUE_NAMES := 3
export ARCHIVES

DEMO := build/venv-demo
DEV := build/venv-dev
EVERYTHING := build/venv-everything
NEWEST := build/venv-newest
WHEEL := build/venv-wheel

export PIP_DISABLE_PIP_VERSION_CHECK := 1
LOCKED := install --no-deps --require-hashes --no-build-isolation --requirement

# A virtual environment with the exact versions of a lock file, and Siteloom: $(call environment,FOLDER,LOCK)
define environment
	@echo "Installing the packages of requirements/$(2).txt into $(1)"
	@$(PYTHON) -m venv $(1)
	@scripts/quietly $(1)/bin/pip $(LOCKED) requirements/build.txt
	@scripts/quietly $(1)/bin/pip $(LOCKED) requirements/$(2).txt
	@scripts/quietly $(1)/bin/pip install --no-deps --no-build-isolation --editable .
	@touch $(1)/.installed
endef

.PHONY: help demo examples test test-newest test-thorough pytest programs check lock bench eval torture screenshots wheel-check data clean

help:
	@echo "make demo           show what Siteloom does on built-in web sites"
	@echo "make examples       make workspaces to try things with, see examples/README.md"
	@echo "make test           run every test, installing what they need"
	@echo "make test-thorough  run the property tests with many more examples, as every night"
	@echo "make test-newest    run every test with the newest versions that pyproject.toml allows"
	@echo "make check          lint, types, import direction, vague names, licences, known vulnerabilities"
	@echo "make lock           renew the lock files in requirements/"
	@echo "make bench          measure speed and memory on real pages"
	@echo "make eval           measure accuracy on real pages"
	@echo "make torture        run hostile input, kill -9, full disks and load against it, at length"
	@echo "make screenshots    take pictures of every page of the web application"
	@echo "make clean          remove everything these targets made"

demo: $(DEMO)/.installed
	@rm -rf build/demo
	@$(DEMO)/bin/siteloom demo --keep build/demo

examples: $(DEMO)/.installed
	@$(DEMO)/bin/python examples/make_workspaces.py examples/workspaces
	@echo; echo "examples/README.md says what can be done with them."

# The last line is the CPU time of all that this target starts, installation included.
test:
	@scripts/cpu-time $(MAKE) --no-print-directory test-all

.PHONY: test-all
test-all: $(DEV)/.installed programs
	@$(MAKE) --no-print-directory -j2 -Otarget check wheel-check
	@$(MAKE) --no-print-directory pytest

# The programs that tests start, such as PostgreSQL and Chromium.
programs:
	@scripts/install-programs

pytest: $(DEV)/.installed
	@echo "Running the tests with $(WORKERS) workers"
	@$(DEV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-thorough: $(DEV)/.installed programs
	@$(DEV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-profile=thorough

# Made anew each time, for new versions are what it is about.
test-newest: programs
	@echo "Installing the newest versions that pyproject.toml allows into $(NEWEST)"
	@rm -rf $(NEWEST)
	@$(PYTHON) -m venv $(NEWEST)
	@scripts/quietly $(NEWEST)/bin/pip install --upgrade pip
	@scripts/quietly $(NEWEST)/bin/pip install --editable '.[all]' --group dev
	@$(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: $(DEV)/.installed
	@echo "Checking style, types, import direction, names, licences and known vulnerabilities"
	@scripts/quietly $(DEV)/bin/ruff check .
	@scripts/quietly $(DEV)/bin/ruff format --check .
	@scripts/quietly $(DEV)/bin/mypy
	@scripts/quietly $(DEV)/bin/lint-imports
	@scripts/quietly $(DEV)/bin/python scripts/vague-names --limit $(VAGUE_NAMES) src
	@$(DEV)/bin/python scripts/audit-dependencies

# Sdist and wheel as they are released. The wheel built from the sdist is the same, byte for byte, as the one built here. It is
# tried as users get it: in an environment of its own, away from the source.
LEARN := import siteloom as s; pages = [s.Page(f"http://x/{n}", f"<h1>{n}</h1>".encode()) for n in "ab"]; \
	assert s.learn([s.Example(p, {"name": [p.url[-1]]}) for p in pages]).extract(pages[0]).values == {"name": ("a",)}
wheel-check: $(DEV)/.installed
	@echo "Building the sdist and the wheel, and trying the wheel in $(WHEEL)"
	@rm -rf build/packages build/wheel-from-here build/wheel-workspace
	@scripts/quietly $(DEV)/bin/python -m build --no-isolation --outdir build/packages .
	@scripts/quietly $(DEV)/bin/python -m build --no-isolation --wheel --outdir build/wheel-from-here .
	@cmp build/packages/*.whl build/wheel-from-here/*.whl
	@scripts/quietly $(DEV)/bin/twine check --strict build/packages/*
	@$(DEV)/bin/python scripts/check-packages build/packages
	@$(PYTHON) -m venv --clear $(WHEEL)
	@scripts/quietly $(WHEEL)/bin/pip $(LOCKED) requirements/server.txt
	@scripts/quietly $(WHEEL)/bin/pip install --no-deps build/packages/*.whl
	@cd / && $(CURDIR)/scripts/quietly $(CURDIR)/$(WHEEL)/bin/siteloom init --workspace $(CURDIR)/build/wheel-workspace
	@cd / && $(CURDIR)/scripts/quietly $(CURDIR)/$(WHEEL)/bin/siteloom doctor --workspace $(CURDIR)/build/wheel-workspace
	@cd / && $(CURDIR)/$(WHEEL)/bin/python -c '$(LEARN)'
	@cd / && $(CURDIR)/$(WHEEL)/bin/python $(CURDIR)/scripts/check-server $(CURDIR)/build/wheel-workspace

lock:
	@$(PYTHON) -m venv build/venv-lock
	@scripts/quietly build/venv-lock/bin/pip install uv
	@scripts/lock build/venv-lock/bin/uv
	@git --no-pager diff --stat -- requirements

bench: $(EVERYTHING)/.installed data
	$(EVERYTHING)/bin/python -m benchmarks $(DATA)

eval: $(EVERYTHING)/.installed data
	$(EVERYTHING)/bin/python -m evals $(DATA)

torture: $(EVERYTHING)/.installed
	@scripts/install-programs postgresql
	$(EVERYTHING)/bin/python -m torture

screenshots: $(DEV)/.installed
	@scripts/install-programs chromium
	$(DEV)/bin/python -m tests.browser.screenshots $(PICTURES)

# Real pages lie beside the project where they are present; they are never part of it.
data:
	@scripts/unpack-data $(DATA)

$(DEMO)/.installed: requirements/base.txt requirements/build.txt pyproject.toml
	$(call environment,$(DEMO),base)

$(DEV)/.installed: requirements/dev.txt requirements/build.txt pyproject.toml
	$(call environment,$(DEV),dev)

$(EVERYTHING)/.installed: requirements/everything.txt requirements/build.txt pyproject.toml
	$(call environment,$(EVERYTHING),everything)

clean:
	rm -rf build

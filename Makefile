# Gossamer. `make crawl` and `make test` set everything up by themselves, in .venv/, from locked versions.
# Used when .venv is created; an existing .venv is not changed.
PYTHON ?= $(shell sh requirements/python)
BIN := .venv/bin
# Six processes: those of crawls mostly wait. What pytest makes of a module is kept for the next run.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 6 --dist worksteal
PLAIN_TESTS := tests/archive tests/backends/test_bloom_model.py tests/core tests/e2e/test_near_duplicates.py tests/parse \
  tests/runtime/test_compiled.py
SEEDS ?=
PYTHONS ?=
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help crawl test test-all test-engines test-plain test-pythons lint types layers docs structure reference screenshot check bench peers stages growth hundred engines attacks chaos simcluster clusterchaos fuzz manners bench-tools wheels installs lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

.venv/runtime: requirements/runtime.txt pyproject.toml setup.py src/gossamer/foundation/_kernel.c src/gossamer/foundation/_rank.c src/gossamer/foundation/_words.c src/gossamer/parse/html/_scan.c src/gossamer/archive/_sha1.c src/gossamer/backends/local/_bloom.c src/gossamer/backends/local/_damage.c src/gossamer/runtime/session/_forced_exit.c
	@echo "Setting up .venv with the runtime packages ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/runtime.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src/gossamer
	@touch $@

.venv/dev: requirements/dev.txt .venv/runtime
	@echo "Adding the packages for tests and checks ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --use-pep517 --no-build-isolation -r requirements/dev.txt
	@touch $@

crawl: .venv/runtime  ## crawl SEEDS="https://… …", or without SEEDS the built-in synthetic web on loopback
ifeq ($(strip $(SEEDS)),)
	@$(BIN)/gossamer demo $(ARGS)
else
	@$(BIN)/gossamer crawl $(SEEDS) $(ARGS)
endif

test: .venv/dev  ## run the tests, on any machine in the same way
	@echo "Running the tests ..."
	@$(PYTEST) $(ARGS)

test-all: .venv/dev  ## run the tests with all seeds, rounds and examples
	@GOSSAMER_TESTS=all $(PYTEST) $(ARGS)

test-engines: .venv/dev engines  ## run the tests that need servers and tools beyond what the packages bring; installs them
	@GOSSAMER_REQUIRE_ENGINES=all $(PYTEST) -m engine $(ARGS)

# What has a compiled and a plain implementation, and what a user sees of it.
test-plain: .venv/dev  ## run the tests of what is done in Python if no C compiler was found
	@$(PYTEST) $(PLAIN_TESTS) $(ARGS)

test-pythons:  ## run the tests on each interpreter in PYTHONS="/path/to/python3.11 ...", in clones
	@ARGS="$(ARGS)" packaging/pythons $(PYTHONS)

lint: .venv/dev  ## check style and formatting
	@$(BIN)/ruff check src tests benchmarks packaging
	@$(BIN)/ruff format --check src tests benchmarks packaging

types: .venv/dev  ## check types
	@$(BIN)/mypy

layers: .venv/dev  ## check imports: nothing upwards, no I/O in core and engine, backends independent
	@$(BIN)/lint-imports

docs: .venv/dev  ## build the documentation as a site in site/; fails if a link leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

structure: .venv/dev  ## count modules, lines and the like (ARGS="FOLDER ..." for other packages)
	@$(BIN)/python packaging/structure.py $(ARGS)

reference: .venv/dev  ## write the pages of the documentation that are made from the program
	@$(BIN)/python packaging/docs_reference.py

screenshot: .venv/dev  ## take the picture of the dashboard in docs/, with chromium and chromedriver (make engines)
	@$(BIN)/python packaging/screenshot.py

check: lint types layers docs test  ## run lint, types, layers, docs and tests; .ci/run does so in a fresh clone, too

bench: peers stages growth  ## measure everything: the next three, a first pass of 10,000 domains, resuming with 1,000,000 URLs
	@$(BIN)/python benchmarks/first_pass.py
	@$(BIN)/python benchmarks/resume.py 1000000

peers: .venv/dev  ## compare with other crawlers on the same real pages, with wrk, and on a broad web (ARGS="--rounds N --only NAMES")
	@$(BIN)/python -m benchmarks.peers $(ARGS)

stages: .venv/dev  ## measure the CPU time per stage: real pages, synthetic pages; hub and workers separately
	@$(BIN)/python -m benchmarks.peers.stages
	@$(BIN)/gossamer bench --stages
	@$(BIN)/gossamer bench --workers 2
	@$(BIN)/python benchmarks/hub.py

growth: .venv/dev  ## measure the cost per page and per URL with 10,000, 3,000,000 and 10,000,000 known URLs
	@$(BIN)/python benchmarks/growth.py

hundred: .venv/dev  ## crawl 100,000 pages, verify and audit
	@$(BIN)/python benchmarks/hundred_thousand.py

chaos: .venv/runtime  ## kill crawls of the synthetic web 100 times (ARGS="--rounds N") and check that nothing is lost
	@$(BIN)/gossamer chaos $(ARGS)

fuzz: .venv/dev  ## search for inputs that break a parser, longer than the tests do
	@HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n 2 tests/fuzz
	@$(BIN)/python benchmarks/fuzz_atheris.py

attacks: .venv/dev  ## attack crawls with single answers, one by one and all together; a table of what each costs (ARGS="--only NAMES --program PATH")
	@$(BIN)/python -m benchmarks.attacks $(ARGS)
	@$(BIN)/python -m benchmarks.attacks --all-together $(ARGS)

simcluster: .venv/dev  ## run clusters in virtual time with faults (ARGS="--seeds N --first N --plant BUG")
	@$(BIN)/python -m benchmarks.simcluster $(ARGS)

clusterchaos: .venv/dev  ## kill nodes and the servers of a cluster (ARGS="--rounds N --ledger redis|postgresql|kafka")
	@$(BIN)/python -m benchmarks.cluster_chaos $(ARGS)

manners: .venv/dev  ## crawl 200 hosts of every behaviour for a minute, four times, with kills; check the servers' log
	@$(BIN)/python benchmarks/manners.py $(ARGS)

engines: .venv/runtime  ## install the servers and tools that test-engines needs (Debian; as root)
	@packaging/engines

bench-tools: engines  ## install what benchmarks compare with, and the pages they crawl (Debian; as root)
	@command -v nginx >/dev/null && command -v wrk >/dev/null && command -v wget2 >/dev/null && command -v openssl >/dev/null \
	  && test -e /usr/share/doc/python3.11/html/index.html -a -e /usr/share/doc/postgresql-doc-15/html/index.html \
	    -a -e /usr/share/doc/python-django-doc/html/index.html \
	  || (apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	    nginx-light wrk wget2 openssl python3.11-doc postgresql-doc-15 python-django-doc)

.venv-wheels: requirements/wheels.txt
	@$(PYTHON) -m venv .venv-wheels && .venv-wheels/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/wheels.txt

wheels: .venv-wheels  ## build wheels for Linux on x86_64 and aarch64, and one without compiled parts, in dist/; check them
	@.venv-wheels/bin/python packaging/wheels.py

lock: .venv/dev  ## rewrite the lock files
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --universal --python-version 3.11 -o requirements/runtime.txt pyproject.toml requirements/build.in
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --universal --python-version 3.11 -c requirements/runtime.txt --group dev -o requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --universal --python-version 3.11 -o requirements/peers.txt requirements/peers.in
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 -o requirements/wheels.txt requirements/wheels.in

installs:  ## install with pip, uv and pipx into new environments, and use each (needs the network; five minutes)
	@$(PYTHON) packaging/installs.py

clean:  ## remove everything that the above created
	@rm -rf .venv .venv-peers .venv-wheels dist site benchmarks/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

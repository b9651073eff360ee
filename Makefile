# On a fresh machine: `make demo` to see it work, `make test` to run every test.
# Needed: python3 (3.10 or newer), git, a C++ compiler for the Jittor lane. The rest is fetched.

PYTHON ?= python3
VENV   := .venv
TOOLS  := .nox/tools
RUNS   ?= 100000
SEED   ?= 0

.PHONY: help demo test wheel fuzz golden bench viewer clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.ready ## install into .venv and describe a real training graph
	@$(VENV)/bin/opscope demo

test: $(TOOLS)/.ready ## every lane, side by side (LANES="core lint" for some)
	@$(TOOLS)/bin/python .ci/lanes.py $(LANES)

wheel: $(TOOLS)/.ready ## build dist/opscope-*.whl
	$(TOOLS)/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/opscope-*.whl

fuzz: $(VENV)/.ready ## mutate real files and read them (RUNS=100000 SEED=0)
	$(VENV)/bin/python tests/fuzz.py --runs $(RUNS) --seed $(SEED)

golden: $(TOOLS)/.ready ## rewrite tests/golden from what the code does now; read the diff
	$(TOOLS)/bin/nox --session core -- --overwrite

bench: $(TOOLS)/.ready ## the figures of the graph model, compared with onnx_ir
	$(TOOLS)/bin/nox --session bench

viewer: $(VENV)/.ready ## build the page from viewer/src into src/opscope/_viewer (needs Node)
	$(VENV)/bin/python viewer/facts.py
	cd viewer && npm install --no-save --no-audit --no-fund --silent && npm run --silent format:write && npm run --silent build

clean: ## remove what was built here (not ~/.cache/opscope, which other clones share)
	rm -rf $(VENV) .nox dist build .pytest_cache .ruff_cache .hypothesis

# The stamp is made last, so an interrupted install is done again.
$(VENV)/.ready: pyproject.toml
	@echo "Installing opscope into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(TOOLS)/.ready:
	@echo "Installing nox into $(TOOLS) ..."
	@$(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check "nox>=2024.10.9"
	@touch $@

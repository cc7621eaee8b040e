# The commands of the project. `make demo` and `make test` make their environment first.
#
# The full environment needs Python 3.12, for which nvFuser has wheels; without one the light environment is made.

SHELL := bash
# The first that runs: what is on PATH may be a stand-in for a Python that is not there.
PYTHON312 := $(shell for python in python3.12 $$HOME/.pyenv/versions/3.12.*/bin/python; do \
  $$python -c 'import sys, venv; assert sys.version_info[:2] == (3, 12)' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv

.PHONY: demo test test-light opdb opdb-grad bench lint clean

demo: $(VENV)/.installed
	@$(VENV)/bin/thunder trace -v fixtures/quickstart.py:foo

test: $(VENV)/.installed lint
	$(VENV)/bin/python -m pytest -n 2
	$(VENV)/bin/python -m thunder.virtual_cuda --chip h100 -m pytest tests/on_device

# The same suite without nvFuser, on a torch without CUDA.
test-light: .venv-light/.installed
	.venv-light/bin/python -m pytest -n 2
	.venv-light/bin/python -m thunder.virtual_cuda --chip h100 -m pytest tests/on_device

# All of torch's operator database, about half an hour; writes docs/operators.md.
opdb: $(VENV)/.installed
	$(VENV)/bin/python tests/operator_table.py

opdb-grad: $(VENV)/.installed
	$(VENV)/bin/python tests/gradient_table.py

bench: $(VENV)/.installed
	$(VENV)/bin/python -m benchmarks

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check src tests benchmarks

$(VENV)/.installed: pyproject.toml
ifeq ($(PYTHON312),)
	@echo "No Python 3.12 found: making the light environment. It has no nvFuser, so fusions show no CUDA kernel." >&2
	@echo "Install Python 3.12 and run 'make clean $(or $(MAKECMDGOALS),demo)' for the full one." >&2
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -e '.[test]'
else
	$(PYTHON312) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -e '.[nvfuser,test]'
endif
	@touch $@

# torch 2.13.0 has a CPU build that is small.
.venv-light/.installed: pyproject.toml
	python3 -m venv .venv-light
	.venv-light/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-light/bin/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

clean:
	rm -rf .venv .venv-light

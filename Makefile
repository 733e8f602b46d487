# `make demo` and `make test` set up all they need in .venv (bootstrap.py) and touch nothing outside this folder,
# except rsync, which is installed through the system's package manager when it is missing and this is allowed.
PYTHON ?= python3
READY := .venv/.ready

.PHONY: demo test test-faults bench check format clean

demo: $(READY)
	@.venv/bin/invoke demo

# Word for word what CI runs.
test: $(READY)
	.venv/bin/ruff format --check .
	.venv/bin/ruff check --no-cache .
	.venv/bin/mypy
	.venv/bin/pytest -m "not faults" -n 2 --dist loadfile

test-faults: $(READY)
	.venv/bin/pytest -m faults --timeout=3600

bench: $(READY)
	.venv/bin/python -m bench

format: $(READY)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

clean:
	rm -rf .venv

$(READY): bootstrap.py pyproject.toml constraints.txt
	@$(PYTHON) bootstrap.py

# `make demo` and `make test` set up all they need in .venv (bootstrap.py) and touch nothing outside this folder,
# except rsync, which is installed through the system's package manager when it is missing and this is allowed.
PYTHON ?= python3
READY := .venv/.ready

# Compiled modules are kept, also where a shell or an image switches that off: each worker collects
# the same tests.
export PYTHONDONTWRITEBYTECODE :=

TORCHES ?= 2.4.1 2.13.0

.PHONY: demo gpu test test-faults test-kube-storm test-projects test-slurm test-torch bench pictures docs check format words clean

demo: $(READY)
	@.venv/bin/invoke demo

# Word for word what CI runs. The types are checked while pytest collects, which it does once: the tests run in
# processes that are forked then (tests/side_by_side.py). Many tests wait, so there are more of these than cores; more
# than four load torch more often than they wait less. On a machine with GPUs the tests marked gpu follow, which see
# them; no other test does.
WORKERS ?= 4

test: $(READY)
	.venv/bin/ruff format --check .
	.venv/bin/ruff check --no-cache .
	@.venv/bin/mypy >.venv/types.txt 2>&1 & types=$$!; \
	  .venv/bin/pytest -m "not faults and not projects and not slurm and not gpu" --side-by-side $(WORKERS) --durations=20 \
	  || .venv/bin/python tests/again.py $$?; tests=$$?; \
	  if ls /dev/nvidia[0-9]* /dev/kfd >/dev/null 2>&1; then .venv/bin/pytest -m gpu || tests=1; fi; \
	  echo .venv/bin/mypy; wait $$types || tests=1; cat .venv/types.txt; exit $$tests

test-faults: $(READY)
	.venv/bin/pytest -m faults

# What a cluster does to pods at random times, with 30 cells; one of test-faults. Needs root.
test-kube-storm: $(READY)
	.venv/bin/pytest -m faults tests/kube/test_kube_storm.py

# Projects in other people's habits, each from plan to down with a SIGKILL, in an environment of its own.
test-projects:
	@BOXCAR_VENV=.venv-projects $(PYTHON) bootstrap.py
	@echo "[boxcar] installing the libraries of the projects into .venv-projects (about 250 MB, once)"
	@.venv-projects/bin/python -m pip install --disable-pip-version-check --quiet \
	  --constraint constraints.txt --editable .[projects]
	@DS_BUILD_OPS=0 .venv-projects/bin/python -m pip install --disable-pip-version-check --quiet \
	  --constraint constraints.txt --no-build-isolation deepspeed # its build looks for the torch that is there
	@.venv-projects/bin/python tests/projects/stand_in/torchvision_ops.py
	.venv-projects/bin/pytest tests/projects --side-by-side 2 --durations=20

# All that only a GPU can show, in six minutes, without a network: by the machine's own Python, which needs torch. What
# it lacks travels as wheels in .whl. `make gpu DRY=--dry` tries every part on the CPU.
gpu:
	$(PYTHON) -m bench.on_gpu $(DRY) --json gpu.json

# Runs on a real Slurm of the distribution's packages, in folders and on ports of its own; needs root.
test-slurm: $(READY)
	.venv/bin/pytest tests/slurm --durations=20

# The training layer with the oldest and the newest torch that are supported, each in a folder of its own.
test-torch:
	@for torch in $(TORCHES); do \
	  BOXCAR_VENV=.venv-torch-$$torch BOXCAR_TORCH=$$torch $(PYTHON) bootstrap.py && \
	  .venv-torch-$$torch/bin/pytest -m "not faults" --side-by-side 2 tests/training || exit 1; \
	done

# Without the libraries and programs that it measures beside ours, it says so in their rows.
bench: $(READY)
	-@.venv/bin/python -m bench.set_up
	.venv/bin/python -m bench

# The board in the README, from a run that trains here for some minutes.
pictures: $(READY)
	.venv/bin/python docs/pictures/make_board.py
	.venv/bin/python docs/pictures/make_report.py

# The docs site into .site/html, by an environment of its own; a link that leads nowhere ends it.
docs:
	@test -e .venv-docs/bin/mkdocs || $(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --disable-pip-version-check --quiet --requirement docs/site/requirements.txt
	@.venv-docs/bin/python docs/site/prepare.py .site/pages
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

format: $(READY)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

clean:
	rm -rf .venv .venv-projects .venv-torch-* .venv-docs .site

$(READY): bootstrap.py pyproject.toml constraints.txt
	@$(PYTHON) bootstrap.py

# Brings boxcar/shared/zh.po in step with the sentences of the code, and compiles it.
words: $(READY)
	@.venv/bin/python hatch_build.py

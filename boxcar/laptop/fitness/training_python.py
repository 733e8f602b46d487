"""Whether the training's Python is one, on this machine: of rented boxes the audit says it.

Each load check runs in it, so that a run of another program is trained and never verified.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from boxcar.laptop.common import run_program
from boxcar.shared.environment import after_hook
from boxcar.shared.files.plan import Plan
from boxcar.shared.process.second_home_child import variables

_TIMEOUT_S = 30.0
# No shell takes it, and who repeats its words has not said it.
_CODE, _ANSWER = 'import sys; sys.exit("is" + "Python")', b"isPython"
# Of a program that is not there: its queue stops at the first cell and names it, and its PATH may
# be another than ours.
_NOT_FOUND = (126, 127)


def ended_otherwise(plan: Plan, hook: str) -> str | None:
    """How the program ended that is no Python; None of one that is, or where nobody can tell. What
    execs a Python is one.
    """
    python = str(Path(plan.training_python).expanduser())
    command = [*(after_hook(hook) if hook else ()), python, "-c", _CODE]
    # A file: a daemon that the hook leaves behind would hold a pipe open for ever.
    with tempfile.TemporaryFile() as err:
        try:
            environ = os.environ | variables(plan)
            done = run_program.run(command, b"", _TIMEOUT_S, stderr=err, environment=environ)
        except (OSError, subprocess.TimeoutExpired):
            return None
        err.seek(0)
        said = err.read().splitlines()
    if done.returncode in _NOT_FOUND or _ANSWER in said:
        return None
    last = said[-1].decode(errors="replace").strip() if said else ""
    return f"{done.returncode}: {last}" if last else str(done.returncode)

"""What the training's interpreter is, asked of itself, after the profile's hook as in the wrappers.

It is a child with a time limit: a hook may wait for the network, and torch on a cold disk for a
minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.environment import after_hook

LOOK_TIMEOUT_S = 30.0
# torch has to be imported for this one.
CUDA_TIMEOUT_S = 60.0

# For any Python 3: a training's interpreter may be older than ours. Finding imports nothing.
_LOOK = """\
import importlib.util, json, sys

def distribution(name):
    try:
        from importlib.metadata import version
        return version(name)
    except Exception:
        return None

def package(name):
    is_there = importlib.util.find_spec(name) is not None
    return (distribution(name) or "of unknown version") if is_there else None

print(json.dumps({
    "path": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "packages": {name: package(name) for name in ("torch", "accelerate", "deepspeed")},
    "requirements": {name: distribution(name) for name in sys.argv[1:]},
}))
"""

_CUDA = """\
import json, torch

has_cuda = torch.cuda.is_available()
cards = range(torch.cuda.device_count()) if has_cuda else ()
print(json.dumps({
    "has_cuda": has_cuda,
    "cuda": torch.version.cuda,
    "built_for": torch.cuda.get_arch_list() if has_cuda else [],
    "capabilities": ["%d.%d" % torch.cuda.get_device_capability(card) for card in cards],
}))
"""

_PROXIES = """\
import json, os

print(json.dumps({name: value for name, value in os.environ.items() if "proxy" in name.lower()}))
"""


def look_at_python(python: str, hook: str = "", requirements: Sequence[str] = ()) -> dict[str, Any]:
    """`path`, `version`, `packages` and the `requirements` that were asked about (name: version or
    None); or `problem`, a sentence.
    """
    return ask(python, hook, _LOOK, LOOK_TIMEOUT_S, requirements)


def cuda(python: str, hook: str = "") -> dict[str, Any]:
    """`has_cuda`, the `cuda` and the architectures that torch was built for, and the
    `capabilities` of the cards; or `problem`.
    """
    return ask(python, hook, _CUDA, CUDA_TIMEOUT_S)


def proxies(hook: str) -> dict[str, str]:
    """The proxies that the hook sets, as variables: its agent reaches the network by them."""
    found = ask(sys.executable, hook, _PROXIES, LOOK_TIMEOUT_S)
    return {name: value for name, value in found.items() if name.lower().endswith("_proxy")}


def ask(
    python: str,
    hook: str,
    code: str,
    timeout_s: float,
    words: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The JSON object that `code` prints last, or `problem`; `environ`: what is beside ours."""
    command = after_hook(hook)
    command += [str(Path(python).expanduser()), "-c", code, *words]
    # Files: a daemon that the hook leaves behind would hold a pipe open for ever.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ended = _run(command, out.fileno(), err.fileno(), timeout_s, environ)
        out.seek(0)
        err.seek(0)
        said, told = out.read().splitlines(), err.read().decode(errors="replace").strip()
    if ended is None:
        return {"problem": f"{python} did not answer within {timeout_s:g} s"}
    if ended in (126, 127):
        return {"problem": f"there is no program {python} on this box"}
    with contextlib.suppress(IndexError, ValueError):  # a site package may print before it
        found = json.loads(said[-1])
        if ended == 0 and isinstance(found, dict):
            return found
    last = told.splitlines()[-1] if told else "no output"
    return {"problem": f"{python} ended with {ended}: {last}"}


def _run(
    command: list[str],
    out: int,
    err: int,
    timeout_s: float,
    environ: Mapping[str, str] | None,
) -> int | None:
    """The exit code; None where there was none in time, or no bash to ask."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(environ or {})},
            cwd="/",  # where no torch.py of ours lies in the way
            start_new_session=True,
        )
    except OSError:
        return 127
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)  # one that hangs in the driver cannot be killed

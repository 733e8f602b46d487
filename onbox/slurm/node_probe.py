"""What nodes are like, tried by one short srun: Python, GPUs, /dev/shm, the tier; from two nodes at
once whether a claim has one winner, and whether flock works, fails or lies.

Waits WITHIN_S for free nodes and no longer: on a full cluster nothing is learned, which is said.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.slurm import commands
from onbox.slurm.commands import Ran

WITHIN_S = 20
_TIMEOUT_S = 100.0
_NODES = 2
_WORDS = 300
# Runs on each node; the folder is on the tier. Who makes `claim` holds the lock until the other one
# has tried it.
_PROGRAM = """
import fcntl, json, os, shutil, sys, time
folder, said = sys.argv[1], {}
said["node"] = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
said["python"] = "%d.%d" % sys.version_info[:2]
said["gpus"] = len([one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one])
said["nvidia_smi"] = bool(shutil.which("nvidia-smi"))
try:
    said["shm_bytes"] = os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize
except OSError:
    pass
def is_there(name):
    until = time.monotonic() + 15
    while time.monotonic() < until:
        if name in os.listdir(folder):
            return True
        time.sleep(0.1)
    return False
def put(name):
    os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY))
try:
    mine = os.path.join(folder, "of-" + said["node"])
    with open(mine, "w") as file:
        file.write(said["node"])
    try:
        os.link(mine, os.path.join(folder, "claim"))
        said["has_won"] = True
    except FileExistsError:
        said["has_won"] = False
    if os.environ.get("SLURM_NNODES", "1") != "1":
        lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR)
        if said["has_won"] or is_there("held"):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                said["flock"] = "got"
            except BlockingIOError:
                said["flock"] = "refused"
            except OSError as error:
                said["flock"] = "failed: " + str(error.strerror)
            put("held" if said["has_won"] else "tried")
            if said["has_won"]:
                is_there("tried")
except OSError as error:
    said["problem"] = "%s: %s" % (error.filename, error.strerror)
print("boxcar-node", json.dumps(said), flush=True)
"""


# Who was given a node; how the hook ended, whose words go to stderr as in the wrappers.
_GIVEN, _HOOK, _NODE = "boxcar-given", "boxcar-hook", "boxcar-node"
_ON_NODE = f'echo "{_GIVEN} ${{SLURMD_NODENAME:-$(uname -n)}}"; exec "$@"'
_AFTER_HOOK = """\
arguments=("$@")
set --
{{
:
{hook}
}} >&2 </dev/null
echo "{mark} $?"
exec "${{arguments[@]}}"
"""
_NOT_FOUND = re.compile(r"[^:\s]+: (?:command )?not found$", re.MULTILINE)


def answer(question: cluster_asks.SlurmTry, run: RunOnBox) -> cluster_asks.SlurmTried:
    """Raises InputError where this is no login node, OSError."""
    folder = run.tier.durable_dir / f".boxcar-try-{secrets.token_hex(4)}"
    problem = ""
    try:
        for nodes in (_NODES, 1):
            atomic.make_folder(folder)
            ran = commands.run("srun", *_words(question, nodes, str(folder)), timeout_s=_TIMEOUT_S)
            if given := _marked(ran.out, _GIVEN):
                return _told(said_by(ran.out), given, ran)
            problem = problem or ran.said
            shutil.rmtree(folder, ignore_errors=True)
        return cluster_asks.SlurmTried(
            (), "", 0, None, is_one_winner=False, flock=None, problem=problem
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _words(question: cluster_asks.SlurmTry, nodes: int, folder: str) -> list[str]:
    python = str(paths.on_box(question.python)) if "/" in question.python else question.python
    after_hook = _AFTER_HOOK.format(hook=question.hook, mark=_HOOK)
    return [
        *question.options,
        *("--job-name=boxcar-audit", f"--immediate={WITHIN_S}", "--time=2"),
        *(f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *("bash", "-c", _ON_NODE, "boxcar", *question.container),
        *("bash", "-c", after_hook, "boxcar", python, "-I", "-c", _PROGRAM, folder),
    ]


def _marked(text: str, mark: str) -> list[str]:
    """What stands behind that mark; what a hook printed beside it is nobody's."""
    parted = (line.partition(" ") for line in text.splitlines())
    return [rest for head, _, rest in parted if head == mark]


def said_by(text: str) -> list[Mapping[str, Any]]:
    """One record for each node."""
    return [json.loads(rest) for rest in _marked(text, _NODE)]


def _hook_problem(ran: Ran) -> str | None:
    """Its last command's code, and what bash did not find: neither ends what comes after it."""
    if missing := _NOT_FOUND.search(ran.err):
        return missing[0]
    codes = [code for code in _marked(ran.out, _HOOK) if code != "0"]
    last = ran.err.strip().rpartition("\n")[2][-_WORDS:]
    return f"it ended with code {codes[0]}{last and f': {last}'}" if codes else None


def _told(
    found: Sequence[Mapping[str, Any]], given: Sequence[str], ran: Ran
) -> cluster_asks.SlurmTried:
    silent = sorted(set(given) - {str(one["node"]) for one in found})
    problems = [f"{one['node']}: {one['problem']}" for one in found if one.get("problem")]
    problems += [ran.said] if silent else []
    wins = sum(one.get("has_won", False) for one in found)
    shm = [one["shm_bytes"] for one in found if "shm_bytes" in one]
    return cluster_asks.SlurmTried(
        nodes=tuple(sorted(str(one["node"]) for one in found)),
        python=", ".join(sorted({str(one["python"]) for one in found})),
        gpus=min((int(one["gpus"]) for one in found), default=0),
        shm_free_bytes=min(shm, default=None),
        is_one_winner=wins == 1,
        flock=flock(found),
        problem="; ".join(problems) or None,
        silent=tuple(silent),
        hook_problem=_hook_problem(ran) if found else None,
    )


def flock(found: Sequence[Mapping[str, Any]]) -> str | None:
    """`works`, `fails` or `lies`; None where two nodes did not try it."""
    said = [str(one["flock"]) for one in found if "flock" in one]
    if len(said) < _NODES:
        return None
    if any(one.startswith("failed") for one in said):
        return "fails"
    return "works" if said.count("got") == 1 else "lies"

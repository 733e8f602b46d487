"""Slurm's variables in the words that torch reads, for a script that `srun` starts once per rank.

    srun --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --kill-on-bad-exit=1 python train.py

Pure. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from boxcar.shared.errors import InputError

# Below the ports that the kernel gives to clients (32768), and above those that need root.
_FIRST_PORT, _PORTS = 20000, 12000

_PART = re.compile(r"([^\[\],]*)(?:\[([^\]]*)\])?")


def tasks(env: Mapping[str, str]) -> int:
    """How many tasks srun started together; 1 outside of Slurm."""
    return int(env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS") or 1)


def contract(env: Mapping[str, str], master_port: int | None = None) -> dict[str, str]:
    """RANK and the others of rendezvous.py, from SLURM_PROCID and its like.

    The first node of the list hosts the store. Without `master_port` the port comes from the
    numbers of job and step, so that two jobs on one node have two. Raises InputError for what
    Slurm did not set.
    """
    nodes = (
        env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST") or env.get("SLURM_JOB_NODELIST")
    )
    needed = ("SLURM_PROCID", "SLURM_LOCALID")
    missing = [name for name in needed if name not in env]
    if missing or not nodes:
        raise InputError(
            f"Slurm did not set {', '.join(missing or ['SLURM_NODELIST'])}: start the script by "
            "srun, once for each rank"
        )
    return {
        "RANK": env["SLURM_PROCID"],
        "LOCAL_RANK": env["SLURM_LOCALID"],
        "WORLD_SIZE": str(tasks(env)),
        "LOCAL_WORLD_SIZE": str(_tasks_here(env)),
        "GROUP_RANK": env.get("SLURM_NODEID", "0"),
        "MASTER_ADDR": hosts(nodes)[0],
        "MASTER_PORT": str(master_port or _port(env)),
    }


def hosts(nodelist: str) -> list[str]:
    """The hosts of a list as `gpu[01-03,7],login1`, in its order, as `scontrol show hostnames`."""
    names = []
    for word in _split_outside_brackets(nodelist):
        pieces = [
            [before + number for number in _numbers(inside)] if inside else [before]
            for before, inside in _PART.findall(word)
            if before or inside
        ]
        names += ["".join(name) for name in itertools.product(*pieces)]
    if not names:
        raise InputError(f"SLURM_NODELIST should be as gpu[01-03,7], found {nodelist!r}")
    return names


def _split_outside_brackets(text: str) -> list[str]:
    return [word for word in re.split(r",(?![^\[]*\])", text) if word]


def _numbers(inside: str) -> list[str]:
    """`01-03,7` as 01, 02, 03, 7: the zeros in front are part of the name."""
    numbers = []
    for part in inside.split(","):
        first, _, last = part.partition("-")
        last = last or first
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def _tasks_here(env: Mapping[str, str]) -> int:
    """Of `4(x2),2` the number of this node; without it, all tasks, as on one node."""
    text = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE")
    if not text:
        return tasks(env)
    each = []
    for number, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        each += [int(number)] * int(times or 1)
    return each[min(int(env.get("SLURM_NODEID", "0")), len(each) - 1)]


def _port(env: Mapping[str, str]) -> int:
    job, step = (int(env.get(name) or 0) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    return _FIRST_PORT + (job * 7 + step) % _PORTS

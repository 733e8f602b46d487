"""Where a rank stands among the others by the launcher's variables, and how it meets them.

RANK and WORLD_SIZE count over the whole job, LOCAL_RANK and LOCAL_WORLD_SIZE on this node;
MASTER_ADDR and MASTER_PORT are those of the store that rank 0, or torchrun's agent, hosts.
Source: torch.distributed.run, "Environment Variables".
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import torch.distributed as dist

from boxcar.shared.errors import InputError, TemporaryError

if TYPE_CHECKING:
    from boxcar.training.ranks.config import DistributedConfig

# --- Slurm's variables in the words that torch reads, for a script that `srun` starts by rank.
# srun --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --kill-on-bad-exit=1 python train.py
# Pure. Source: srun(1), "OUTPUT ENVIRONMENT VARIABLES".


TORCHS_PORT = 29500
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
        raise InputError(f"SLURM_NODELIST should look like gpu[01-03,7], found {nodelist!r}")
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


HOW_TO_START = "start it with `torchrun --standalone --nproc-per-node=N train.py`"

# A second meeting of the same processes must not find the names of the first.
_meetings = itertools.count()


class RankNumbers(NamedTuple):
    """One rank among the others."""

    rank: int = 0
    local_rank: int = 0
    world: int = 1
    local_world: int = 1


def read_numbers(env: Mapping[str, str]) -> RankNumbers:
    """The place that the launcher's variables give; InputError names what is missing or wrong."""
    # Some platforms preset the two for a single process.
    alone = (None, None), ("0", "1")
    if (env.get("RANK"), env.get("WORLD_SIZE")) in alone and env.get("LOCAL_RANK", "0") == "0":
        _refuse_a_bare_slurm_task(env)
        return RankNumbers()
    needed = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if missing := [name for name in needed if not env.get(name)]:
        found = ", ".join(f"{name}={env[name]}" for name in needed if env.get(name))
        raise InputError(f"{found} is set, but {', '.join(missing)} is not: {HOW_TO_START}")
    world = _number(env, "WORLD_SIZE", least=1)
    # deepspeed calls it LOCAL_SIZE; a launcher that says neither has one node.
    local_name = next((n for n in ("LOCAL_WORLD_SIZE", "LOCAL_SIZE") if env.get(n)), "WORLD_SIZE")
    local_world = _number(env, local_name, least=1)
    _number(env, "MASTER_PORT", least=1, below=65536)
    return RankNumbers(
        _number(env, "RANK", below=world),
        _number(env, "LOCAL_RANK", below=local_world),
        world,
        local_world,
    )


def by_hand(
    env: Mapping[str, str], config: DistributedConfig, rank: int, world: int
) -> dict[str, str]:
    """What a launcher would have set for this rank; nothing where one has, or for a rank alone.

    Of srun's tasks it is Slurm's. Raises InputError for what cannot be a rank, and where the config
    cannot lead to the others.
    """
    if is_launched(env):
        return {}
    if not 0 <= rank < world:
        raise InputError(f"setup was called with rank {rank} of {world}: give 0 to {world - 1}")
    if world == 1:
        return {}
    if "SLURM_PROCID" in env and tasks(env) > 1:
        return contract(env, port_of(config))
    port = port_of(config) or TORCHS_PORT
    dataclasses.replace(config, master_port=port).check(world)
    here = world // config.num_nodes
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % here),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(here),
        "MASTER_ADDR": config.master_addr,
        "MASTER_PORT": str(port),
    }


def is_launched(env: Mapping[str, str]) -> bool:
    """Whether a launcher has started this process; RANK=0 of WORLD_SIZE=1 alone may be a preset."""
    presets = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    if "TORCHELASTIC_RUN_ID" in env:
        return True
    return any(name in env and env[name] != preset for name, preset in presets.items())


def port_of(config: DistributedConfig) -> int | None:
    """The config's, None for a free one."""
    return None if config.master_port is None else int(config.master_port)


def _refuse_a_bare_slurm_task(env: Mapping[str, str]) -> None:
    """srun alone sets none of the variables: each task would train the whole cell by itself."""
    tasks = env.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1" and "RANK" not in env:
        raise InputError(
            f"srun started {tasks} tasks, but RANK is not set: start the training by "
            "DistributedLauncher(config).launch(train, args), which translates Slurm's variables"
        )


def _number(env: Mapping[str, str], name: str, *, least: int = 0, below: int | None = None) -> int:
    text = env[name]
    if text.isdecimal() and least <= int(text) and (below is None or int(text) < below):
        return int(text)
    upper = f" to {below - 1}" if below is not None else " or more"
    raise InputError(f"{name} should be a whole number, {least}{upper}, found {text!r}")


def meet(numbers: RankNumbers, timeout_s: float) -> dist.Store:
    """The store through which the ranks find each other, once all of them are there.

    Raises InputError (the port is taken, two processes are one rank) and TemporaryError (a rank did
    not come within `timeout_s`). Not torch's env:// rendezvous: that one says how many ranks are
    missing, not which.
    """
    timeout = timedelta(seconds=timeout_s)
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # torchrun's agent hosts the store, and its ranks must not try to.
    is_hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    try:
        tcp = dist.TCPStore(
            host,
            port,
            numbers.world,
            is_master=numbers.rank == 0 and not is_hosted,
            timeout=timeout,
            wait_for_workers=False,
            multi_tenant=True,
        )
    except RuntimeError as error:
        raise _store_error(error, numbers, f"{host}:{port}", timeout) from error
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"boxcar/{attempt}/{next(_meetings)}", tcp)
    _wait_for_all(store, numbers, f"{host}:{port}", timeout)
    return store


def _store_error(
    error: RuntimeError, numbers: RankNumbers, address: str, timeout: timedelta
) -> InputError | TemporaryError:
    port = address.rpartition(":")[2]
    if any(word in str(error) for word in ("EADDRINUSE", "ddress already in use", "errno: 98")):
        return InputError(
            f"MASTER_PORT {port} is taken on this machine by another program (`ss -ltnp 'sport = "
            f":{port}'` shows which; perhaps a training that was left behind): give this job "
            "another port, or let torchrun --standalone find a free one"
        )
    return TemporaryError(
        f"rank {numbers.rank} did not reach rank 0 at {address} within {timeout.total_seconds():g} "
        f"s: it has not started or has died (look at its log), or MASTER_ADDR is wrong: {error}"
    )


def _wait_for_all(
    store: dist.Store, numbers: RankNumbers, address: str, timeout: timedelta
) -> None:
    if store.add(f"rank{numbers.rank}", 1) > 1:
        raise InputError(
            f"a second process joined {address} as rank {numbers.rank}: two jobs share one "
            "MASTER_PORT; give each its own, or start them with torchrun --standalone"
        )
    names = [f"rank{rank}" for rank in range(numbers.world)]
    try:
        store.wait(names, timeout)
    except RuntimeError as error:
        raise TemporaryError(
            f"{_who_is_missing(store, names)} {address}; look at its log, or at its node's "
            f"launcher (rank {numbers.rank} waited {timeout.total_seconds():g} s for all "
            f"{numbers.world})"
        ) from error


def _who_is_missing(store: dist.Store, names: list[str]) -> str:
    try:
        missing = [str(i) for i, name in enumerate(names) if not store.check([name])]
    except RuntimeError:
        return "rank 0 has left, and with it the store at"
    return f"rank {', '.join(missing)} never came to"

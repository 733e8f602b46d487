"""What the cluster is and allows, as facts: the laptop judges them. Nothing is started for it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    TemporaryError,
    reason_of,
    words_of,
)
from boxcar.shared.sentence import _
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.slurm import commands

_PAIR = re.compile(r"(\w+)=(\S*)")
_NO_SUCH_NODE = "Requested node configuration is not available"
_AT_WORK = "idle,allocated,mixed,completing"
# What is judged of a partition; the others are dozens.
_KEPT = ("MaxTime", "DefaultTime", "State", "Default", "AllowAccounts", "PreemptMode", "Nodes")
_SIZE = re.compile(r"^MaxArraySize\s*=\s*(\d+)", re.MULTILINE)
_VERSION = re.compile(r"^SLURM_VERSION\s*=\s*(\S+)", re.MULTILINE)


def answer(question: cluster_asks.SlurmAudit, run: RunOnBox) -> cluster_asks.SlurmFacts:
    """Raises InputError where this is no login node, TemporaryError where Slurm is silent."""
    config = commands.run("scontrol", "show", "config")
    if config.code:
        raise TemporaryError(
            _(
                "Slurm does not answer: {said}. Nothing was submitted. Once it does",
                said=config.said,
            ),
            Command("launch"),
        )
    partitions = _partitions(commands.run("scontrol", "show", "partition", "-o").out)
    size, version = _SIZE.search(config.out), _VERSION.search(config.out)
    refused = {script: _refusal(options) for script, options in question.jobs.items()}
    return cluster_asks.SlurmFacts(
        version=version[1] if version else "Slurm",
        max_array_size=int(size[1]) if size else None,
        partitions=partitions,
        defaults=tuple(name for name, one in partitions.items() if one.get("Default") == "YES"),
        refusals={script: said for script, said in refused.items() if said},
        tier_problem=_problem(run.tier.durable_dir),
        credentials_problem=_problem(paths.on_box(question.credentials).parent, is_made=True),
    )


def _partitions(text: str) -> dict[str, dict[str, str]]:
    found = {}
    for line in text.splitlines():
        pairs = dict(_PAIR.findall(line))
        if name := pairs.get("PartitionName"):
            found[name] = {key: pairs[key] for key in _KEPT if key in pairs}
    return found


def _refusal(options: tuple[str, ...]) -> str | None:
    """What sbatch has against these options; it starts nothing. While no node answers it says of
    any options that no node has them, and takes the job all the same.
    """
    ran = commands.run("sbatch", "--test-only", "--nodes=1", "--ntasks=1", *options, "--wrap=true")
    if not ran.code or (_NO_SUCH_NODE in ran.said and not _has_nodes(options)):
        return None
    return ran.said


def _has_nodes(options: tuple[str, ...]) -> bool:
    """Whether any node answers in the partition that is asked for; True where nobody knows."""
    partition = [option for option in options if option.startswith("--partition=")]
    words = ("--noheader", "--responding", f"--states={_AT_WORK}", "--format=%N", *partition)
    with contextlib.suppress(InputError, TemporaryError):
        ran = commands.run("sinfo", *words)
        return bool(ran.code or ran.out.strip())
    return True


def _problem(folder: Path, *, is_made: bool = False) -> str | None:
    """Why nothing can be written there. With `is_made` a folder that is missing is made later."""
    place = next((one for one in (folder, *folder.parents) if one.is_dir()), folder)
    if place != folder and not is_made:
        return _("it is not there: is the file system mounted on the login node?")
    path = atomic.temporary_name(place / "audit")
    try:
        atomic.write_whole(path, b"written by boxcar's audit\n")
    except OSError as error:
        return reason_of(error)
    except BoxcarError as error:
        return words_of(error)
    finally:
        path.unlink(missing_ok=True)
    return None

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from pretended import Pretended

from boxcar.shared.wire import asks
from onbox.slurm import node_probe

ASKED = asks.SlurmTry(("--partition=gpu",), sys.executable, "echo hello from a hook")
# Two nodes of one machine; what an immediate allocation is refused with.
SRUN = """#!/bin/bash
echo srun "$@" >>{folder}/calls
nodes=1
for word in "$@"; do case "$word" in --nodes=*) nodes="${{word#*=}}" ;; esac; done
[ "$nodes" -le {free} ] || {{ echo "srun: error: Unable to allocate resources" >&2; exit 1; }}
while [ "$1" != bash ]; do shift; done
export SLURM_NNODES="$nodes"
for at in $(seq "$nodes"); do SLURMD_NODENAME="n$at" "$@" & done
wait
"""


def srun(slurm: Pretended, *, free: int) -> None:
    program = slurm.folder / "bin" / "srun"
    program.write_text(SRUN.format(folder=slurm.folder, free=free))
    program.chmod(0o755)
    slurm.run.tier.durable_dir.mkdir(exist_ok=True)


def test_two_nodes_claim_once_and_exclude_each_other_and_leave_nothing(slurm: Pretended) -> None:
    srun(slurm, free=2)
    before = sorted(slurm.run.tier.durable_dir.iterdir())
    tried = node_probe.answer(ASKED, slurm.run)
    assert (tried.nodes, tried.is_one_winner, tried.flock) == (("n1", "n2"), True, "works")
    assert tried.python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert tried.problem is None
    assert sorted(slurm.run.tier.durable_dir.iterdir()) == before
    [call] = slurm.calls("srun")
    assert "--partition=gpu" in call and "--immediate=20" in call and "--time=2" in call


def test_one_free_node_tells_what_it_can(slurm: Pretended) -> None:
    srun(slurm, free=1)
    tried = node_probe.answer(ASKED, slurm.run)
    assert (tried.nodes, tried.is_one_winner, tried.flock) == (("n1",), True, None)


def test_without_a_free_node_nothing_is_known_and_slurms_words_are_told(slurm: Pretended) -> None:
    srun(slurm, free=0)
    tried = node_probe.answer(ASKED, slurm.run)
    assert tried.nodes == () and "Unable to allocate" in str(tried.problem)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (["got", "refused"], "works"),
        (["got", "got"], "lies"),
        (["failed: Function not implemented", "failed: Function not implemented"], "fails"),
        (["got"], None),
    ],
)
def test_what_two_nodes_saw_of_flock_is_one_word(said: list[str], word: str | None) -> None:
    found: list[Mapping[str, Any]] = [
        {"node": f"n{at}", "flock": one} for at, one in enumerate(said)
    ]
    assert node_probe.flock(found) == word

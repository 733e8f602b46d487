from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pretended import Pretended

from boxcar.shared.wire import cluster_asks
from onbox.slurm import node_probe

ASKED = cluster_asks.SlurmTry(("--partition=gpu",), sys.executable, "echo hello from a hook")
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


def test_two_nodes_claim_once_and_exclude_each_other_and_leave_nothing(slurm):
    srun(slurm, free=2)
    before = sorted(slurm.run.tier.durable_dir.iterdir())
    tried = node_probe.answer(ASKED, slurm.run)
    assert (tried.nodes, tried.is_one_winner, tried.flock) == (("n1", "n2"), True, "works")
    assert tried.python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert tried.problem is None
    assert sorted(slurm.run.tier.durable_dir.iterdir()) == before
    [call] = slurm.calls("srun")
    assert "--partition=gpu" in call and "--immediate=20" in call and "--time=2" in call


def test_one_free_node_tells_what_it_can(slurm):
    srun(slurm, free=1)
    tried = node_probe.answer(ASKED, slurm.run)
    assert (tried.nodes, tried.is_one_winner, tried.flock) == (("n1",), True, None)


def test_without_a_free_node_nothing_is_known_and_slurms_words_are_told(slurm):
    srun(slurm, free=0)
    tried = node_probe.answer(ASKED, slurm.run)
    assert tried.nodes == () and "Unable to allocate" in str(tried.problem)


@pytest.mark.parametrize("free", [1, 2])
def test_a_node_that_was_free_and_has_no_such_python_is_not_a_full_cluster(slurm, free):
    srun(slurm, free=free)
    tried = node_probe.answer(replace(ASKED, python="/no/such/python"), slurm.run)
    assert tried.nodes == () and tried.silent == tuple(f"n{at + 1}" for at in range(free))
    assert "/no/such/python: No such file or directory" in str(tried.problem)


def test_the_hook_and_the_python_are_tried_in_the_container(slurm):
    srun(slurm, free=1)
    inside = slurm.folder / "bin" / "inside"
    inside.write_text('#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0,1,2\nexec "$@"\n')
    inside.chmod(0o755)
    asked = replace(ASKED, hook='echo "$CUDA_VISIBLE_DEVICES" >&2', container=("inside",))
    assert node_probe.answer(asked, slurm.run).gpus == 3
    gone = node_probe.answer(replace(ASKED, container=("apptainer", "exec", "x.sif")), slurm.run)
    assert gone.silent == ("n1",) and "apptainer: not found" in str(gone.problem)


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        ("module load cuda/12.4", "module: command not found"),
        ("module load cuda/12.4\ntrue", "module: command not found"),
        ("false", "it ended with code 1"),
        ("echo why not >&2; (exit 3)", "it ended with code 3: why not"),
        ("export A=1; echo all is well >&2", None),
        ("", None),
    ],
)
def test_a_hook_that_fails_is_told_though_all_goes_on(slurm, hook, problem):
    srun(slurm, free=1)
    tried = node_probe.answer(replace(ASKED, hook=hook), slurm.run)
    assert tried.nodes == ("n1",)
    assert (tried.hook_problem or "").endswith(problem or "") and bool(problem) == bool(
        tried.hook_problem
    )


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (["got", "refused"], "works"),
        (["got", "got"], "lies"),
        (["failed: Function not implemented", "failed: Function not implemented"], "fails"),
        (["got"], None),
    ],
)
def test_what_two_nodes_saw_of_flock_is_one_word(said, word):
    found: list[Mapping[str, Any]] = [
        {"node": f"n{at}", "flock": one} for at, one in enumerate(said)
    ]
    assert node_probe.flock(found) == word

"""What a training says while all is well names no failure of its end."""

from __future__ import annotations

import pytest
from triage_corpus import DATA

from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge

_LINES = (DATA / "ordinary.txt").read_text("utf-8").splitlines()
_STEP = "epoch 1 step 1 loss 0.5\n"


@pytest.mark.parametrize("line", _LINES)
def test_a_line_after_which_the_training_goes_on_names_no_failure(line: str) -> None:
    log = f"{_STEP}{line}\n{_STEP}{_STEP}"
    assert judge(Evidence(log)).id == ""
    killed = f"{log}run.sh: line 3: 99 Killed  python train.py\n"
    assert judge(Evidence(killed, rcs=frozenset({137}))).id == "137-N"


def test_a_line_of_a_rank_counts_where_only_other_ranks_go_on() -> None:
    log = f"[rank1]: CUDA error: out of memory\n{''.join(f'[rank0]: {_STEP}' * 3)}"
    assert judge(Evidence(log)).id == "M2"
    assert judge(Evidence(log.replace("[rank0]", "[rank1]"))).id == ""

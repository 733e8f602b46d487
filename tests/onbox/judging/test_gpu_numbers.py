"""Which card of the box a log's GPU 0 is: the words are those of the libraries themselves."""

from __future__ import annotations

from typing import Any

import pytest

from onbox.judging.gpu_numbers import with_cards_of_box

TORCH = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
OLD_TORCH = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 23.65 GiB total capacity)"
PADDLE = "Out of memory error on GPU 0. Cannot allocate 1.2GB memory on GPU 0"
TENSORFLOW = (
    "OOM when allocating tensor on /job:localhost/replica:0/task:0/device:GPU:1 by allocator"
)
TO_DEVICE = "Expected all tensors to be on the same device, but found cuda:1 and cuda:0"


@pytest.mark.parametrize(
    ("reason", "gpus", "said"),
    [
        (TORCH, ("3",), ["The cell's GPU 0 is GPU 3 of the box"]),
        (TORCH, ("MIG-41b0",), ["The cell's GPU 0 is MIG-41b0 of the box"]),
        (OLD_TORCH, ("2", "5"), ["The cell's GPU 1 is GPU 5 of the box"]),
        (PADDLE, ("6",), ["The cell's GPU 0 is GPU 6 of the box"]),
        (TENSORFLOW, ("4", "7"), ["The cell's GPU 1 is GPU 7 of the box"]),
        (TO_DEVICE, ("2", "3"), ["GPU 0 is GPU 2 of the box", "GPU 1 is GPU 3 of the box"]),
        (TORCH, ("0", "1"), []),
        (TORCH, (), []),
        (OLD_TORCH, ("3",), []),  # it has no GPU 1
        ("GPU 0.5 is no number of a card", ("3",), []),
    ],
)
def test_a_number_of_the_log_is_followed_by_the_card_where_it_is_another(
    reason: str, gpus: tuple[str, ...], said: list[str]
) -> None:
    told = with_cards_of_box(reason, gpus)
    assert told.startswith(reason.rstrip("."))
    assert told.count("of the box") == len(said)
    assert all(text in told for text in said)


OUT_OF_MEMORY = f"""\
import sys
raise_ = "torch.OutOfMemoryError: {TORCH} of which 1.00 GiB is free."
print("Traceback (most recent call last):\\n  File \\"train.py\\", line 9, in <module>\\n" + raise_)
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("visible", "each", "card"), [("3", 1, "3"), ("5,6", None, "5"), ("0,1", None, "")]
)
def test_the_reason_of_a_cell_names_the_card_that_nvidia_smi_names(
    make_run: Any, visible: str, each: int | None, card: str
) -> None:
    env = {"CUDA_VISIBLE_DEVICES": visible}
    run = make_run({"a": {}}, train=OUT_OF_MEMORY, gpus_per_cell=each, job_env=env, nproc=1)
    run.finish()
    reason = run.events("cell.failed", cell="a")[-1].data["reason"]
    assert "GPU 0 has a total capacity" in reason
    assert reason.count("of the box") == bool(card)
    assert f"The cell's GPU 0 is GPU {card} of the box" in reason or not card

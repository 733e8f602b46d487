"""What docs/training.md shows can be typed, and resumes to the bit."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest
from page_scripts import HEAD, TAIL, Script, blocks, killed_and_whole
from ranks_at_work import free_port

DATASET = "A loop over a data set"
ACCUMULATED = "Accumulated gradients"
ITERATIONS = "A loop of iterations without a data set"
GPT = """
config, learning_rate, eval_interval, max_iters = 8, 1e-2, 10, 40
_text = torch.arange(400) * 7 % 31 % 11

def get_batch(split):
    at = torch.randint(len(_text) - 5, (4,))
    x = torch.stack([_text[i : i + 4] for i in at])
    return x, torch.stack([_text[i + 1 : i + 5] for i in at])

class GPT(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.drop = nn.Embedding(11, width), nn.Dropout(0.1)
        self.head = nn.Linear(width, 11)
    def forward(self, x, y):
        return F.cross_entropy(self.head(self.drop(self.words(x))).flatten(0, 1), y.flatten())

@torch.no_grad()
def estimate_loss(model):
    return {"val": float(torch.stack([model(*get_batch("val")) for _ in range(4)]).mean())}
"""


def changed_lines(before: str, after: str) -> int:
    """Lines of `after` that are not in `before`, empty ones left out."""
    found = difflib.ndiff(before.splitlines(), after.splitlines())
    return sum(line.startswith("+ ") and bool(line[2:].strip()) for line in found)


@pytest.mark.parametrize("heading", [DATASET, ITERATIONS])
def test_ten_changed_lines_are_enough(heading: str) -> None:
    before, after = blocks(heading)
    assert changed_lines(before, after) <= 10


@pytest.mark.parametrize(
    ("heading", "more"),
    [(DATASET, ""), pytest.param(ITERATIONS, GPT, marks=pytest.mark.faults)],
)
def test_what_was_killed_and_stopped_ends_as_what_was_not(
    heading: str, more: str, tmp_path: Path
) -> None:
    code = HEAD + more + blocks(heading)[1].replace("batch_size=64", "batch_size=8") + TAIL
    script = Script(tmp_path, code.replace("num_workers=6", "num_workers=1"))
    killed, whole = killed_and_whole(script, 17, 23)
    assert killed == whole
    assert (tmp_path / "whole/best.pth").exists()
    assert script.run("whole") == 0  # done already
    assert script.end("whole") == whole


def test_accumulated_gradients_are_killed_and_go_on(tmp_path: Path) -> None:
    """13 batches, so an epoch's last window is of one; it is closed in a resumed epoch, too."""
    before_loop = blocks(DATASET)[1].split("for epoch")[0]
    code = HEAD + before_loop.replace("batch_size=64, num_workers=6", "batch_size=8")
    code += "from boxcar.training import GradientAccumulator\n" + blocks(ACCUMULATED)[0] + TAIL
    script = Script(tmp_path, code)
    killed, whole = killed_and_whole(script, 6, 7)
    assert killed == whole


@pytest.mark.faults
def test_the_iteration_loop_trains_as_it_did_before(tmp_path: Path) -> None:
    """Draws and steps are the same, so all weights are, to the bit."""
    both = zip("ab", blocks(ITERATIONS), strict=True)
    before, after = (Script(tmp_path / name, HEAD + GPT + code + TAIL) for name, code in both)
    for script in (before, after):
        assert script.run("out") == 0, script.log("out")
    assert before.end("out") == after.end("out")


@pytest.mark.faults
def test_two_ranks_are_killed_and_go_on_to_the_bit(tmp_path: Path) -> None:
    code = HEAD + blocks(DATASET)[1].replace("batch_size=64, num_workers=6", "batch_size=8") + TAIL
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    script = Script(tmp_path, code, [*torchrun, f"--master-port={free_port()}"])
    assert script.run("whole") == 0, script.log("whole")
    assert script.run("killed", "17:KILL") == 1, script.log("killed")
    assert script.run("killed") == 0, script.log("killed")
    assert script.end("killed") == script.end("whole")

"""The examples of docs/training.md, run as scripts: what the page shows is what the tests run.

What a block takes for granted (Net, data, args) stands before it, and what is printed in the end
behind it. `DIE_AT=17:KILL` sends the script that signal when it reports step 17.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/training.md"

HEAD = """
import argparse, hashlib, os, signal, sys
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
import boxcar.training.progress as _progress

out = out_dir = os.environ["BOXCAR_OUT"]
args = argparse.Namespace(out=out, epochs=3)
device = "cpu"
_report, _die = _progress.report, os.environ.get("DIE_AT", "-1:KILL").split(":")

def _reported(*, step, **values):
    _report(step=step, **values)
    if step == int(_die[0]) and os.environ.get("RANK", "0") == "0":
        os.kill(os.getpid(), getattr(signal, "SIG" + _die[1]))

_progress.report = _reported

class Noisy(Dataset):
    "A line with noise that is drawn anew for each sample."
    def __len__(self):
        return 100
    def __getitem__(self, index):
        inputs = torch.full((4,), index / 100) + 0.1 * torch.randn(4)
        return inputs, inputs.sum().reshape(1)

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 1))

data = Noisy()
torch.manual_seed(0)

def validate(model):
    return 0.0
"""
TAIL = """
import json
_model = locals().get("model")
_model = getattr(_model, "module", _model)
_sum = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in _model.parameters()))
if os.environ.get("RANK", "0") == "0":
    open(os.path.join(out, "end.json"), "w").write(json.dumps({"weights": _sum.hexdigest()}))
"""


def blocks(heading: str) -> list[str]:
    """The Python blocks below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n### {heading}\n", 1)[1]
    return re.findall(r"```python\n(.*?)```", re.split(r"\n##+ ", text)[0], re.DOTALL)


@dataclass
class Script:
    """One block as a program in a folder of its own."""

    folder: Path
    code: str
    words: list[str] = field(default_factory=lambda: [sys.executable])

    def run(self, out: str, die_at: str = "-1:KILL") -> int:
        """Its exit code; what it prints is in `out`.log."""
        place = self.folder / out
        place.mkdir(parents=True, exist_ok=True)
        script = self.folder / "train.py"
        script.write_text(self.code)
        env = {**os.environ, "BOXCAR_OUT": str(place), "DIE_AT": die_at, "OMP_NUM_THREADS": "1"}
        env |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        with (self.folder / f"{out}.log").open("a") as log:
            words = [*self.words, str(script)]
            done = subprocess.run(
                words, env=env, stdout=log, stderr=log, cwd=self.folder, check=False
            )
        return done.returncode

    def end(self, out: str) -> Any:
        """What its last lines wrote of the weights."""
        return (self.folder / out / "end.json").read_text()

    def log(self, out: str) -> str:
        return (self.folder / f"{out}.log").read_text()


def killed_and_whole(script: Script, killed_at: int, stopped_at: int) -> tuple[str, str]:
    """The weights of a run that was killed and stopped on its way, and of one that was not."""
    assert script.run("whole") == 0, script.log("whole")
    assert script.run("killed", f"{killed_at}:KILL") == -signal.SIGKILL, script.log("killed")
    assert script.run("killed", f"{stopped_at}:TERM") == 85, script.log("killed")
    assert script.run("killed") == 0, script.log("killed")
    return script.end("killed"), script.end("whole")

"""Trainings of two ranks that end well, each rank with its interpreter's own exit: are any aborted?

    .venv/bin/python tests/training/exit_storm.py 1000 ends.txt [plain] [fresh]

adds lines to ends.txt until it has as many as asked for, so that it may be ended at any time and
goes on from there. A rank is forked from a process that has torch loaded; from there on it is a
process as any other, whose `main` returns. With `fresh` each is an interpreter that is started
anew, which takes some seconds.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.path.insert(0, str(Path(__file__).parent))

import forked
import forked_script
from ranks_at_work import PRELOADED, free_port
from waiting import LIMIT_S

_HEAD = """\
import sys
import torch
from torch import nn
"""
WITH_LAYER = f"""{_HEAD}
from boxcar.training import Checkpointer, DDPWrapper, DistributedConfig, TrainingState, ranks

config = DistributedConfig(backend="gloo")
ranks.join(config)
model = DDPWrapper(nn.Linear(64, 64), config).setup()
optimizer = torch.optim.AdamW(model.parameters())
state = TrainingState(model=model, optimizer=optimizer)
checkpointer = Checkpointer(sys.argv[1], state)
for _ in range(5):
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    state.step += 1
checkpointer.save()
ranks.leave()
"""
PLAIN = f"""{_HEAD}
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(64, 64))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
RANKS = 2
HANGS_S = LIMIT_S / 10
_AS_SERVER = "--fork"


class _Rank(forked.Forked[str]):
    SERVER = (sys.executable, __file__, _AS_SERVER)


def ends(
    script: str, count: int, kept: Path, start: type[subprocess.Popen[str]] = _Rank
) -> Counter[str]:
    """How that many trainings ended; what is in `kept` counts, and what ends is added to it."""
    kept.touch()
    with kept.open("a", encoding="utf-8") as file:
        for _ in range(count - len(kept.read_text("utf-8").splitlines())):
            file.write(f"{_one(script, start)}\n")
            file.flush()
    return Counter(kept.read_text("utf-8").splitlines()[:count])


def _one(script: str, start: type[subprocess.Popen[str]]) -> str:
    """`ended`, or how a rank went down."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(script, encoding="utf-8")
        port = free_port()
        them = [_start(folder, rank, port, start) for rank in range(RANKS)]
        codes = [_end_of(one) for one in them]
        said = "".join((folder / f"{rank}.log").read_text("utf-8") for rank in range(RANKS))
    return "ended" if not any(codes) else _how(codes, said)


def _end_of(rank: subprocess.Popen[str]) -> int:
    """A rank that torch left hanging in its exit is killed, and counts as that."""
    try:
        return rank.wait(timeout=HANGS_S)
    except subprocess.TimeoutExpired:
        rank.kill()
        return rank.wait()


def _how(codes: list[int], said: str) -> str:
    names = [signal.Signals(-code).name if code < 0 else str(code) for code in codes]
    return f"{'+'.join(names)}: {' '.join(said.split())[-600:]}"


def _start(
    folder: Path, rank: int, port: int, start: type[subprocess.Popen[str]]
) -> subprocess.Popen[str]:
    words = [sys.executable, str(folder / "train.py"), str(folder / "out")]
    with (folder / f"{rank}.log").open("w", encoding="utf-8") as log:
        env = _environment(rank, port)
        return start(words, cwd=folder, env=env, stdout=log, stderr=log, text=True)


def _environment(rank: int, port: int) -> Mapping[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _fork_ranks() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded
    for name in (*forked_script.LOADED, *PRELOADED):
        importlib.import_module(name)
    forked.serve(forked_script.become)


if __name__ == "__main__" and _AS_SERVER in sys.argv:
    _fork_ranks()
elif __name__ == "__main__":
    which = PLAIN if "plain" in sys.argv[3:] else WITH_LAYER
    how = subprocess.Popen if "fresh" in sys.argv[3:] else _Rank
    found = ends(which, int(sys.argv[1]), Path(sys.argv[2]), how)
    print(*(f"{number} {end}" for end, number in found.most_common()), sep="\n")

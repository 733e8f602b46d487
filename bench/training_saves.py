"""How long a save holds up the training, written now and in a thread.

One rank with one file, and two with a part of the state each (FSDP). Saves take turns in the same
process, beside torch.save with fsync. Steps that run while a file is written are timed too.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import by_accelerate
from bench.on_ranks import on_ranks
from bench.row import Row, no_value

# Weights and AdamW's two moments: three times 4 bytes for each.
LAYERS, WIDTH = 8, 1664
STATE_MIB = 3 * 4 * LAYERS * WIDTH * WIDTH / 2**20
TURNS = 5


def measure(folder: Path) -> list[Row]:
    one = on_ranks(folder, 1, saves, str(folder / "one"), "single")
    two = on_ranks(folder, 2, saves, str(folder / "two"), "fsdp")
    return [
        *_rows("one file", one),
        _beside_by_hand("one file", one["save"], one["by hand"]),
        _beside_accelerate(one),
        Row(
            "a step while it is written", 1e3 * one["step beside"], "ms", 1e3 * one["step"], "alone"
        ),
        *_rows("2 ranks, sharded", two),
        _beside_by_hand("2 ranks, sharded", two["save"], two["by hand"]),
    ]


def _beside_by_hand(name: str, value_s: float, by_hand_s: float) -> Row:
    what, peer = f"save(), {name}, {STATE_MIB:.0f} MiB", "torch.save, fsync"
    return Row(what, value_s, "s", by_hand_s, peer, most_ratio=1.1)


def _beside_accelerate(found: dict[str, float]) -> Row:
    what = f"save(), one file, {STATE_MIB:.0f} MiB"
    if by_accelerate.NAME not in found:
        return no_value(f"{what}, by accelerate", by_accelerate.MISSING)
    return Row(what, found["save"], "s", found[by_accelerate.NAME], "accelerate, fsync")


def _rows(name: str, found: dict[str, float]) -> list[Row]:
    what = f"a step's stall by save_async, {name}, {STATE_MIB:.0f} MiB"
    percent = 100 * found["save_async"] / found["save"]
    return [
        Row(f"behind a save in a thread, {name}", found["behind save"], "s", found["save"], "save"),
        Row(what, 1e3 * found["save_async"], "ms", 1e3 * found["save"], "save"),
        Row("of the blocking save", percent, "%", 10, "limit"),
    ]


def saves(folder: str, strategy: str) -> dict[str, float]:
    """Medians, in seconds, of what a save or a step took on rank 0."""
    step, model, optimizer = _training(strategy)
    from boxcar.training import Checkpointer, TrainingState

    state = TrainingState(model=model, optimizer=optimizer)

    checkpointer = Checkpointer(folder, state, is_sharded=strategy == "fsdp")
    checkpointer.load_latest()
    took: dict[str, list[float]] = {}
    by_hand = Path(folder, f"by_hand_{os.environ['RANK']}.pth")
    others = Path(folder, "by_accelerate")
    ways = {
        "save": checkpointer.save,
        "save_async": checkpointer.save_async,
        "by hand": lambda: _by_hand(by_hand, state),
    }
    if strategy == "single" and by_accelerate.is_there():
        save_there = by_accelerate.saver(model, optimizer)
        ways[by_accelerate.NAME] = lambda: save_there(others)
    for turn in range(TURNS + 1):
        # Whoever comes after a large write waits for the disk: each does in its turn.
        shift = turn % len(ways)
        for name, save in [*ways.items()][shift:] + [*ways.items()][:shift]:
            # Every second checkpoint is read back before an older one goes: both kinds count.
            for _ in range(2):
                _timed(took, "step", step)
                state.step += 1
                # What was removed and written before is not waited for.
                os.sync()
                _timed(took, name, save)
                if name == "save_async":
                    _timed(took, "step beside", step)
                # Each way is measured alone: what a save does behind it disturbs no other.
                _timed(took, f"behind {name}", checkpointer.wait)
                by_hand.unlink(missing_ok=True)
                shutil.rmtree(others, ignore_errors=True)
    # The first ones make buffers, folders and groups.
    return {name: _median_of_pairs(values[2:]) for name, values in took.items()}


def _median_of_pairs(values: list[float]) -> float:
    pairs = zip(values[::2], values[1::2], strict=True)
    return statistics.median(map(statistics.mean, pairs))


def _timed(took: dict[str, list[float]], name: str, work: Callable[[], Any]) -> None:
    _together()
    began = time.perf_counter()
    work()
    _together()
    took.setdefault(name, []).append(time.perf_counter() - began)


def _together() -> None:
    """A save that one rank still waits for holds up all of them."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.barrier()


def _by_hand(path: Path, state: Any) -> None:
    """What people write: not whole or nothing, but on the disk. Of shards, each rank its own."""
    import torch

    from boxcar.training.checkpoint.checkpoint_file import tensors

    own = [t.to_local() if hasattr(t, "placements") else t for t in tensors(state.state_dict())]
    with path.open("wb") as file:
        torch.save(own, file)
        file.flush()
        os.fsync(file.fileno())


def _training(strategy: str) -> tuple[Callable[[], None], Any, Any]:
    """A step, the model and its optimizer."""
    import torch
    from torch import nn

    from boxcar.training import DDPWrapper, DistributedConfig, FSDPWrapper
    from boxcar.training.ranks import ranks

    torch.set_num_threads(1)
    config = DistributedConfig(strategy=strategy)
    me = ranks.join(config)
    model: Any = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])
    wrapper = FSDPWrapper if strategy == "fsdp" else DDPWrapper
    model = wrapper(model, config).setup(me.rank, me.world)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs = torch.randn(64, WIDTH)

    def step() -> None:
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    return step, model, optimizer

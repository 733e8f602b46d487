"""What the training layer adds to a step on a GPU, beside the same loop by hand.

The GPU has more to do than the host, as in most trainings: what the host does beside it costs
nothing, and whatever waits for the GPU costs all that the host could have done meanwhile. The loops
take turns in one process, some steps each. A second loop by hand ("nothing") says how much of a
difference is chance, and one that reads its loss after each step what most scripts pay already.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.row import Row, no_value
from bench.training_loops import FEATURES, PARTS, after_each_step, batches_of, step_of

# Some 5 ms of an H100 in fp32, beside which the host has two thirds of a step to spare.
WIDTH, LAYERS, BATCH = 2048, 6, 32
TURNS, TURN_STEPS = 30, 10
RARE = 'all of it, check_finite="every 10"'
# Of a step of 4.9 ms.
MOST_OF_STEP = {"all of it": 0.05, RARE: 0.01}


def measure(folder: Path) -> list[Row]:
    import torch

    if not torch.cuda.is_available():
        return [no_value("a step on a GPU", "torch sees no GPU here")]
    return rows(folder, "cuda")


def rows(folder: Path, device: str, *, is_small: bool = False) -> list[Row]:
    """On "cuda", or, to try this, on the "cpu"."""
    os.environ["BOXCAR_OUT"] = str(folder)
    sides = {"by hand": (), "nothing": (), **{part: (part,) for part in PARTS}, "all of it": PARTS}
    kind = {"device": device, "width": 32 if is_small else WIDTH}
    loops = {name: _loop(parts, **kind) for name, parts in sides.items()}
    loops["loss.item() by hand"] = _loop((), reads_loss=True, **kind)
    loops[RARE] = _loop(PARTS, check_finite="every 10", **kind)
    took_us = _in_turns(loops, device, TURNS // 10 if is_small else TURNS)
    by_hand_us = took_us.pop("by hand")
    found = [Row(f"a step by hand, {device}", by_hand_us, "us")]
    for name, us in took_us.items():
        beside = (by_hand_us, "the step")
        what, most = f"{name}, {device}", MOST_OF_STEP.get(name)
        found.append(Row(what, us - by_hand_us, "us", *beside, most_ratio=most))
    return found


def _in_turns(loops: dict[str, Iterator[None]], device: str, turns: int) -> dict[str, float]:
    """Medians of a step, in microseconds, until the GPU has done it; who follows whom changes."""
    import torch

    took_s: dict[str, list[float]] = {name: [] for name in loops}
    for loop in loops.values():
        next(loop)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for turn in range(turns):
        for name in random.Random(turn).sample(list(loops), len(loops)):
            next(loops[name])
            wait()
            began_s = time.perf_counter()
            for _ in range(TURN_STEPS):
                next(loops[name])
            wait()
            took_s[name].append((time.perf_counter() - began_s) / TURN_STEPS)
    return {name: 1e6 * statistics.median(each) for name, each in took_s.items()}


def _loop(
    parts: tuple[str, ...],
    *,
    device: str,
    width: int,
    reads_loss: bool = False,
    check_finite: str = "every step",
) -> Iterator[None]:
    """A loop that stops after each step; what `parts` does not name is written by hand."""
    import torch

    from boxcar.training import DDPWrapper, DistributedConfig

    model = _model(width)
    if "wrapper" in parts:
        model = DDPWrapper(model, DistributedConfig()).setup()
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    step = step_of(parts, model, optimizer, 1.0, check_finite)
    after = after_each_step(parts)
    for number, (inputs, targets) in enumerate(batches_of(parts, BATCH)):
        loss = step(number, inputs.to(device), targets.to(device))
        for call in after:
            call(number, loss)
        if reads_loss:
            loss.item()
        yield


def _model(width: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    hidden = [layer for _ in range(LAYERS) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(FEATURES, width), *hidden, nn.Linear(width, FEATURES))

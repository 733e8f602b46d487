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
from bench.training import MOST_SHARE, STEP_US
from bench.training_loops import FEATURES, PARTS, after_each_step, batches_of, step_of

# Some 5 ms of an H100 in fp32, beside which the host has two thirds of a step to spare.
WIDTH, LAYERS, BATCH = 2048, 6, 32
TURNS, TURN_STEPS = 30, 10


def measure(folder: Path) -> list[Row]:
    import torch

    if not torch.cuda.is_available():
        return [no_value("a step on a GPU", "torch sees no GPU here")]
    os.environ["BOXCAR_OUT"] = str(folder)
    sides = {"by hand": (), "nothing": (), **{part: (part,) for part in PARTS}, "all of it": PARTS}
    loops = {name: _loop(parts) for name, parts in sides.items()}
    loops["loss.item() by hand"] = _loop((), reads_loss=True)
    took_us = _in_turns(loops)
    by_hand_us = took_us.pop("by hand")
    all_us = took_us.pop("all of it") - by_hand_us
    limit = (STEP_US * MOST_SHARE, f"{MOST_SHARE:.0%} of 3 ms")
    return [
        Row(f"a step by hand, {torch.cuda.get_device_name()}", by_hand_us, "us"),
        *(
            Row(f"{name}, on a GPU", us - by_hand_us, "us", by_hand_us, "the step")
            for name, us in took_us.items()
        ),
        Row("all of it, on a GPU", all_us, "us", *limit, most_ratio=1),
    ]


def _in_turns(loops: dict[str, Iterator[None]]) -> dict[str, float]:
    """Medians of a step, in microseconds, until the GPU has done it; who follows whom changes."""
    import torch

    took_s: dict[str, list[float]] = {name: [] for name in loops}
    for loop in loops.values():
        next(loop)
    for turn in range(TURNS):
        for name in random.Random(turn).sample(list(loops), len(loops)):
            next(loops[name])
            torch.cuda.synchronize()
            began_s = time.perf_counter()
            for _ in range(TURN_STEPS):
                next(loops[name])
            torch.cuda.synchronize()
            took_s[name].append((time.perf_counter() - began_s) / TURN_STEPS)
    return {name: 1e6 * statistics.median(each) for name, each in took_s.items()}


def _loop(parts: tuple[str, ...], *, reads_loss: bool = False) -> Iterator[None]:
    """A loop that stops after each step; what `parts` does not name is written by hand."""
    import torch

    from boxcar.training import DDPWrapper, DistributedConfig

    model = _model()
    if "wrapper" in parts:
        model = DDPWrapper(model, DistributedConfig()).setup()
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    step, after = step_of(parts, model, optimizer, 1.0), after_each_step(parts)
    for number, (inputs, targets) in enumerate(batches_of(parts, BATCH)):
        loss = step(number, inputs.cuda(), targets.cuda())
        for call in after:
            call(number, loss)
        if reads_loss:
            loss.item()
        yield


def _model() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    hidden = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(nn.Linear(FEATURES, WIDTH), *hidden, nn.Linear(WIDTH, FEATURES))

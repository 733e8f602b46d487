"""What the training layer adds to a step, beside the same loop by hand, on one and two ranks.

Gloo on the CPU, and a narrow model whose step is short: the microseconds that a step on a GPU would
notice. The loops take turns in the same processes, some steps each, so that a machine that others
use is as slow for the one as for the other. Quartiles are compared, because what disturbs a step
only adds to it, and a second loop by hand ("nothing") says how much of a difference is chance.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench import by_accelerate
from bench.on_ranks import on_ranks
from bench.row import Row, no_value
from bench.training_loops import NARROW, NARROW_BATCH, PARTS, join, loop

TURN_STEPS, TURNS, LAYERS, CLIP_NORM = 3, 100, 1, 1.0
# A short step on a GPU, of which the whole layer may take a twenty-fifth.
STEP_US, MOST_SHARE = 3000, 0.04
# Wide enough for a step to be work: on how many ranks is it as fast?
WIDE, WIDE_BATCH, WIDE_STEPS = 128, 8, 40

# Of each step: on the clock, of the main thread on the CPU, and of all threads on the CPU.
CLOCKS = {"wall": time.perf_counter, "main": time.thread_time, "cpu": time.process_time}
Times = dict[str, dict[str, list[float]]]


def measure(folder: Path) -> list[Row]:
    rows = []
    for world, of in ((1, "1 rank"), (2, "2 ranks")):
        rows += _rows(of, on_ranks(folder, world, compare_parts))
    alone_s, of_two_s = (on_ranks(folder, world, wide_step_s) for world in (1, 2))
    what = "scaling: samples/s of each of 2 ranks, the same batch for each"
    return [*rows, Row(what, WIDE_BATCH / of_two_s, "1/s", WIDE_BATCH / alone_s, "1 rank")]


def _rows(of: str, times: Times) -> list[Row]:
    by_hand, beside = times.pop("by hand"), times.pop(by_accelerate.NAME, None)
    rows = [Row(f"a narrow step by hand, {of}", 1e6 * statistics.median(by_hand["wall"]), "us")]
    for name, found in times.items():
        wall_us, main_us, all_us = (1e6 * _added_s(found, by_hand, clock) for clock in CLOCKS)
        what = f"{name}, {of}"
        if name == "all of it":
            share = (STEP_US * MOST_SHARE, f"{MOST_SHARE:.0%} of 3 ms")
            rows += [
                Row(f"{what}, main thread's CPU", main_us, "us", *share, most_ratio=1),
                Row(f"{what}, on the clock", wall_us, "us", *share, most_ratio=1),
            ]
            if beside:
                peer = 1e6 * _added_s(beside, by_hand, "main"), f"{by_accelerate.NAME}'s loop"
                rows.append(Row(f"{what}, main thread's CPU", main_us, "us", *peer))
        else:
            rows.append(Row(f"{what}, main thread's CPU", main_us, "us"))
            rows.append(Row(f"{what}, CPU of all threads", all_us, "us"))
    if beside is None:
        rows.append(no_value(f"a step by accelerate, {of}", by_accelerate.MISSING))
    return rows


def _added_s(ours: dict[str, list[float]], by_hand: dict[str, list[float]], clock: str) -> float:
    quartile, other = (statistics.quantiles(steps[clock])[0] for steps in (ours, by_hand))
    return quartile - other


# --- what the ranks do


def compare_parts() -> Times:
    """Seconds of each step, with each part of the layer alone and with all of them."""
    join(PARTS)
    sides = {"by hand": (), "nothing": (), **{part: (part,) for part in PARTS}, "all of it": PARTS}
    loops = {
        name: loop("ddp", parts, NARROW, NARROW_BATCH, CLIP_NORM, layers=LAYERS)
        for name, parts in sides.items()
    }
    if by_accelerate.is_there():
        beside = by_accelerate.loop(NARROW, NARROW_BATCH, CLIP_NORM, layers=LAYERS)
        loops[by_accelerate.NAME] = beside
    return _in_turns(loops, TURNS)


def wide_step_s() -> float:
    """A step of the whole layer, its gradients exchanged, in seconds."""
    join(PARTS)
    steps = loop("ddp", PARTS, WIDE, WIDE_BATCH, CLIP_NORM, layers=LAYERS)
    took = []
    for _ in range(WIDE_STEPS):
        began = time.perf_counter()
        next(steps)
        took.append(time.perf_counter() - began)
    return statistics.median(took[5:])


def _in_turns(sides: dict[str, Iterator[None]], turns: int) -> Times:
    """Seconds of each step; who follows whom changes from turn to turn, alike on all ranks."""
    import torch.distributed as dist

    found: Times = {name: {clock: [] for clock in CLOCKS} for name in sides}
    names = list(sides)
    for side in sides.values():
        next(side)
    for turn in range(turns):
        for name in random.Random(turn).sample(names, len(names)):
            if dist.is_initialized():
                dist.barrier()
            # The other side's caches, and messages that are still on their way.
            next(sides[name])
            for _ in range(TURN_STEPS):
                began = [clock() for clock in CLOCKS.values()]
                next(sides[name])
                took = [clock() - at for clock, at in zip(CLOCKS.values(), began, strict=True)]
                for clock, seconds in zip(CLOCKS, took, strict=True):
                    found[name][clock].append(seconds)
    return found

"""What the training layer costs a step beside the same loop written by hand, and what memory.

Two gloo ranks on the CPU. The loops take turns in the same processes, some steps each, so that a
machine that others use is as slow for the one as for the other; steps of one turn are compared with
those of the same turn. Each part of the layer alone is measured on a narrow model with as many
layers: the microseconds that a step on a GPU would notice.

And the losses of 200 steps, two ranks beside one, in float64, where rounding is too small to grow,
and in float32, beside one rank that adds up the same halves.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.row import Row
from bench.training_loops import PARTS, WORLD, data, import_all, join, loop, loss_of, wrapped
from boxcar.shared.disk import atomic

# A step takes 50 to 100 ms on two cores of 3 GHz, and a narrow one a tenth of that.
WIDTH, BATCH, NARROW, NARROW_BATCH = 256, 6, 16, 4
TURN_STEPS, TURNS, NARROW_TURNS = 6, 8, 40
EQUAL_STEPS, EQUAL_BATCH = 200, 16
MIB = 1024 * 1024
_TIMEOUT_S = 600

# Of each step: on the clock, of the main thread on the CPU, and of all threads on the CPU.
CLOCKS = {"wall": time.perf_counter, "main": time.thread_time, "cpu": time.process_time}
_CLOCK_NAMES = {"wall": "on the clock", "cpu": "CPU of all threads"}
Times = dict[str, dict[str, list[float]]]


def measure(folder: Path) -> list[Row]:
    rows = []
    for strategy in ("ddp", "fsdp"):
        rows += _step_rows(strategy, on_ranks(folder, WORLD, compare_loops, strategy))
    rows += _part_rows(on_ranks(folder, WORLD, compare_parts))
    rows += _equality_rows(folder)
    return rows + _memory_rows(folder)


def _step_rows(strategy: str, times: Times) -> list[Row]:
    rows = []
    for clip in ("", ", clipped"):
        ours, by_hand = times[f"layer{clip}"], times[f"by hand{clip}"]
        step_s, hand_s = statistics.median(ours["wall"]), statistics.median(by_hand["wall"])
        name = f"{strategy}{clip}"
        rows.append(Row(f"a step, {name}", 1e3 * step_s, "ms", 1e3 * hand_s, "by hand"))
        for clock in ("wall", "cpu"):
            added_us = 1e6 * _added_s(ours, by_hand, clock)
            limit_us = 1e6 * 0.01 * statistics.median(by_hand[clock])
            what = f"the layer adds, {name}, {_CLOCK_NAMES[clock]}"
            rows.append(Row(what, added_us, "us", limit_us, "1 %"))
    return rows


def _part_rows(times: Times) -> list[Row]:
    by_hand = times.pop("by hand")
    rows = []
    for name, found in times.items():
        main_s, cpu_s = (_added_s(found, by_hand, clock) for clock in ("main", "cpu"))
        what = f"{name} adds to a narrow step, main thread"
        rows.append(Row(what, 1e6 * main_s, "us", 1e6 * cpu_s, "all threads"))
    return rows


def _added_s(ours: dict[str, list[float]], by_hand: dict[str, list[float]], clock: str) -> float:
    """Between steps of one turn: what slows both does not count."""
    pairs = zip(ours[clock], by_hand[clock], strict=True)
    return statistics.median(one - other for one, other in pairs)


def _equality_rows(folder: Path) -> list[Row]:
    whole = on_ranks(folder, 1, losses, "single")
    halves = _apart(on_ranks(folder, 1, losses, "single", WORLD), whole)
    rows = []
    for strategy in ("ddp", "fsdp"):
        apart = _apart(on_ranks(folder, WORLD, losses, strategy), whole)
        what = f"a loss, {strategy}, {WORLD} ranks to 1, furthest apart"
        rows += [
            Row(f"{what}, float64", apart["float64"], "relative", 1e-12, "limit"),
            Row(
                f"{what}, float32",
                apart["float32"],
                "relative",
                halves["float32"],
                "1 rank, halves",
            ),
        ]
    return rows


def _apart(these: dict[str, list[float]], those: dict[str, list[float]]) -> dict[str, float]:
    return {
        dtype: max(abs(a - b) / abs(b) for a, b in zip(these[dtype], those[dtype], strict=True))
        for dtype in those
    }


def _memory_rows(folder: Path) -> list[Row]:
    layer, by_hand = (on_ranks(folder, WORLD, memory, parts) for parts in (PARTS, ()))
    return [
        Row(f"memory of a rank, {at}", layer[at] / MIB, "MiB", by_hand[at] / MIB, "by hand")
        for at in by_hand
    ]


# --- ranks


def on_ranks(folder: Path, world: int, body: Callable[..., Any], *args: Any) -> Any:
    """What `body(*args)` gave on rank 0 (JSON), in new processes with torchrun's variables."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    call = json.dumps([body.__module__, body.__name__, args])
    command = [sys.executable, "-c", "from bench import training; training.be_a_rank()", call]
    both = [
        subprocess.Popen(command, env=_environment(folder, rank, world, port))
        for rank in range(world)
    ]
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    try:
        codes = [one.wait(_TIMEOUT_S) for one in both]
    finally:
        for one in both:
            one.kill()
    # torch may abort a rank at its end, when all is done: what counts is what was written.
    if not result.exists():
        raise RuntimeError(f"a rank of the bench failed: exit codes {codes}; its error is above")
    return json.loads(result.read_text())


def _environment(folder: Path, rank: int, world: int, port: int) -> dict[str, str]:
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    own = {name: str(number) for name, number in numbers.items()}
    own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, "BOXCAR_OUT": str(folder), "CUDA_VISIBLE_DEVICES": ""}


def be_a_rank() -> None:
    """One of the processes that `on_ranks` starts."""
    module, name, args = json.loads(sys.argv[1])
    result = getattr(importlib.import_module(module), name)(*args)
    if "boxcar.training.ranks" in sys.modules:
        sys.modules["boxcar.training.ranks"].leave()
    if os.environ["RANK"] == "0":
        atomic.write_whole(
            Path(os.environ["BOXCAR_OUT"], "result.json"), json.dumps(result).encode()
        )


# --- what the ranks do


def compare_loops(strategy: str) -> Times:
    """Seconds of each step: the whole layer and by hand, without and with clipping."""
    join(PARTS)
    sides = {
        f"{name}{clip}": loop(strategy, parts, WIDTH, BATCH, clip_norm)
        for clip, clip_norm in (("", None), (", clipped", 1.0))
        for name, parts in (("layer", PARTS), ("by hand", ()))
    }
    return _in_turns(sides, TURNS)


def compare_parts() -> Times:
    """Seconds of each step, with each part of the layer alone."""
    join(PARTS)
    # A second loop by hand says how much of a difference is chance.
    sides = {"by hand": (), "nothing": (), **{part: (part,) for part in PARTS}, "all of it": PARTS}
    loops = {name: loop("ddp", parts, NARROW, NARROW_BATCH, 1.0) for name, parts in sides.items()}
    return _in_turns(loops, NARROW_TURNS)


def losses(strategy: str, halves: int = 1) -> dict[str, list[float]]:
    """The loss of each optimizer step over the same global batches, however they are divided."""
    join(PARTS)
    return {dtype: _losses(strategy, halves, dtype) for dtype in ("float64", "float32")}


def _losses(strategy: str, halves: int, dtype: str) -> list[float]:
    import torch

    from boxcar.training import GradientAccumulator, RankAwareDataLoader, ranks

    model = wrapped(strategy, PARTS, NARROW, getattr(torch, dtype))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    accumulator, found = GradientAccumulator(halves), []
    batch = EQUAL_BATCH // (ranks.current().world * halves)
    batches = RankAwareDataLoader(data(), batch_size=batch)
    for step, pair in enumerate(itertools.islice(batches, EQUAL_STEPS * halves)):
        inputs, targets = (tensor.to(getattr(torch, dtype)) for tensor in pair)
        with accumulator.micro_step(model, step):
            loss = loss_of(model(inputs), targets)
            accumulator.step(loss, optimizer, step)
        found.append(ranks.all_reduce_metrics({"loss": loss.item()})["loss"])
    return [statistics.mean(found[n : n + halves]) for n in range(0, len(found), halves)]


def memory(parts: list[str]) -> dict[str, int]:
    """Resident bytes of this rank after its imports, and after some steps."""
    import_all(parts)
    found = {"imported": _resident_bytes()}
    join(parts)
    for _ in itertools.islice(loop("ddp", parts, NARROW, NARROW_BATCH, 1.0), 50):
        pass
    return found | {"after 50 steps": _resident_bytes()}


def _in_turns(sides: dict[str, Iterator[None]], turns: int) -> Times:
    """Seconds of each step; who follows whom changes from turn to turn, alike on all ranks."""
    import torch.distributed as dist

    found: Times = {name: {clock: [] for clock in CLOCKS} for name in sides}
    names = list(sides)
    for side in sides.values():
        next(side)
    for turn in range(turns):
        for name in random.Random(turn).sample(names, len(names)):
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


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise KeyError("VmRSS")

"""That ranks change no loss, and what memory the training layer takes.

The losses of 200 steps, two ranks beside one, in float64, where rounding is too small to grow, and
in float32, beside one rank that adds up the same halves.
"""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

from bench.on_ranks import on_ranks
from bench.row import Row
from bench.training_loops import (
    NARROW,
    NARROW_BATCH,
    PARTS,
    WORLD,
    data,
    import_all,
    join,
    loop,
    loss_of,
    wrapped,
)

EQUAL_STEPS, EQUAL_BATCH = 200, 16
MIB = 1024 * 1024


def measure(folder: Path) -> list[Row]:
    return _equality_rows(folder) + _memory_rows(folder)


def _equality_rows(folder: Path) -> list[Row]:
    whole, of_halves = on_ranks(folder, 1, losses, [("single", 1), ("single", WORLD)])
    halves = _apart(of_halves, whole)
    of_ranks = on_ranks(folder, WORLD, losses, [("ddp", 1), ("fsdp", 1)])
    rows = []
    for strategy, found in zip(("ddp", "fsdp"), of_ranks, strict=True):
        apart = _apart(found, whole)
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


def losses(ways: list[tuple[str, int]]) -> list[dict[str, list[float]]]:
    """The loss of each optimizer step over the same global batches, however they are divided: of
    each strategy and number of micro-batches."""
    join(PARTS)
    return [
        {dtype: _losses(strategy, halves, dtype) for dtype in ("float64", "float32")}
        for strategy, halves in ways
    ]


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


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise KeyError("VmRSS")

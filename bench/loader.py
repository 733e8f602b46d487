"""RankAwareDataLoader beside torch's own, on items that cost nothing: CPU of a batch of 32."""

from __future__ import annotations

import importlib.util
import itertools
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import by_accelerate
from bench.row import Row, no_value

BATCH, BATCHES, TURNS, SAMPLES = 32, 60, 9, 100_000
SIDE = 224  # pixels of a picture


def measure(folder: Path) -> list[Row]:
    if not importlib.util.find_spec("torch"):
        return [no_value("a batch of 32", "torch is not installed")]
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from boxcar.training import RankAwareDataLoader

    torch.set_num_threads(1)
    peers: dict[str, Callable[[Any], Any]] = {"torch's DataLoader": _shuffled(DataLoader)}
    if importlib.util.find_spec("torchdata"):
        from torchdata.stateful_dataloader import StatefulDataLoader

        peers["StatefulDataLoader"] = _shuffled(StatefulDataLoader)
    if by_accelerate.is_there():
        peers[by_accelerate.NAME] = lambda data: by_accelerate.loader(data, BATCH)
    ours = {"ours": lambda data: RankAwareDataLoader(data, batch_size=BATCH)}
    rows = []
    tensors = TensorDataset(torch.zeros(SAMPLES, 4))
    for what, data, most_ratio in (
        ("tensors", tensors, 1.1),
        ("a class that says draws_nothing", Still(tensors.tensors[0]), 1.1),
        ("a class that unpacks a picture", Pictures(), 1.1),
        # The price of draws that no worker, rank or kill changes.
        ("a class of numbers, seeded", Trivial(range(SAMPLES)), None),
    ):
        took = _cpu_us({**ours, **peers}, data)
        rows += [
            Row(
                f"a batch of {BATCH}, {what}",
                took["ours"],
                "us",
                took[name],
                name,
                most_ratio=most_ratio,
            )
            for name in peers
        ]
    if "StatefulDataLoader" not in peers:
        why = "torchdata is not installed: `make bench` does that"
        rows.append(no_value("a batch of 32 of StatefulDataLoader", why))
    if by_accelerate.NAME not in peers:
        rows.append(no_value("a batch of 32 of accelerate's loader", by_accelerate.MISSING))
    return rows


def _shuffled(kind: Any) -> Callable[[Any], Any]:
    return lambda data: kind(data, batch_size=BATCH, shuffle=True, drop_last=True)


class Trivial:
    """A dataset of somebody's own."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        return self._items[index]


class Still(Trivial):
    draws_nothing = True


class Pictures:
    """Each is inflated as a PNG's pixels are. It is seeded: nobody says that it draws nothing."""

    def __init__(self) -> None:
        rows = b"".join(bytes((x * y) % 251 for x in range(3 * SIDE)) for y in range(SIDE))
        self._packed = zlib.compress(rows)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        import torch

        pixels = torch.frombuffer(bytearray(zlib.decompress(self._packed)), dtype=torch.uint8)
        return pixels.reshape(SIDE, SIDE, 3).permute(2, 0, 1).float() / 255


def _cpu_us(makers: dict[str, Callable[[Any], Any]], data: Any) -> dict[str, float]:
    batches: dict[str, Iterator[Any]] = {name: iter(make(data)) for name, make in makers.items()}
    took: dict[str, list[float]] = {name: [] for name in makers}
    for turn in range(TURNS + 1):
        for name, one in batches.items():
            began = time.thread_time()
            for _ in itertools.islice(one, BATCHES):
                pass
            if turn:  # the first turn makes orders and buffers
                took[name].append((time.thread_time() - began) / BATCHES * 1e6)
    return {name: statistics.median(values) for name, values in took.items()}

"""A mapped latent cache beside one that lies in each rank's RAM: speed, shared and private memory.

Two ranks with six workers each, in a mount namespace whose /dev/shm has 64 MiB, as a container's.
Both go through the same loader, epoch about epoch in the same processes.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.row import Row

WORLD, WORKERS, BATCH, EPOCHS = 2, 6, 32, 7
SAMPLES, SHAPE = 16 * 1024, (16, 32, 32)
SAMPLE_BYTES = 4 * 16 * 32 * 32
CACHE_BYTES = SAMPLES * SAMPLE_BYTES
MIB = 1024 * 1024
_M_MMAP_THRESHOLD = -3
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 0x4000, 1 << 18


def measure(folder: Path) -> list[Row]:
    # A process of its own: the namespace ends with it.
    found = _in_child(_measure_in_small_shm, folder)
    mapped, preloaded = found["mapped"], found["preloaded"]
    fields = f"{WORLD} ranks, {WORKERS} workers each"
    rows = [
        Row(f"samples, {fields}", mapped["rate"], "1/s", preloaded["rate"], "preloaded in RAM"),
        Row(f"samples, {WORLD} ranks, no workers", *_alone(mapped, preloaded)),
        _memory_row("private and shared memory of one more rank", mapped, found["nothing"]),
        _memory_row("the same, preloaded", preloaded, found["nothing"]),
    ]
    if found["is_small"]:
        rows.append(Row("peak of /dev/shm", found["shm_bytes"] / MIB, "MiB", 16, "limit"))
    return rows


def _alone(mapped: dict[str, float], preloaded: dict[str, float]) -> tuple[Any, ...]:
    return mapped["alone_rate"], "1/s", preloaded["alone_rate"], "preloaded in RAM"


def _memory_row(what: str, with_it: dict[str, float], without: dict[str, float]) -> Row:
    """Above the same training on samples that are made of nothing: torch and batches cost too."""
    grown_bytes = with_it["memory_bytes"] - without["memory_bytes"]
    return Row(what, grown_bytes / MIB, "MiB", 0.05 * CACHE_BYTES / MIB, "5 % of the cache")


def _measure_in_small_shm(folder: Path) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    os.environ["BOXCAR_OUT"] = str(folder)
    is_small = _mount_small_shm()
    # Apart: what filling leaves in a heap, every rank that is forked from it would have too.
    _in_child(lambda place: bool(_filled(place)), folder)
    found: dict[str, Any] = {"is_small": is_small, "shm_bytes": 0}
    found |= _on_ranks(found, _speeds, folder)
    for name in ("mapped", "preloaded", "nothing"):
        found.setdefault(name, {})["memory_bytes"] = _on_ranks(found, _memory, folder, name)
    return found


def _on_ranks(found: dict[str, Any], body: Callable[..., Any], *args: Any) -> Any:
    """What rank 0 gives; the peak of /dev/shm meanwhile goes into `found`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    both = [
        context.Process(target=_be_a_rank, args=(rank, port, theirs, body, args))
        for rank in range(WORLD)
    ]
    for one in both:
        one.start()
    while any(one.is_alive() for one in both):
        if any(one.exitcode for one in both):
            raise RuntimeError("a rank of the bench failed")
        disk = os.statvfs("/dev/shm")
        used_bytes = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        found["shm_bytes"] = max(found["shm_bytes"], used_bytes)
        time.sleep(0.005)
    return ours.recv()


def _be_a_rank(
    rank: int, port: int, answer: Connection, body: Callable[..., Any], args: Sequence[Any]
) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_PORT": str(port)}
    os.environ |= {"WORLD_SIZE": str(WORLD), "LOCAL_WORLD_SIZE": str(WORLD)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1"}
    from boxcar.training.ranks import ranks

    ranks.join()
    result = body(*args)
    if rank == 0:
        answer.send(result)
    ranks.leave()


# --- what the ranks do


def _speeds(folder: Path) -> dict[str, dict[str, float]]:
    """Samples per second of both ranks together, median over epochs that alternate."""
    data = {name: _dataset(name, folder) for name in ("mapped", "preloaded")}
    rates: dict[str, dict[str, float]] = {name: {} for name in data}
    for key, workers, epochs in (("rate", WORKERS, EPOCHS), ("alone_rate", 0, EPOCHS)):
        loaders = {name: _loader(value, workers) for name, value in data.items()}
        seconds: dict[str, list[float]] = {name: [] for name in data}
        for epoch in range(epochs + 1):
            for name, loader in loaders.items():
                took_s = _epoch_s(loader)
                if epoch:  # in the first one the workers start
                    seconds[name].append(took_s)
        for name, values in seconds.items():
            rates[name][key] = SAMPLES / statistics.median(values)
        for loader in loaders.values():
            loader.close()
    return rates


def _memory(folder: Path, name: str) -> float:
    """Private and shared bytes of this rank and its workers, after an epoch, mean over ranks.

    Pss, which divides a page by those who have it: a forked worker's pages are its parent's; and
    the page tables, which grow with what is mapped. Pages of the mapped files are left out: they
    are the page cache's, there once for everybody, and are given back when somebody needs the room.
    """
    from boxcar.training.ranks import ranks

    # Freed batches go back to the system: what malloc keeps of them differs from run to run.
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 64 * 1024)
    # A full collection writes into every object that was forked, 35 MiB of torch's in each process.
    gc.freeze()
    loader = _loader(_dataset(name, folder), WORKERS)
    _epoch_s(loader)
    mine = float(sum(_own_bytes(pid) for pid in _family()))
    return ranks.all_reduce_metrics({"memory": mine})["memory"]


def _loader(data: Any, workers: int) -> Any:
    from boxcar.training import RankAwareDataLoader

    return RankAwareDataLoader(data, batch_size=BATCH, num_workers=workers)


def _epoch_s(loader: Any) -> float:
    """The time until the slower rank is through."""
    import torch.distributed as dist

    dist.barrier()
    began = time.monotonic()
    for _ in loader:
        pass
    dist.barrier()
    return time.monotonic() - began


def _family() -> list[int]:
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return [me, *map(int, children)]


def _own_bytes(pid: int) -> int:
    total = 0
    for name in ("smaps_rollup", "status"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:", "VmPTE:")):
                total += int(line.split()[1]) * 1024
    return total


# --- the data


def _dataset(name: str, folder: Path) -> Any:
    if name == "mapped":
        return _filled(folder)
    return InRam(_filled(folder)) if name == "preloaded" else Nothing()


def _filled(folder: Path) -> Any:
    from boxcar.training import Fingerprint, LatentCache

    cache = LatentCache(
        folder / "cache",
        dataset=Nothing(),
        encoder=lambda batch: batch,
        fingerprint=Fingerprint(encoder="none", transform="none", data="bench"),
        batch_size=256,
        mode="mapped",
    )
    return cache.fill().dataset()


class Nothing:
    """Samples of the cache's shape that are made when they are asked for."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.full(SHAPE, float(number))

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        return [self[number] for number in numbers]


class InRam:
    """All samples in one tensor of this process, gathered by batch: the best one writes by hand."""

    def __init__(self, data: Any) -> None:
        import torch

        self.values = torch.empty((len(data), *SHAPE))
        for begin in range(0, len(data), 256):
            rows = data.__getitems__(range(begin, begin + 256))
            self.values[begin : begin + 256] = torch.stack(rows)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Any:
        return self.values[number]

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        import torch

        return list(self.values.index_select(0, torch.as_tensor(numbers)).unbind(0))


# --- the namespace


def _mount_small_shm() -> bool:
    """64 MiB of /dev/shm for this process and its children; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return (
        libc.unshare(_CLONE_NEWNS) == 0
        and libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m") == 0
    )


def _in_child(body: Callable[[Path], Any], folder: Path) -> Any:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(body(folder)))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError("the bench's process failed; its error is above") from None
    finally:
        child.join()

"""Batches of workers must arrive, and as they were, however small /dev/shm is."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import multiprocessing
import os
import pickle
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_at_work import run_ranks
from torch.utils.data import ConcatDataset, DataLoader, Dataset, default_collate

from boxcar.training.data import worker_transport
from boxcar.training.data.loader import RankAwareDataLoader
from boxcar.training.data.worker_transport import (
    PipedBatch,
    Room,
    WorkerTransport,
    choose,
    take_apart,
)
from boxcar.training.ranks import ranks

MB = 1024 * 1024
DIED = 3
ROOM = Room(free_bytes=64 * MB, num_workers=6, prefetch_factor=2, local_ranks=2)

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Graph:
    nodes: torch.Tensor
    name: str


def test_the_batches_of_the_two_task_run_do_not_fit_in_64_mb() -> None:
    choice = choose(ROOM, 4 * MB)
    assert choice.way == "pipe"
    assert "28 batches of 4.19 MB" in choice.reason and "67.1 MB" in choice.reason


@pytest.mark.parametrize("name", ["num_workers", "prefetch_factor", "local_ranks"])
def test_whatever_multiplies_the_batches_under_way_may_turn_the_choice(name: str) -> None:
    fits = Room(free_bytes=64 * MB, num_workers=1, prefetch_factor=1, local_ranks=1)
    assert choose(fits, 2 * MB).way == "shm"
    assert choose(dataclasses.replace(fits, **{name: 8}), 2 * MB).way == "pipe"


def test_all_that_may_be_under_way_stays_within_a_quarter() -> None:
    largest = next(size for size in range(64 * MB, 0, -4096) if choose(ROOM, size).way == "shm")
    assert 28 * largest <= 16 * MB < 28 * (largest + 4096)


def test_without_a_limit_nothing_goes_through_the_pipe() -> None:
    assert choose(dataclasses.replace(ROOM, free_bytes=None), 2**40).way == "shm"


def batches() -> dict[str, Any]:
    bf16 = torch.randn(3, 4).to(torch.bfloat16)
    return {
        "tensors": [torch.randn(2, 3), torch.arange(4, dtype=torch.int16)],
        "bfloat16": bf16,
        "truths and complex": (torch.tensor([True, False]), torch.randn(2, dtype=torch.complex64)),
        "empty and single": (torch.empty(0, 5), torch.tensor(1.5), torch.empty(2, 0)),
        "strided": torch.randn(4, 6).t()[::2],
        "nested": {"a": [Pair(torch.ones(2), "x")], "b": (1, None, 2.5, "text", b"bytes")},
        "inside an object": Graph(torch.randn(3), "g"),
        "sparse": torch.eye(3).to_sparse(),
        "parameter": torch.nn.Parameter(torch.randn(2)),
        "no tensor": "text",
    }


@pytest.mark.parametrize("name", batches())
def test_a_batch_that_went_through_the_pipe_is_what_it_was(name: str) -> None:
    batch = batches()[name]
    came = pickle.loads(pickle.dumps(PipedBatch(take_apart(batch)), 5))
    assert type(came) is type(batch)
    assert leaves(came) == leaves(batch)


def test_what_came_through_the_pipe_can_be_written_to() -> None:
    came = pickle.loads(pickle.dumps(PipedBatch(take_apart(torch.zeros(3))), 5))
    assert came.add_(1).tolist() == [1, 1, 1]


def leaves(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        dense = value.detach().to_dense()
        return value.dtype, tuple(value.shape), value.layout, dense.tolist()
    if isinstance(value, Graph):
        return "Graph", leaves(value.nodes), value.name
    if isinstance(value, dict):
        return {name: leaves(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [leaves(part) for part in value]
    return value


def test_a_view_counts_as_all_that_torch_would_share_of_it() -> None:
    view = torch.zeros(MB)[:1]
    small = Room(free_bytes=8 * MB, num_workers=1, prefetch_factor=1, local_ranks=1)
    assert take_apart(view).choice(small).way == "pipe"
    assert take_apart(view.clone()).choice(small).way == "shm"


def test_a_tensor_whose_size_is_not_known_goes_through_the_pipe() -> None:
    assert take_apart([torch.eye(2).to_sparse()]).choice(ROOM).way == "pipe"


def test_the_main_process_gets_what_collate_makes() -> None:
    samples = [torch.ones(2), torch.zeros(2)]
    assert torch.equal(WorkerTransport(None, ROOM)(samples), default_collate(samples))


class Pictures(Dataset[Any]):
    """Each is 1 MB; its first number is its index."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return torch.full((MB // 4,), float(index)), index


@pytest.mark.parametrize("free_mb", [0, 1000])
@pytest.mark.parametrize("is_own_collate", [False, True])
def test_batches_of_workers_have_the_same_values_by_either_way(
    free_mb: int,
    is_own_collate: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("boxcar.training.data.loader.free_shared_bytes", lambda: free_mb * MB)
    loader = RankAwareDataLoader(
        Pictures(),
        batch_size=4,
        num_workers=2,
        shuffle=False,
        collate_fn=stack if is_own_collate else None,
    )
    seen = [(pictures[:, 0].tolist(), which.tolist()) for pictures, which in loader]
    loader.close()
    assert [index for _, which in seen for index in which] == list(range(64))
    assert all(first == which for first, which in seen)
    said = capfd.readouterr().err
    assert said.count("batches travel through") == 1
    assert ("through the pipe" in said) == (free_mb == 0)


def stack(samples: list[Any]) -> Any:
    return torch.stack([picture for picture, _ in samples]), torch.tensor([n for _, n in samples])


# --- a real /dev/shm of 64 MB


def read_pictures() -> tuple[list[int], int]:
    """What this rank was given, and the most bytes that were in /dev/shm."""
    ranks.join()
    loader = RankAwareDataLoader(Pictures(), batch_size=4, num_workers=6, seed=3)
    seen, most_bytes = [], 0
    for _ in range(2):
        for pictures, which in loader:
            assert pictures[:, 0].tolist() == which.tolist()
            seen += which.tolist()
            most_bytes = max(most_bytes, used_bytes())
    loader.close()
    ranks.leave()
    return seen, most_bytes


def read_pictures_plainly() -> None:
    try:
        for _ in DataLoader(ConcatDataset([Pictures(), Pictures()]), batch_size=8, num_workers=6):
            pass
    except RuntimeError:
        os._exit(DIED)  # its own teardown may hang


def used_bytes() -> int:
    disk = os.statvfs("/dev/shm")
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def read_with_64_mb(results: str) -> str:
    """Both ranks, and then torch's own loader, where /dev/shm has 64 MB; why it could not be."""
    if problem := small_room():
        return problem
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=as_rank, args=(rank, results)) for rank in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    alone = fork.Process(target=read_pictures_plainly)
    alone.start()
    # Where a worker's feeding thread meets the full disk, the loop waits for ever.
    alone.join(timeout=20)
    Path(results, "plain").write_text(str(alone.exitcode))
    alone.kill()
    return ""


def small_room() -> str:
    """A mount namespace of this process's own, with a /dev/shm of 64 MB; why not, if not."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursive_private = 0x20000, 0x44000
    failed = (
        libc.unshare(new_mounts)
        or libc.mount(None, b"/", None, recursive_private, None)
        or libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m")
    )
    return os.strerror(ctypes.get_errno()) if failed else ""


def as_rank(rank: int, results: str) -> None:
    os.environ |= {name: str(rank) for name in ("RANK", "LOCAL_RANK")}
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    Path(results, str(rank)).write_text(json.dumps(read_pictures()))


def test_two_ranks_with_six_workers_train_in_64_mb_of_dev_shm(tmp_path: Path) -> None:
    if problem := run_ranks(1, read_with_64_mb, str(tmp_path))[0]:
        pytest.skip(f"no mounts of one's own are permitted here: {problem}")
    (first, most_bytes), (second, _) = (
        json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)
    )
    for epoch in (slice(0, 32), slice(32, 64)):
        assert sorted(first[epoch] + second[epoch]) == list(range(64))
    assert most_bytes < 16 * MB
    # It is the transport that made it possible: torch's own loader dies, or waits for ever.
    assert (tmp_path / "plain").read_text() in (str(DIED), "None")


def test_a_full_dev_shm_is_not_used_at_all(tmp_path: Path) -> None:
    assert worker_transport.free_shared_bytes(str(tmp_path / "absent")) == 0
    assert choose(dataclasses.replace(ROOM, free_bytes=0), 1).way == "pipe"

"""The lines of the documents on launching and on caches, typed as they stand there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from ranks_at_work import free_port, run_ranks
from torch.utils.data import Dataset

from boxcar.training import RankAwareDataLoader
from boxcar.training.ranks import ranks

TRAIN = """
import json, os, sys
import torch
from boxcar.training import DDPWrapper, DistributedConfig, ranks

local_rank = int(os.environ["LOCAL_RANK"])
wrapper = DDPWrapper(torch.nn.Linear(2, 1), DistributedConfig())
model = wrapper.setup(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
model(torch.ones(1, 2)).sum().backward()
me = ranks.current()
mean = wrapper.all_reduce_metrics({"rank": me.rank})["rank"]
with open(os.path.join(sys.argv[1], f"{me.rank}.json"), "w") as file:
    json.dump([me.local_rank, me.world, me.local_world, mean], file)
wrapper.cleanup()
"""
HANGS = {
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
    "TORCH_CPP_LOG_LEVEL": "INFO",
    "NCCL_DEBUG": "INFO",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
}


def started(folder: Path, line: str, **env: str) -> subprocess.Popen[bytes]:
    """A line of the document, which ends with train.py, in the background."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    words = shlex.split(line.replace("torchrun", f"{sys.executable} -m torch.distributed.run"))
    hidden = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "BOXCAR_OUT": str(folder)}
    return subprocess.Popen([*words, str(folder)], cwd=folder, env={**os.environ, **hidden, **env})


def ranks_of(folder: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_one_node_with_its_own_rendezvous_and_what_names_a_hang(tmp_path: Path) -> None:
    line = "torchrun --standalone --nnodes=1 --nproc-per-node=2 train.py"
    out = tmp_path / "out"
    # DDP's part of DETAIL is what doctor leaves out on a CPU: the other exports are the document's.
    assert started(out, line, **{**HANGS, "TORCH_DISTRIBUTED_DEBUG": "INFO"}).wait() == 0
    assert [found[:3] for found in ranks_of(out) if len(found) == 4] == [[0, 2, 2], [1, 2, 2]]


def test_two_nodes_meet_at_one_endpoint(tmp_path: Path) -> None:
    line = (
        "torchrun --nnodes=2 --nproc-per-node=1 --rdzv-id=job --rdzv-backend=c10d "
        f"--rdzv-endpoint=localhost:{free_port()} train.py"
    )
    out = tmp_path / "out"
    nodes = [started(out, line) for _ in range(2)]
    assert [node.wait() for node in nodes] == [0, 0]
    assert [found for found in ranks_of(out) if len(found) == 4] == [[0, 2, 1, 0.5], [0, 2, 1, 0.5]]


def test_two_jobs_on_one_machine_have_a_port_each(tmp_path: Path) -> None:
    jobs = [
        started(
            tmp_path / str(number),
            f"torchrun --standalone --nproc-per-node=2 --master-port={free_port()} train.py",
        )
        for number in range(2)
    ]
    assert [job.wait() for job in jobs] == [0, 0]
    for number in range(2):
        found = [one for one in ranks_of(tmp_path / str(number)) if len(one) == 4]
        assert [one[1:] for one in found] == [[2, 2, 0.5]] * 2


class PreloadedCacheDataset(Dataset[Any]):
    """The document's option: memory is shared only where the training is not distributed."""

    def __init__(self, cache_files: list[Path]) -> None:
        self.cache = []
        for sample in cache_files:
            latent = torch.load(sample)
            if not (dist.is_available() and dist.is_initialized()):
                latent = latent.share_memory_()
            self.cache.append(latent)

    def __len__(self) -> int:
        return len(self.cache)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.cache[index]


def read_a_preloaded_cache(folder: str) -> list[float]:
    if os.environ["WORLD_SIZE"] != "1":
        ranks.join()
    data = PreloadedCacheDataset(sorted(Path(folder).glob("*.pt")))
    assert all(latent.is_shared() != dist.is_initialized() for latent in data.cache)
    with_workers = RankAwareDataLoader(data, batch_size=2, num_workers=2)
    found = [float(value) for batch in with_workers for value in batch[:, 0]]
    with_workers.close()
    return found


def test_a_preloaded_cache_is_read_by_one_rank_and_by_two(tmp_path: Path) -> None:
    for number in range(10):
        torch.save(torch.full((4,), float(number)), tmp_path / f"{number}.pt")
    for world in (1, 2):
        found = run_ranks(world, read_a_preloaded_cache, str(tmp_path))
        assert sorted(value for of_rank in found for value in of_rank) == list(range(10))


def test_two_ranks_on_one_gpu_get_a_sentence(monkeypatch: Any) -> None:
    two = {"CUDA_VISIBLE_DEVICES": "0"}
    numbers = ranks.RankNumbers(rank=1, local_rank=1, world=2, local_world=2)
    assert ranks._device(numbers._replace(local_rank=0), 1, two) == torch.device("cuda", 0)
    try:
        ranks._device(numbers, 1, two)
    except ranks.InputError as error:
        assert "LOCAL_RANK 1 has no GPU of its own: 1 visible here" in str(error)
        assert "start --nproc-per-node=1" in str(error)
    else:
        raise AssertionError("it was not told")

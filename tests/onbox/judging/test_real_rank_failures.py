"""Failures of a training of two ranks that really happen here, under a real torchrun with gloo."""

from __future__ import annotations

import pytest
from failing import end_of

pytestmark = pytest.mark.faults

_JOIN = """
import datetime, signal, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds={timeout_s}))
me = dist.get_rank()
"""

# What the ranks do, by which rows it may be known, its class, and where the cell is in the end.
OF_RANKS = {
    "parameters without a gradient": (
        """
        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

            def forward(self, x):
                return self.used(x)

        model = DistributedDataParallel(Two())
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
        """,
        ("D8",),
        "FIX_CODE",
        "failed",
    ),
    "one rank has a batch less": (
        """
        model = DistributedDataParallel(torch.nn.Linear(2, 2))
        for _ in range(3 - me):
            model(torch.ones(1, 2)).sum().backward()
        if me:
            os._exit(0)
        """,
        ("D19", "NCCL-S"),
        "RESUME_SAME",
        "verified",
    ),
    "a collective of another size": (
        "dist.all_reduce(torch.ones(4 + 4 * me))",
        ("D19", "NCCL-S"),
        "RESUME_SAME",
        "verified",
    ),
    "a rank is killed": (
        """
        if me:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()
        """,
        ("137-N",),
        "RESUME_SAME",
        "verified",
    ),
    "a rank is stopped": (
        """
        if me:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(torch.ones(1))
        """,
        ("D19", "NCCL-S"),
        "RESUME_SAME",
        "verified",
    ),
    "a rank fails by itself and the other waits for it": (
        """
        if me:
            raise KeyError("of its own")
        dist.all_reduce(torch.ones(1))
        """,
        ("EXIT1",),
        "FIX_CODE",
        "failed",
    ),
    "a rank misses its file and the other waits for it": (
        """
        if me:
            open("/data/shard-1.tar")
        dist.all_reduce(torch.ones(1))
        """,
        ("NOFILE",),
        "FIX_DATA",
        "failed",
    ),
    "a rank has a segmentation fault": (
        """
        import ctypes
        if me:
            ctypes.string_at(0)
        dist.all_reduce(torch.ones(1))
        """,
        ("SEGV",),
        "RESUME_SAME",
        "verified",
    ),
    "a rank leaves without a word": (
        """
        if me:
            os._exit(3 + 4)
        dist.all_reduce(torch.ones(1))
        """,
        ("NCCL-S", "CHILD"),
        "RESUME_SAME",
        "verified",
    ),
    "a rank builds another model": (
        "DistributedDataParallel(torch.nn.Linear(2, 2 + me))",
        ("SHAPE",),
        "FIX_CODE",
        "failed",
    ),
    "a mesh for more ranks than there are": (
        """
        from torch.distributed.device_mesh import init_device_mesh
        init_device_mesh("cpu", (3,))
        """,
        ("D25",),
        "FIX_CONFIG",
        "failed",
    ),
    "a world of more ranks than there are": (
        """
        dist.destroy_process_group()
        port = str(int(os.environ["MASTER_PORT"]) + 1)
        os.environ.update(MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="False")
        dist.init_process_group(
            "gloo", rank=me, world_size=3, timeout=datetime.timedelta(seconds=3)
        )
        """,
        ("RDZV",),
        "RESUME_SAME",
        "verified",
    ),
    "a checkpoint of another number of ranks": (
        """
        world = dist.get_world_size()
        raise ValueError(f"world_size {world} must match the checkpoint's world_size 4")
        """,
        ("D25",),
        "FIX_CONFIG",
        "failed",
    ),
}


@pytest.mark.parametrize("name", OF_RANKS)
def test_what_ends_ranks_is_named_and_the_right_thing_follows(make_run, name):
    fails, ids, course, state = OF_RANKS[name]
    joined = _JOIN.format(timeout_s=5).strip().split("\n")
    body = "\n".join([*(" " * 8 + line for line in joined), fails.strip("\n")])
    if not fails.startswith("\n"):
        body = "\n".join([*joined, fails])
    end = end_of(make_run, body, launcher="torchrun", nproc=2)
    assert (end.course, end.state) == (course, state), end
    assert end.failure in ids, end

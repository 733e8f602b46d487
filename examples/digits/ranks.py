"""The processes that train one cell together: who this one is, and what they must agree on.

Works alone too: without torchrun there is one rank and no process group. Not covered: several
machines.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn


class Ranks(NamedTuple):
    """This process among the ones that train the cell together."""

    rank: int
    world: int
    device: torch.device

    @classmethod
    def join(cls) -> Ranks:
        """Read what torchrun set, bind the device, and meet the other ranks where there are any."""
        world, local = (
            int(os.environ.get(n, d)) for n, d in (("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
        )
        # NCCL refuses two ranks on one GPU, so a box with fewer GPUs than ranks trains this cell on
        # its CPU.
        on_gpu = torch.cuda.device_count() >= world
        device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(device)
        if world > 1:
            dist.init_process_group("nccl" if on_gpu else "gloo")
        return cls(int(os.environ.get("RANK", "0")), world, device)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over the ranks when there are several."""
        return nn.parallel.DistributedDataParallel(model) if self.world > 1 else model

    def share(self, stop: bool, loss: torch.Tensor) -> tuple[bool, float]:
        """Whether any rank wants to stop, and the mean loss; all ranks ask at the same step."""
        both = torch.stack(
            [torch.tensor(float(stop), device=self.device), loss.detach() / self.world]
        )
        if self.world > 1:
            dist.all_reduce(both)
        return bool(both[0] > 0), float(both[1])

    def wait(self) -> None:
        """Go on only when all ranks are here."""
        if self.world > 1:
            dist.barrier()

    def leave(self) -> None:
        """Say goodbye, so that no rank waits for this one."""
        if self.world > 1:
            dist.destroy_process_group()

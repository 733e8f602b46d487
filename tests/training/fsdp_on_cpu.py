"""FSDP2 for tests on the CPU, and the mark of those: before torch 2.7 it is for GPUs alone."""

from __future__ import annotations

import pytest
import torch.distributed.fsdp

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # torch 2.4 and 2.5
    from torch.distributed._composable.fsdp import fully_shard

__all__ = ["HAS_FSDP_ON_CPU", "fully_shard", "needs_fsdp_on_cpu"]

HAS_FSDP_ON_CPU = hasattr(torch.cpu.Stream, "record_event")
needs_fsdp_on_cpu = pytest.mark.skipif(
    not HAS_FSDP_ON_CPU,
    reason=f"FSDP on the CPU needs torch 2.7, found {torch.__version__}",
)

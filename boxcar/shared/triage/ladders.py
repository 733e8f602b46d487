"""What to try, in this order, so that what changes the experiment comes last. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark

LADDERS = {
    "memory": (
        mark("The GPU's memory is too small"),
        (
            mark(
                "let the allocator grow its pieces: env: "
                "{{PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}}"
            ),
            mark("see that nobody else is on the GPU: nvidia-smi on the box"),
            mark(
                "half the micro-batch and twice the accumulation: the same step where the loss is "
                "a mean over samples"
            ),
            mark("bf16 in place of fp32, where the GPU has it"),
            mark("recompute activations (checkpointing): a third more time"),
            mark("attention that keeps no matrix: SDPA or FlashAttention"),
            mark("shard states over the ranks: FSDP or ZeRO"),
            mark(
                "only then what changes the experiment: shorter sequences, smaller pictures, "
                "another optimizer, LoRA"
            ),
        ),
    ),
    "host": (
        mark("The machine's memory is too small"),
        (
            mark(
                "fewer workers of the data loader: each has its own copy of what the dataset holds"
            ),
            mark("hold samples in arrays or mapped files, not in lists of Python objects"),
            mark("a smaller prefetch_factor, and no pin_memory"),
            mark("a box with more memory"),
        ),
    ),
    "slow": (
        mark("The GPU waits for data"),
        (
            mark("see it: the board's GPU number is low while steps go on"),
            mark(
                "data on the box's own disk, not on the network's: python -m boxcar.training.fetch"
            ),
            mark("as many workers as cores for each rank, and persistent_workers=True"),
            mark("many small files packed into few large ones"),
            mark("what is computed each time once, into a cache"),
            mark("OMP_NUM_THREADS at the cores of the box by its quota, not the host's"),
        ),
    ),
    "divergence": (
        mark("The loss is NaN, or runs away"),
        (
            mark(
                "again from the last finite checkpoint; at the same step again it is the data of "
                "that step"
            ),
            mark("look at the samples of that step: empty, constant, not finite"),
            mark("bf16 in place of fp16; logarithms, roots and divisions in fp32 with an epsilon"),
            mark("clip the gradient's norm, and warm up longer"),
            mark("a smaller learning rate: another experiment"),
            mark("torch.autograd.set_detect_anomaly(True) for one run names the operation"),
        ),
    ),
    "hang": (
        mark("Nothing goes on"),
        (
            mark("boxcar logs CELL --follow: is it the log that stands still, or the training"),
            mark("several ranks: all must do the same collectives; none below an if rank == 0"),
            mark("ranks with unequal numbers of batches: drop_last, or join()"),
            mark("a loader that waits for a worker: num_workers=0 shows its error"),
            mark(
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 under env: "
                "say who was missing"
            ),
            mark(
                "NCCL that finds the wrong card: NCCL_SOCKET_IFNAME; P2P that hangs: "
                "NCCL_P2P_DISABLE=1 as a test"
            ),
        ),
    ),
}

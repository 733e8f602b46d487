"""What to try, in this order, so that what changes the experiment comes last. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark

LADDERS = {
    "memory": (
        mark("GPU out of memory"),
        (
            mark(
                "let the allocator grow its segments: env: {{PYTORCH_CUDA_ALLOC_CONF: "
                "'expandable_segments:True'}}"
            ),
            mark("check that nobody else uses the GPU: nvidia-smi on the box"),
            mark(
                "halve the micro-batch and double the accumulation: the same step if the loss is "
                "a mean over samples"
            ),
            mark("use bf16 instead of fp32 if the GPU supports it"),
            mark("recompute activations (gradient checkpointing): costs about a third more time"),
            mark("use attention that stores no matrix: SDPA or FlashAttention"),
            mark("shard the states across ranks: FSDP or ZeRO"),
            mark(
                "only then change the experiment: shorter sequences, smaller images, another "
                "optimizer, LoRA"
            ),
        ),
    ),
    "host": (
        mark("Machine out of memory"),
        (
            mark("use fewer data loader workers: each copies what the dataset holds"),
            mark("hold samples in arrays or memory-mapped files, not in lists of Python objects"),
            mark("lower prefetch_factor and turn off pin_memory"),
            mark("use a box with more memory"),
        ),
    ),
    "slow": (
        mark("The GPU waits for data"),
        (
            mark("the sign: GPU usage on the board is low while steps advance"),
            mark(
                "keep data on the box's local disk, not on a network disk: python -m "
                "boxcar.training.fetch"
            ),
            mark("use as many workers as there are cores per rank, and persistent_workers=True"),
            mark("pack many small files into a few large ones"),
            mark("compute repeated work once and cache it"),
            mark("set OMP_NUM_THREADS to the cores in the box's quota, not the host's"),
        ),
    ),
    "divergence": (
        mark("The loss is NaN or diverges"),
        (
            mark(
                "rerun from the last finite checkpoint; if it fails at the same step, that step's "
                "data is the cause"
            ),
            mark("check that step's samples: empty, constant or not finite"),
            mark(
                "use bf16 instead of fp16; do logarithms, roots and divisions in fp32 with an "
                "epsilon"
            ),
            mark("clip the gradient norm and warm up longer"),
            mark("lower the learning rate: this changes the experiment"),
            mark("run once with torch.autograd.set_detect_anomaly(True): it names the operation"),
        ),
    ),
    "hang": (
        mark("No progress"),
        (
            mark("boxcar logs CELL --follow: check whether the log or the training has stopped"),
            mark("several ranks: all must call the same collectives, none under if rank == 0"),
            mark("ranks with unequal numbers of batches: use drop_last or join()"),
            mark("a data loader that waits for a worker: num_workers=0 shows the error"),
            mark(
                "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 under "
                "env: they show which rank was missing"
            ),
            mark(
                "NCCL picks the wrong interface: set NCCL_SOCKET_IFNAME; P2P hangs: test with "
                "NCCL_P2P_DISABLE=1"
            ),
        ),
    ),
}

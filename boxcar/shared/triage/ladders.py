"""What to try, in this order, so that what changes the experiment comes last. Data."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

LADDERS = {
    "memory": (
        Said("The GPU's memory is too small", "显存不足"),
        (
            Said(
                "let the allocator grow its pieces: env: {PYTORCH_CUDA_ALLOC_CONF: "
                "'expandable_segments:True'}",
                "让分配器扩展内存段：env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}",
            ),
            Said(
                "see that nobody else is on the GPU: nvidia-smi on the box",
                "确认没有别人占用 GPU：在机器上 nvidia-smi",
            ),
            Said(
                "half the micro-batch and twice the accumulation: the same step where the "
                "loss is a mean over samples",
                "micro-batch 减半、累积步数加倍：损失对样本取均值时等价",
            ),
            Said("bf16 in place of fp32, where the GPU has it", "GPU 支持时用 bf16 代替 fp32"),
            Said(
                "recompute activations (checkpointing): a third more time",
                "重算激活（checkpointing）：多约三分之一时间",
            ),
            Said(
                "attention that keeps no matrix: SDPA or FlashAttention",
                "不保存注意力矩阵：SDPA 或 FlashAttention",
            ),
            Said("shard states over the ranks: FSDP or ZeRO", "在各 rank 间切分状态：FSDP 或 ZeRO"),
            Said(
                "only then what changes the experiment: shorter sequences, smaller pictures, "
                "another optimizer, LoRA",
                "最后才是改变实验的：更短序列、更小图片、其他优化器、LoRA",
            ),
        ),
    ),
    "host": (
        Said("The machine's memory is too small", "机器内存不足"),
        (
            Said(
                "fewer workers of the data loader: each has its own copy of what the dataset holds",
                "减少 data loader 的 worker：每个都有数据集内容的副本",
            ),
            Said(
                "hold samples in arrays or mapped files, not in lists of Python objects",
                "用数组或内存映射文件保存样本，而非 Python 对象列表",
            ),
            Said(
                "a smaller prefetch_factor, and no pin_memory",
                "减小 prefetch_factor，关闭 pin_memory",
            ),
            Said("a box with more memory", "换内存更大的机器"),
        ),
    ),
    "slow": (
        Said("The GPU waits for data", "GPU 在等数据"),
        (
            Said(
                "see it: the board's GPU number is low while steps go on",
                "看板上 GPU 使用率低而步数在前进",
            ),
            Said(
                "data on the box's own disk, not on the network's: python -m boxcar.training.fetch",
                "数据放在机器的高速盘而非网络盘：python -m boxcar.training.fetch",
            ),
            Said(
                "as many workers as cores for each rank, and persistent_workers=True",
                "每个 rank 的 worker 数等于核数，并设 persistent_workers=True",
            ),
            Said("many small files packed into few large ones", "把大量小文件打包成少量大文件"),
            Said(
                "what is computed each time once, into a cache", "每次都算的内容只算一次，存入缓存"
            ),
            Said(
                "OMP_NUM_THREADS at the cores of the box by its quota, not the host's",
                "OMP_NUM_THREADS 设为机器配额核数，而非宿主机核数",
            ),
        ),
    ),
    "divergence": (
        Said("The loss is NaN, or runs away", "损失为 NaN 或发散"),
        (
            Said(
                "again from the last finite checkpoint; at the same step again it is the data of "
                "that step",
                "从最近的有限检查点重来；同一步再现则是该步的数据",
            ),
            Said(
                "look at the samples of that step: empty, constant, not finite",
                "检查该步样本：空、常数、非有限值",
            ),
            Said(
                "bf16 in place of fp16; logarithms, roots and divisions in fp32 with an epsilon",
                "用 bf16 代替 fp16；对数、开方、除法用 fp32 并加 epsilon",
            ),
            Said("clip the gradient's norm, and warm up longer", "裁剪梯度范数，延长预热"),
            Said("a smaller learning rate: another experiment", "更小的学习率：这是另一个实验"),
            Said(
                "torch.autograd.set_detect_anomaly(True) for one run names the operation",
                "用一次 torch.autograd.set_detect_anomaly(True) 找出算子",
            ),
        ),
    ),
    "hang": (
        Said("Nothing goes on", "停滞不前"),
        (
            Said(
                "boxcar logs CELL --follow: is it the log that stands still, or the training",
                "boxcar logs CELL --follow：是日志停了还是训练停了",
            ),
            Said(
                "several ranks: all must do the same collectives; none below an if rank == 0",
                "多个 rank：都要执行相同的集合通信，不要放在 if rank == 0 之下",
            ),
            Said(
                "ranks with unequal numbers of batches: drop_last, or join()",
                "各 rank 批次数不等：drop_last 或 join()",
            ),
            Said(
                "a loader that waits for a worker: num_workers=0 shows its error",
                "loader 在等 worker：num_workers=0 可显示其错误",
            ),
            Said(
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 under env: "
                "say who was missing",
                "env: 中设 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 与 TORCH_NCCL_DUMP_ON_TIMEOUT=1，"
                "可知谁缺席",
            ),
            Said(
                "NCCL that finds the wrong card: NCCL_SOCKET_IFNAME; P2P that hangs: "
                "NCCL_P2P_DISABLE=1 as a test",
                "NCCL 选错网卡：NCCL_SOCKET_IFNAME；P2P 挂起：用 NCCL_P2P_DISABLE=1 测试",
            ),
        ),
    ),
}

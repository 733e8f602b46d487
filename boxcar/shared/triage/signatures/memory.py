"""Memory of the GPU and of the machine. Data; what to try is the ladder of docs/failures.md."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Where, cuda_error, row

_SMALLER = (
    "make it smaller first: batch, model or epochs",
    "请先改小：batch、模型或 epoch",
)

SIGNATURES = (
    row(
        "U9",
        Course.OUT_OF_MEMORY,
        r"OOMKilled|oom-kill:constraint|oom-kill event|oom[-_]kill\w*[ :].{0,80}(?:detected"
        r"|task|event)|\bOUT_OF_ME"
        r"|[Mm]emory cgroup out of memory|[Oo]ut of memory: Kill|invoked oom-killer"
        r"|TERM_MEMLIMIT|Exceeded (?:job|step) memory limit"
        r"|exceeded (?:a|its) memory (?:resource )?limit"
        r"|low on resource: memory[^\n]{0,80} was using"
        r"|Container killed on request. Exit code is 137|[Ee]rror code 137.{0,40}(?:memory|OOM)"
        r"|task \S+ was killed due to OOM|ray\.exceptions\.OutOfMemoryError|RAY_memory_(?:usage"
        r"|monitor)"
        r"|killed due to (?:memory pressure|the node running low on memory)|job killed: (?:mem"
        r"|vmem)\b"
        r"|using all available RAM|memory on the node .{0,120}above the memory usage threshold",
        ("the machine's memory was used up", "机器内存已用完"),
        (
            "fewer workers of the data loader, smaller caches, or a box with more memory",
            "减少 data loader 的 worker、缩小缓存，或换内存更大的机器",
        ),
        where=Where.ANYWHERE,
    ),
    row(
        "U9W",
        Course.OUT_OF_MEMORY,
        r"killed by signal: [Kk]illed"
        r"|A worker process managed by the executor was unexpectedly terminated"
        r"|TerminatedWorkerError",
        (
            "a worker of the data loader was killed, mostly for memory",
            "data loader 的 worker 被杀，多因内存",
        ),
        (
            "fewer workers of the data loader, smaller samples, or a box with more memory",
            "减少 data loader 的 worker、缩小样本，或换内存更大的机器",
        ),
    ),
    row(
        "M2f",
        Course.OUT_OF_MEMORY,
        r"[Oo]ut of memory[^\n]{0,700}?\b(?:[5-9]"
        r"|\d{2,})\.\d+ GiB is reserved by PyTorch but unallocated",
        (
            "the GPU's memory is in pieces: much is reserved and not used",
            "显存碎片化：大量已保留但未使用",
        ),
        (
            "first env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'} in job.yaml",
            "先在 job.yaml 中设 env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}",
        ),
    ),
    row(
        "M2",
        Course.OUT_OF_MEMORY,
        cuda_error("2")
        + r"|(?:CUDA|HIP|NPU|MLU|MUSA|GCU|MPS backend|XPU)\b[^\n]{0,40} out of memory"
        r"|(?<!java\.lang\.)OutOfMemoryError"
        r"|CUDA error: out of memory|[Cc]uda failure[^\n]{0,12}out of memory"
        r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"
        r"|Tried to allocate [\d.]+ [KMG]i?B|RESOURCE_EXHAUSTED: Out of memory"
        r"|[Rr]an out of memory in memory space"
        r"|OOM when allocating tensor|Resource ?[Ee]xhausted(?!: MemoryError)"
        r"|Ran out of memory trying"
        r"|enforce allocating <= available|PT_DEVMEM Allocation failed"
        r"|[Nn]ot enough (?:GPU |device |video |DRAM |HBM ){1,2}memory"
        r"|[Ff]ailed to allocate request for"
        r"|Attempting to (?:allocate|reserve) [\d.]+[KMG][^\n]{0,40}That was not"
        r"|ERROR_OutOfMemory|EL0004|rtMalloc fail|what\(\): [^\n]{0,80}out of memory"
        r"|[Ff]ailed to allocate memory requested|failed to allocate [^\n]{0,60}from device"
        r"|Out of Memory: Not enough space"
        r"|[Mm]alloc device memory failed|memory isn't enough|ERROR_OUT_OF_RESOURCES"
        r"|[Oo]ut of memory error on GPU|is less than desired GPU memory"
        r"|enough GPU RAM to fit|out of resource: shared memory|gpu_memory_utilization"
        r"|[Oo]ut of memory allocating \d+ bytes|out of memory trying to allocate"
        r"|No available memory for the cache blocks"
        r"|larger than the maximum number of tokens that can be stored in KV cache|显存不足"
        r"|(?i:out[ _]of[ _]device[ _]memory|cuda\w*alloc\w* failed: out of memory)"
        r"|cudaSuccess[^\n]{0,200}out of memory"
        r"|显存溢出",
        ("the GPU's memory is too small for this cell", "显存不足以运行此 cell"),
        _SMALLER,
    ),
    row(
        "CUDNN",
        Course.OUT_OF_MEMORY,
        r"CUDNN_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED|INTERNAL_ERROR)"
        r"|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
        r"|[Uu]nable to find (?:a valid cuDNN algorithm"
        r"|an engine)"
        r"|INTERNAL: the library was not initialized|\bdnn != nullptr|DNN library (?:is not|init)"
        r"|Failed to get convolution algorithm"
        r"|CUSOLVER_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR)|CUFFT_ALLOC_FAILED",
        (
            "cuDNN or cuBLAS got no memory: mostly the GPU's memory is too small",
            "cuDNN/cuBLAS 未分到内存：多为显存不足",
        ),
        _SMALLER,
        explained_by=("DEVSIDE",),
    ),
    row(
        "HOSTMEM",
        Course.OUT_OF_MEMORY,
        r"^(?:\w+\.)*_?(?:Array)?MemoryError\b|: MemoryError\b|WinError 1455"
        r"|[Pp]aging file is too small|DefaultCPUAllocator|[Cc]an(?:'t"
        r"|not) allocate memory|std::bad_alloc"
        r"|Unable to allocate [\d.]+ [KMGT]i?B|\[Errno 12\]|os error 12\b|ENOMEM"
        r"|[Mm]emory allocation of \d+ bytes failed"
        r"|pin_memory[^\n]{0,80}out of memory|malloc(?:\(\))?: .{0,20}(?:memory|fail)"
        r"|not enough memory: you tried to allocate|shared file mapping: <"
        r"|allocate more memory than|Java heap space|内存不足",
        ("the machine had no more memory to give", "机器已无内存可分配"),
        (
            "fewer workers, map large files instead of reading them whole, or a box with "
            "more memory",
            "减少 worker，用内存映射代替整体读取大文件，或换内存更大的机器",
        ),
    ),
    row(
        "FD",
        Course.FIX_CONFIG,
        r"[Tt]oo many open files|\[Errno 24\]|os error 24\b|EMFILE|\[Errno 23\]|ENFILE",
        ("too many files are open at once", "同时打开的文件过多"),
        (
            "raise it with ulimit -n 65536, or "
            "torch.multiprocessing.set_sharing_strategy('file_system')",
            "用 ulimit -n 65536 调大，或 torch.multiprocessing.set_sharing_strategy('file_system')",
        ),
    ),
    row(
        "PIDS",
        Course.FIX_CONFIG,
        r"can't start new thread|[Cc]annot create (?:new )?thread|pthread_create failed"
        r"|libgomp: Thread creation failed"
        r"|fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]"
        r"|cannot fork|Resource temporarily unavailable\nstd::system_error",
        ("the box allows no more processes or threads", "本机不允许更多进程或线程"),
        (
            "set OMP_NUM_THREADS to the cores of this box under env:, and use fewer workers",
            "在 env: 中把 OMP_NUM_THREADS 设为本机核数，并减少 worker",
        ),
    ),
)

"""Memory of the GPU and of the machine. Data; what to try is the ladder of docs/failures.md."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, Where, cuda_error

_SMALLER = mark("first reduce the batch, the model or the epochs")

SIGNATURES = (
    Signature(
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
        mark("the machine ran out of memory"),
        mark("use fewer data loader workers, smaller caches, or a box with more memory"),
        where=Where.ANYWHERE,
    ),
    Signature(
        "U9W",
        Course.OUT_OF_MEMORY,
        r"killed by signal: [Kk]illed"
        r"|A worker process managed by the executor was unexpectedly terminated"
        r"|TerminatedWorkerError",
        mark("a data loader worker was killed, usually for lack of memory"),
        mark("use fewer data loader workers, smaller samples, or a box with more memory"),
    ),
    Signature(
        "M2f",
        Course.OUT_OF_MEMORY,
        r"[Oo]ut of memory[^\n]{0,700}?\b(?:[5-9]"
        r"|\d{2,})\.\d+ GiB is reserved by PyTorch but unallocated",
        mark("GPU memory is fragmented: much is reserved but unused"),
        mark("first set env: {{PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}} in job.yaml"),
    ),
    Signature(
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
        mark("the GPU has too little memory for this cell"),
        _SMALLER,
    ),
    Signature(
        "CUDNN",
        Course.OUT_OF_MEMORY,
        r"CUDNN_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED|INTERNAL_ERROR)"
        r"|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
        r"|[Uu]nable to find (?:a valid cuDNN algorithm"
        r"|an engine)"
        r"|INTERNAL: the library was not initialized|\bdnn != nullptr|DNN library (?:is not|init)"
        r"|Failed to get convolution algorithm"
        r"|CUSOLVER_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR)|CUFFT_ALLOC_FAILED",
        mark("cuDNN or cuBLAS got no memory: usually the GPU has too little"),
        _SMALLER,
        explained_by=("DEVSIDE",),
    ),
    Signature(
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
        mark("the machine could not allocate more memory"),
        mark(
            "use fewer workers, memory-map large files instead of reading them whole, or use a "
            "box with more memory"
        ),
    ),
    Signature(
        "FD",
        Course.FIX_CONFIG,
        r"[Tt]oo many open files|\[Errno 24\]|os error 24\b|EMFILE|\[Errno 23\]|ENFILE",
        mark("too many open files"),
        mark(
            "raise the limit with ulimit -n 65536, or use "
            "torch.multiprocessing.set_sharing_strategy('file_system')"
        ),
    ),
    Signature(
        "PIDS",
        Course.FIX_CONFIG,
        r"can't start new thread|[Cc]annot create (?:new )?thread|pthread_create failed"
        r"|libgomp: Thread creation failed"
        r"|fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]"
        r"|cannot fork|Resource temporarily unavailable\nstd::system_error",
        mark("the box's limit of processes or threads is reached"),
        mark(
            "set OMP_NUM_THREADS under env: to the number of cores on the box, and use fewer "
            "workers"
        ),
    ),
)

"""GPUs, their driver, and what torch was built for. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, Where, cuda_error
from boxcar.shared.triage.xids import OF_DEAD_CARD, OF_MEMORY

_RENT = mark("rent another box and move the cells there; report this one to the platform")
SIGNATURES = (
    Signature(
        "ECC",
        Course.OTHER_BOX,
        cuda_error("214")
        + rf"|uncorrectable (?:ECC|NVLink) error|\bXid\b[^\n]{{0,80}}?[:,\s](?:{OF_MEMORY})\b"
        r"|[Dd]ouble.?[Bb]it ECC|uncorrectable hardware error|ERREVENT_ATHUB\w*"
        r"|[Rr]ow.?[Rr]emap\w* (?:failure|pending|failed)",
        mark("GPU memory is faulty"),
        _RENT,
        where=Where.ANYWHERE,
    ),
    Signature(
        "U22",
        Course.OTHER_BOX,
        rf"\bXid\b[^\n]{{0,80}}?[:,\s](?:{OF_DEAD_CARD}|45)\b|[Ff]allen off the bus"
        r"|Unable to determine the device handle|GPU(?: is |_IS_)(?:lost|LOST)"
        r"|cudaErrorDeviceLost|RESULT_ERROR_DEVICE_LOST"
        r"|CUDA error: (?:device lost|hardware stack error)|GPU requires? (?:a )?re(?:set|boot)"
        r"|peer GPU memory over nvlink"
        r"|\bNVLink\b[^\n]{0,60}(?:fatal|error|down)\b|NVSwitch[^\n]{0,60}(?:fatal|error)"
        r"|VRAM is lost due to GPU reset|GSP RPC timeout"
        r"|(?i:rm_?init_?adapter) failed|NVIDIA probe routine failed",
        mark("the GPU is dead"),
        _RENT,
        where=Where.ANYWHERE,
    ),
    Signature(
        "BUSY",
        Course.OTHER_BOX,
        r"CUDA-capable device\(s\) is/are busy or unavailable|cudaErrorDevice(?:s)?Unavailable"
        r"|all CUDA-capable devices are busy|Resource_Busy\(|TPU is already in use"
        r"|Neuron Core\(s\) not available|device is occupied",
        mark("the GPU is in use by somebody else, or hangs"),
        mark("see who uses it with nvidia-smi; if nobody does and it stays busy, it hangs"),
    ),
    Signature(
        "NVML",
        Course.OTHER_BOX,
        r"Driver/library version mismatch|Failed to initialize NVML|nvmlInit\w* failed"
        r"|NVML_SUCCESS == r|nvml error: driver"
        r"|couldn't communicate with the NVIDIA driver|NVMLError_\w+|CUDA unknown error"
        r"|amdgpu not found in modules|Device acquire failed"
        r"|[Ff]ailed to load module nvidia|Module nvidia\S* not found",
        mark("the driver and its library do not match, or the container lost its GPU"),
        mark("restart the container or the box; if it persists, rent another"),
        explained_by=("U28b",),
    ),
    Signature(
        "U28b",
        Course.STOP_QUEUE,
        r"unsatisfied condition: cuda|update your driver to a newer|ptxas (?:exited|fatal)"
        r"|driver on your system is too old|forward compatibility was attempted"
        r"|CUDA error 80[34]|[Ee]rror 80[34]:|driver version is insufficient"
        r"|unsupported display driver|cuDNN version (?:incompatibility|mismatch)"
        r"|CUDNN_STATUS_\w*VERSION_MISMATCH"
        r"|PTX was compiled with an unsupported toolchain|the provided PTX was compiled"
        r"|CUDA version .{0,20}mismatche[sd]|that was used to compile PyTorch"
        r"|cudaErrorInsufficientDriver|does not match the version torch was|unsupported toolchain",
        mark("driver, CUDA and torch do not match on this box"),
        mark("use a box with a newer driver, or install a torch built for this box's CUDA"),
        types="audit",
    ),
    Signature(
        "ATTN",
        Course.FIX_CONFIG,
        r"FlashAttention only supports",
        mark("this attention implementation does not run on this type of GPU"),
        mark(
            "another build does not help: use another attention (attn_implementation: sdpa), or "
            "rent an Ampere GPU or newer"
        ),
    ),
    Signature(
        "U28a",
        Course.STOP_QUEUE,
        cuda_error("98|209") + r"|no kernel image is available"
        r"|kernel image is invalid|invalid device function"
        r"|rocBLAS error: Cannot read|TensileLibrary|hipErrorNoBinaryForGpu"
        r"|was built for sm_?\d+"
        r"|CU\w+_STATUS_ARCH_MISMATCH|does not has any binary|extension for compute capability"
        r"|Parse dynamic kernel config"
        r"|No execution plans support|Code object build failed|SetIsaName|Expected is_sm\d+"
        r"|is not compatible with the current PyTorch"
        r"|cudaErrorNoKernelImageForDevice|not compiled for (?:this|your) GPU"
        r"|too old to be supported|GPUTooOldForTriton"
        r"|only supports devices of"
        r"|[Uu]nsupported gpu architecture"
        r"|Value 'sm_\d+' is not defined"
        r"|compute capability \S+ is (?:required|not supported)",
        mark("the installed build does not support this GPU"),
        mark("install a torch (or extension) built for this GPU, or rent another type of GPU"),
        types="audit",
    ),
    Signature(
        "MN1",
        Course.OTHER_BOX,
        r"CUDA error 802|[Ee]rror 802:|system not yet initialized|[Ff]abric ?[Mm]anager[^\n]{0,60}"
        r"(?:not|fail|error|down)|cudaErrorSystemNotReady",
        mark("the NVSwitch fabric manager is not running on this box"),
        mark("start the nvidia-fabricmanager that matches the driver, or rent another box"),
    ),
    Signature(
        "U31",
        Course.STOP_QUEUE,
        r"No CUDA GPUs are available|CUDA driver initialization failed"
        r"|might not have a CUDA (?i:gpu)|Found no NVIDIA driver|no CUDA-capable device is detected"
        r"|Torch not compiled with CUDA enabled|cudaErrorNoDevice"
        r"|torch\.cuda\.is_available\(\) is False"
        r"|Attempting to deserialize object on a CUDA device but|No supported gpu backend found"
        r"|cudaGetDeviceCount\(\)(?![^\n]*out of memory)"
        r"|NVIDIA Driver was not detected"
        r"|unknown or invalid runtime name: nvidia"
        r"|dcmi module initialize failed|无卡模式|没有 ?GPU"
        r"|(?i:found no|no visible) (?:CUDA|GPU)|[Nn]o (?:neuron|XPU|NPU|HPU|TPU|HIP) devices?"
        r"|hipGetDeviceCount|No HIP GPUs are available"
        r"|(?i:cuda is not available)"
        r"|failed call to cuInit|GPU available: False|accelerator is not available"
        r"|requires a (?:CUDA |NVIDIA )?GPU\b"
        r"|requires? (?:a )?(?:CUDA"
        r"|GPU)\b.{0,40}(?:not (?:found|available)|to run)",
        mark("this process sees no GPU"),
        mark("start the box with a GPU, install a torch with CUDA, check CUDA_VISIBLE_DEVICES"),
        explained_by=("NVML", "U28b"),
        types="audit",
    ),
    Signature(
        "D3",
        Course.FIX_CONFIG,
        r"Invalid CUDA '?(?:--)?device|Duplicate GPU detected|invalid device ordinal"
        r"|device >= 0 && device < num_gpus|Set visible device failed"
        r"|Invalid device id|less than total desired GPUs"
        r"|Expected one of cpu, cuda.{0,200}device type at start of device string"
        r"|deserialize object on CUDA device \d+ but|You requested gpu: \["
        r"|Attempting to (?:access|use) GPU \d+ but only",
        mark("more ranks than GPUs, or two ranks on one GPU"),
        mark("set nproc_per_node to the number of GPUs; take the device from LOCAL_RANK"),
    ),
    Signature(
        "XID-SOFT",
        Course.RESUME_SAME,
        r"\bXid\b[^\n]{0,80}?[:,\s](?:13|31|32|43|44|68)\b",
        mark("the driver reports a fault, usually caused by the program"),
        where=Where.LINE,
        waits_s=(30.0,),
        is_general=True,
    ),
    Signature(
        "DEVSIDE",
        Course.FIX_CODE,
        cuda_error("710")
        + r"|device-side assert(?!ions)|block: \[[\d,]+\][^\n]{0,60}Assertion|cudaErrorAssert"
        r"|index out of bounds: |Target -?\d+ is out of bounds|index out of range in self"
        r"|outside the valid range of \[|\] = -?\d+ is not in \["
        r"|out of range: Tried to access index"
        r"|[Ii]nd(?:ex|ices) -?[^\n]{0,24}(?:is |are )?out of bounds for (?:dimension|axis)"
        r"|index out of bounds\b",
        mark("an index, label or token is out of range"),
        mark(
            "check labels against the number of classes and tokens against the vocabulary; on a "
            "GPU, CUDA_LAUNCH_BLOCKING=1 shows the line"
        ),
    ),
    Signature(
        "IMA",
        Course.RESUME_SAME,
        cuda_error("4|7(?:00|02|14|15|16|17|18|19)|77")
        + r"|ACL stream synchronize failed|(?i:ai(?:core|cpu) (?:error|execution|exception))"
        r"|\bE[EZ3]9999\b|PTA call acl api failed|Memory (?:access fault|critical error) by"
        r"|(?:[Cc]ore|[Dd]evice) halted|Bad hardware status"
        r"|HSA_STATUS_ERROR|miopenStatus\w*Error"
        r"|cublas runtime error|CU(?:BLAS|DNN)_STATUS_EXECUTION_FAILED|CUBLAS_STATUS_INTERNAL_ERROR"
        r"|illegal memory access|CUDNN_STATUS_MAPPING_ERROR|illegal instruction was encountered"
        r"|misaligned address"
        r"|unspecified launch failure|cudaErrorIllegalAddress|cudaErrorLaunchFailure"
        r"|CUDA error: unknown error|the launch timed out and was terminated"
        r"|operation not supported on global/shared address",
        mark("a GPU kernel crashed"),
        mark(
            "nothing at first: it is retried once. If several cells fail so, suspect the GPU; if "
            "only one, its kernel"
        ),
        waits_s=(30.0,),
    ),
    Signature(
        "GPUCALL",
        Course.RESUME_SAME,
        r"\b(?:CUDA|HIP|NPU|MUSA|MLU|XPU)(?: runtime| driver| status)? [Ee]rror\b(?:: "
        r"|[^\n]{0,20}code)"
        r"|cuda runtime error \(\d|error == cudaSuccess|cuda execution failed with error"
        r"|\b(?:hip|cuda)Error[A-Z]\w+|\bUR (?:error|backend)|could not create an engine",
        mark("a GPU call failed"),
        mark(
            "nothing at first: it is retried once; if it recurs, check what the line names and "
            "whether torch matches the driver"
        ),
        waits_s=(30.0,),
        is_general=True,
    ),
)

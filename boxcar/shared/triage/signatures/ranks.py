"""Several ranks: ports, rendezvous, collectives, DDP. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature, Where

_LOOK_FIRST = mark(
    "nothing at first: it is retried once. If it recurs, look for the rank that ended first"
)

SIGNATURES = (
    Signature(
        "D4",
        Course.RESUME_SAME,
        r"EADDRINUSE|[Aa]ddress already in use|errno:? ?98\b|\[Errno 98\]"
        r"|server socket has failed to (?:listen|bind)|port (?:\d+ )?is already (?:in use"
        r"|allocated)|WinError 10048|端口[^\n]{0,12}占用",
        mark("a port is in use"),
        mark(
            "nothing at first; if it persists, an orphan process holds the port: ps on the box. "
            "Boxcar lets torchrun choose a free port"
        ),
        waits_s=(5.0, 60.0),
    ),
    Signature(
        "RDZV",
        Course.RESUME_SAME,
        r"connect\(\) timed out|An error occurred in MPI_Init|MPI_Init\w*\b[^\n]{0,60}fail"
        r"|Rendezvous(?:Timeout|Closed|Connection|State|Graceful\w*)?Error"
        r"|Timed out (?:after \d+ seconds )?waiting for clients|clients joined"
        r"|DistNetworkError: The client socket has (?:timed out|failed to connect)"
        r"|client socket has (?:timed out|failed)|DistStoreError"
        r"|TCPStore[^\n]{0,120}(?:timed? ?out|Timeout|failed|reset|refused)"
        r"|c10d store[^\n]{0,80}(?:timed? ?out|failed)"
        r"|Timed out initializing process group in store based barrier"
        r"|wait timeout after \d+ms|Failed to connect to the TCPStore"
        r"|The IPv[46] network addresses of \([^\n]{0,80}cannot be retrieved"
        r"|[Bb]arrier time(?:out|d out)|connectFullMesh failed|Connect timeout \["
        r"|ORTE was unable to reliably start"
        r"|[Ss]ocket Timeout$|hostname of the client socket cannot be retrieved"
        r"|^RuntimeError: (?:Broken pipe|Connection (?:reset by peer|refused))"
        r"|Unable to find (?:interface|address) for",
        mark("the ranks did not find each other"),
        mark(
            "nothing at first; if it persists, check that each node runs and reaches the first one"
        ),
        waits_s=(30.0, 120.0),
        is_symptom=True,
    ),
    Signature(
        "NORANK",
        Course.FIX_CONFIG,
        r"environment variable \w+ expected, but not set"
        r"|Default process group has not been initialized"
        r"|^KeyError: '(?:(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|SLURM_\w+"
        r"|OMPI_\w+|PMI_\w+)'",
        mark("the script was not started by the launcher it needs"),
        mark(
            "set launcher: and nproc_per_node: in job.yaml: torchrun sets RANK, WORLD_SIZE and "
            "MASTER_ADDR"
        ),
    ),
    Signature(
        "ONERANK",
        Course.FIX_CONFIG,
        r"^accelerate would start 1 process, \d+ were asked: distributed_type in ",
        mark("accelerate would train in one process, but several were requested"),
        mark("correct distributed_type in the named file, or set nproc_per_node: 1"),
    ),
    Signature(
        "D8",
        Course.FIX_CODE,
        r"Expected to have finished reduction in the prior iteration"
        r"|parameters that were not used in producing (?:the )?loss"
        r"|did not receive grad(?:ient)? for rank|still have inflight params",
        mark("a step leaves parameters unused under DDP or ZeRO-3"),
        mark("find the parameters without a gradient: TORCH_DISTRIBUTED_DEBUG=DETAIL lists them"),
    ),
    Signature(
        "D8b",
        Course.FIX_CODE,
        r"mark(?:ed)? a variable ready only once"
        r"|Parameter at index \d+[^\n]{0,120}has been marked as ready twice",
        mark("a parameter is used twice in one backward under DDP"),
        mark("set use_reentrant=False for gradient checkpointing, or static_graph=True"),
    ),
    Signature(
        "D25",
        Course.FIX_CONFIG,
        r"[Mm]esh[^\n]{0,40}bigger than[^\n]{0,20}world.?size"
        r"|divisible by[^\n]{0,40}(?:world.?size|GPUs|ranks|parallel)"
        r"|[Ww]orld.?size \(?\d+\)? (?:is not"
        r"|should be|must be) (?:divisible|equal|a multiple)"
        r"|(?:[Mm]esh|dp|tp|pp)[^\n]{0,60}(?:does not|not|must) (?:match|equal"
        r"|be divisible)[^\n]{0,40}world"
        r"|world_size[^\n]{0,60}(?:must|should|!=|does not)"
        r"|train_batch_size is not equal to micro_batch_per_gpu|wrong world size"
        r"|not enough slots available|(?:number of"
        r"|num) (?:GPUs|ranks|processes)[^\n]{0,60}(?:must be|should be|divisible"
        r"|does not match)"
        r"|The checkpoint being loaded used a (?:DP|world) ?(?:world )?size"
        r"|[Dd]efault process group has[^\n]{0,60}ranks, but",
        mark("the number of ranks does not match the config or the checkpoint"),
        mark("set nproc_per_node to what the config expects, or change the sizes in the config"),
    ),
    Signature(
        "C15",
        Course.FIX_CODE,
        r"No inf checks were recorded for this optimizer|unscale_\(\) has already been called"
        r"|[Aa]ttempting to unscale FP16 gradients",
        mark("the gradient scaler is used wrongly"),
        mark(
            "keep trained weights in fp32, scale the loss before backward, and restore "
            "scaler.state_dict()"
        ),
    ),
    Signature(
        "D19",
        Course.RESUME_SAME,
        r"[Ww]atchdog\b[^\n]{0,60}\b(?:caught collective|got stuck|hang|timed? ?out)"
        r"|Detected mismatch between collectives"
        r"|NCCL[^\n]{0,80}[Tt]imed? ?out|Some NCCL operations have failed or timed out"
        r"|collective operation timeout|monitoredBarrier"
        r"|Heartbeat monitor timed out|Timed out waiting \d+ms for (?:recv|send)"
        r"|Application timeout caused pair closure|Caught collective operation timeout"
        r"|Ranks \d[^\n]{0,60}failed to pass|last enqueued NCCL work"
        r"|[Cc]ollective[^\n]{0,60}mismatch|Timeout\(ms\)=\d+"
        r"|[Ss]tream sync\w* timeout|Horovod has been shut down|exception on one of the ranks"
        r"|^Missing [Rr]anks: |submitted to be reduced|\bEI000\d\b"
        r"|op\.preamble\.length <= op\.nbytes|Fence failed|gloo::EnforceNotMet",
        mark("a rank ended, hung or took another path, and the others waited for it"),
        _LOOK_FIRST,
        waits_s=(30.0,),
        is_symptom=True,
    ),
    Signature(
        "NCCL-USE",
        Course.FIX_CONFIG,
        r"ncclInvalid(?:Usage|Argument)|nccl[^\n]{0,60}invalid (?:usage|argument)",
        mark("NCCL got an invalid call"),
        mark("usually two ranks on one GPU: take the device from LOCAL_RANK"),
    ),
    Signature(
        "NCCL-S",
        Course.RESUME_SAME,
        r"peer process has (?:unexpectedly )?disconnected|HCCL (?:function )?error"
        r"|hccl api failed|OPS function error: Hccl|UCX +ERROR|ucp_ep_create"
        r"|NCCL error[^\n]{0,200}unhandled|unhandled (?:system|cuda) error|nccl(?:Internal"
        r"|System|Remote|UnhandledCuda)Error|ncclUnhandledCudaError"
        r"|Connection closed by (?:remote )?peer"
        r"|NCCL communicator (?:was|encountered|has been) (?:aborted|error)"
        r"|remote process exited or there was a network error|NET/(?:IB"
        r"|Socket)[^\n]{0,120}(?:error|failed|closed|timeout)|DistBackendError"
        r"|ProcessGroupNCCL[^\n]{0,160}(?:error|exception|abort)"
        r"|gloo[^\n]{0,160}(?:[Cc]onnection (?:closed|reset|refused)|[Ee]rror|timeout)"
        r"|Broken pipe\b.{0,60}(?:gloo|store|c10d)|recvValue failed"
        r"|Connection was likely closed|store->(?:get|wait)|sendBytes failed|recvBytes"
        r"|socketStartConnect|Call to (?:recv|send|connect)\w*\b[^\n]{0,20}(?:failed|returned)"
        r"|ncclSocket|Got completion from peer|gloo/transport/[^\n]{0,160}(?:Timed out|Read error)|"
        r"Failed to recv, got 0 bytes|ibv_\w+[^\n]{0,60}fail|oneCCL: [^\n]{0,80}EXCEPTION",
        mark("a rank lost its peer"),
        _LOOK_FIRST,
        waits_s=(30.0,),
        is_symptom=True,
    ),
    Signature(
        "MN4",
        Course.ASK,
        r"No (?:socket )?interface found|Bootstrap : no socket interface found"
        r"|could not find any (?:usable )?network interface"
        r"|NCCL WARN [^\n]{0,80}Connect to [^\n]{0,80}No route to host",
        mark("NCCL finds no network interface, or picks the wrong one"),
        mark(
            "under env:, set NCCL_SOCKET_IFNAME to the interface that connects the machines (ip "
            "addr lists them)"
        ),
    ),
    Signature(
        "HUP",
        Course.RESUME_SAME,
        r"Received 1 death signal|closing signal SIGHUP|got signal: 1\b",
        mark("the launcher received SIGHUP"),
        mark(
            "nothing: Boxcar's own processes have no terminal; perhaps a nested ssh or screen "
            "was closed"
        ),
        where=Where.LINE,
        waits_s=(5.0, 60.0),
    ),
    Signature(
        "CHILD",
        Course.FIX_CODE,
        r"ChildFailedError|CalledProcessError|ProcessExitedException"
        r"|SignalException(?!: Process \d+ got signal: 2\b)"
        r"|ProcessRaisedException|Ray(?:Task|Actor)Error|WorkerCrashedError"
        r"|failed to start\.$|CrashLoopBackOff"
        r"|(?:root cause|stack trace|errors?) above|for (?:the )?root cause|ActorDiedError"
        r"|ChildProcessError|DUE TO TASK FAILURE|^srun: Force Terminated"
        r"|TuneError"
        r"|[Ww]orker process has died|(?:[Cc]hild )?[Pp]rocess \d+ [^\n]{0,30}(?:FAILED"
        r"|terminated with the following error)|CHILD PROCESS FAILED"
        r"|\bfailed \(exitcode: [1-9]"
        r"|[Ee]xit(?:s|ed)? with (?:exit |return )?(?:code|status)[ :=]*[1-9]"
        r"|exit_?[cC]ode: [1-9]|^\s*Exit code:\s+[1-9]|returned (?:a )?non-zero exit"
        r"|exited with (?:a )?non-zero|failed, log is in|ExecuteUserScriptError|AlgorithmError"
        r"|Primary job +terminated normally, but"
        r"|trainer process with rank",
        mark("a child process ended; its own output says why"),
        mark("look further up in the log for the first error"),
        where=Where.END,
        is_symptom=True,
        is_general=True,
    ),
)

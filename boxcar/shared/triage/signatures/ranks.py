"""Several ranks: ports, rendezvous, collectives, DDP. Data."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Where, row

_LOOK_FIRST = (
    "nothing at first: it is tried once more. If it comes again, look for the rank that "
    "ended first",
    "先不用处理：会再试一次。若再出现，请查找最先结束的 rank",
)

SIGNATURES = (
    row(
        "D4",
        Course.RESUME_SAME,
        r"EADDRINUSE|[Aa]ddress already in use|errno:? ?98\b|\[Errno 98\]"
        r"|server socket has failed to (?:listen|bind)|port (?:\d+ )?is already (?:in use"
        r"|allocated)|WinError 10048|端口[^\n]{0,12}占用",
        ("a port was taken", "端口被占用"),
        (
            "nothing at first; if it stays so, an orphan holds it: ps on the box. Boxcar "
            "lets torchrun choose a free port",
            "先不用处理；若一直如此，有残留进程占用：在机器上 ps 查看",
        ),
        waits_s=(5.0, 60.0),
    ),
    row(
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
        ("the ranks did not find each other", "各 rank 未能会合"),
        (
            "nothing at first; if it stays so, see that each node runs and reaches the first one",
            "先不用处理；若一直如此，请检查每个节点都已运行且能连到首节点",
        ),
        waits_s=(30.0, 120.0),
        is_symptom=True,
    ),
    row(
        "NORANK",
        Course.FIX_CONFIG,
        r"environment variable \w+ expected, but not set"
        r"|Default process group has not been initialized"
        r"|^KeyError: '(?:(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|SLURM_\w+"
        r"|OMPI_\w+|PMI_\w+)'",
        (
            "the script was not started by the launcher that it needs",
            "脚本没有由它所需的启动器启动",
        ),
        (
            "set launcher: and nproc_per_node: in job.yaml: torchrun sets RANK, WORLD_SIZE and "
            "MASTER_ADDR",
            "在 job.yaml 设置 launcher: 与 nproc_per_node:；torchrun 会设置 RANK、WORLD_SIZE 与 "
            "MASTER_ADDR",
        ),
    ),
    row(
        "ONERANK",
        Course.FIX_CONFIG,
        r"^accelerate would start 1 process, \d+ were asked: distributed_type in ",
        (
            "accelerate would train in one process where more were asked for",
            "要求多个进程，但 accelerate 只会启动一个",
        ),
        (
            "put distributed_type in the named file right, or set nproc_per_node: 1",
            "改正所指文件中的 distributed_type，或设置 nproc_per_node: 1",
        ),
    ),
    row(
        "D8",
        Course.FIX_CODE,
        r"Expected to have finished reduction in the prior iteration"
        r"|parameters that were not used in producing (?:the )?loss"
        r"|did not receive grad(?:ient)? for rank|still have inflight params",
        (
            "parameters that a step does not use, under DDP or ZeRO-3",
            "DDP 或 ZeRO-3 下某一步有未使用的参数",
        ),
        (
            "find the parameters without a gradient: TORCH_DISTRIBUTED_DEBUG=DETAIL names them",
            "找出没有梯度的参数：TORCH_DISTRIBUTED_DEBUG=DETAIL 会列出",
        ),
    ),
    row(
        "D8b",
        Course.FIX_CODE,
        r"mark(?:ed)? a variable ready only once"
        r"|Parameter at index \d+[^\n]{0,120}has been marked as ready twice",
        ("a parameter is used twice in one backward under DDP", "DDP 下一次反向中参数被用了两次"),
        (
            "use_reentrant=False for checkpointing, or static_graph=True",
            "检查点用 use_reentrant=False，或 static_graph=True",
        ),
    ),
    row(
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
        (
            "the number of ranks does not fit the config or the checkpoint",
            "rank 数与配置或检查点不符",
        ),
        (
            "set nproc_per_node to what the config says, or change the config's sizes",
            "把 nproc_per_node 设为配置所需，或修改配置中的尺寸",
        ),
    ),
    row(
        "C15",
        Course.FIX_CODE,
        r"No inf checks were recorded for this optimizer|unscale_\(\) has already been called"
        r"|[Aa]ttempting to unscale FP16 gradients",
        ("the gradient scaler is not used as it has to be", "梯度缩放器使用不当"),
        (
            "keep trained weights in fp32, scale the loss before backward, and restore "
            "scaler.state_dict()",
            "训练的权重保持 fp32，反向前先缩放损失，并恢复 scaler.state_dict()",
        ),
    ),
    row(
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
        (
            "a rank ended, hung or went another way, and the others waited for it",
            "某个 rank 结束、挂起或走了别的路径，其余在等待",
        ),
        _LOOK_FIRST,
        waits_s=(30.0,),
        is_symptom=True,
    ),
    row(
        "NCCL-USE",
        Course.FIX_CONFIG,
        r"ncclInvalid(?:Usage|Argument)|nccl[^\n]{0,60}invalid (?:usage|argument)",
        ("NCCL was called in a way that it does not take", "NCCL 调用方式不对"),
        (
            "mostly two ranks on one GPU: take the device from LOCAL_RANK",
            "多为两个 rank 用了同一块 GPU：设备号取自 LOCAL_RANK",
        ),
    ),
    row(
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
        ("a rank lost its peer", "rank 失去了对端"),
        _LOOK_FIRST,
        waits_s=(30.0,),
        is_symptom=True,
    ),
    row(
        "MN4",
        Course.ASK,
        r"No (?:socket )?interface found|Bootstrap : no socket interface found"
        r"|could not find any (?:usable )?network interface"
        r"|NCCL WARN [^\n]{0,80}Connect to [^\n]{0,80}No route to host",
        ("NCCL finds no network card, or takes the wrong one", "NCCL 找不到网卡，或选错了网卡"),
        (
            "set NCCL_SOCKET_IFNAME under env: to the card by which the machines reach each other "
            "(ip addr shows them all)",
            "在 env: 中把 NCCL_SOCKET_IFNAME 设为机器之间互通的网卡（ip addr 会列出全部）",
        ),
    ),
    row(
        "HUP",
        Course.RESUME_SAME,
        r"Received 1 death signal|closing signal SIGHUP|got signal: 1\b",
        ("the launcher was hung up on (SIGHUP)", "启动器收到 SIGHUP"),
        (
            "nothing: Boxcar's own processes have no terminal; a nested ssh or screen was closed",
            "无需处理：可能关闭了嵌套的 ssh 或 screen",
        ),
        where=Where.LINE,
        waits_s=(5.0, 60.0),
    ),
    row(
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
        ("a child ended, and its own words say why", "子进程结束，原因见其自身输出"),
        ("look further up in the log for the first error", "请在日志更上方查看第一个错误"),
        where=Where.END,
        is_symptom=True,
        is_general=True,
    ),
)

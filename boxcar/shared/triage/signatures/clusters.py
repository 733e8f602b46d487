"""Schedulers, containers and what they need before a script runs. Data."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import STEPD, Where, row

SIGNATURES = (
    row(
        "MUNGE",
        Course.STOP_QUEUE,
        r"^(?:s(?:run|batch|alloc|queue|info)|slurm\w*): (?:error|fatal): [^\n]{0,120}(?:[Mm]unge"
        r"|authentication|configuration source|fetch_config|resolve_ctls)",
        ("this machine is not set up as a part of the cluster", "本机未正确接入集群"),
        (
            "start munge and look at slurm.conf, or submit from a login node of the cluster",
            "启动 munge 并检查 slurm.conf，或从集群的登录节点提交",
        ),
        types="audit",
        where=Where.LINE,
    ),
    row(
        "SCHED",
        Course.WAIT_NETWORK,
        r"[Uu]nable to contact slurm controller|Unable to confirm allocation"
        r"|Socket timed out on send/recv operation|Zero Bytes were transmitted or received"
        r"|Slurm temporarily unable to accept|Slurm backup controller in standby"
        r"|(?:qsub|qstat): cannot connect to server|The connection to the server \S+ was refused",
        ("the scheduler does not answer", "调度器无响应"),
        (
            "nothing while it waits; if it stays so, ask whoever runs the cluster",
            "等待期间不用处理；若一直如此，请联系集群管理员",
        ),
        waits_s=(60.0, 300.0, 900.0, 1800.0),
    ),
    row(
        "SUBMIT",
        Course.FIX_CONFIG,
        r"^(?:sbatch|salloc|srun|qsub|bsub): (?:error|fatal)?:? ?[^\n]{0,80}(?:submission failed"
        r"|Unable to (?:allocate|create step)|[Ii]nvalid|[Uu]nrecognized|not available"
        r"|More processors requested|No command given|QOS\w+|Assoc\w+Limit)|^s(?:run|batch"
        r"|alloc): fatal: ",
        ("the scheduler does not take the job as it is asked for", "调度器不接受这样提交的作业"),
        (
            "correct partition, account and sizes in the profile; sinfo shows what there is",
            "改正 profile 中的分区、账号与资源；sinfo 可查看",
        ),
        where=Where.LINE,
    ),
    row(
        "CONTAINER",
        Course.STOP_QUEUE,
        r"OCI runtime (?:create|exec|start) failed|runc (?:create|run) failed"
        r"|failed to create (?:shim|containerd) task|FailedCreatePodSandBox"
        r"|Error response from daemon: (?!Get )|Cannot connect to the Docker daemon"
        r"|docker: [^\n]{0,40}(?:error|denied)|CreateContainer(?:Config)?Error|RunContainerError"
        r"|InvalidImageName|[Dd]evice plugin [^\n]{0,60}failed|UnexpectedAdmissionError"
        r"|^ERROR  : |^FATAL: +(?:could not open image|container creation failed|[Ww]hile )"
        r"|\benroot-\w+: |squashfuse\w*[^\n]{0,60}(?:failed|error)"
        rf"|{STEPD}(?:pyxis|spank)\w*: ",
        ("the container could not be made or started", "容器无法创建或启动"),
        (
            "look at the image's name, its mounts, and the container runtime of this box; where no "
            "device driver is named, nvidia-container-toolkit is missing there: take another box",
            "检查镜像名、挂载以及本机的容器运行时；若提示没有 device driver，则缺少 "
            "nvidia-container-toolkit：请换机器",
        ),
        types="audit",
        where=Where.LINE,
        is_general=True,
    ),
)

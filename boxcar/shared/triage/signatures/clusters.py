"""Schedulers, containers and what they need before a script runs. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import STEPD, Signature, Where

SIGNATURES = (
    Signature(
        "MUNGE",
        Course.STOP_QUEUE,
        r"^(?:s(?:run|batch|alloc|queue|info)|slurm\w*): (?:error|fatal): [^\n]{0,120}(?:[Mm]unge"
        r"|authentication|configuration source|fetch_config|resolve_ctls)",
        mark("this machine is not set up as part of the cluster"),
        mark("start munge and check slurm.conf, or submit from a login node of the cluster"),
        types="audit",
        where=Where.LINE,
    ),
    Signature(
        "SCHED",
        Course.WAIT_NETWORK,
        r"[Uu]nable to contact slurm controller|Unable to confirm allocation"
        r"|Socket timed out on send/recv operation|Zero Bytes were transmitted or received"
        r"|Slurm temporarily unable to accept|Slurm backup controller in standby"
        r"|(?:qsub|qstat): cannot connect to server|The connection to the server \S+ was refused",
        mark("the scheduler does not answer"),
        mark("nothing while it waits; if it persists, ask the cluster admin"),
        waits_s=(60.0, 300.0, 900.0, 1800.0),
    ),
    Signature(
        "SUBMIT",
        Course.FIX_CONFIG,
        r"^(?:sbatch|salloc|srun|qsub|bsub): (?:error|fatal)?:? ?[^\n]{0,80}(?:submission failed"
        r"|Unable to (?:allocate|create step)|[Ii]nvalid|[Uu]nrecognized|not available"
        r"|More processors requested|No command given|QOS\w+|Assoc\w+Limit)|^s(?:run|batch"
        r"|alloc): fatal: ",
        mark("the scheduler rejects the job as submitted"),
        mark("correct partition, account and sizes in the profile; sinfo lists what is available"),
        where=Where.LINE,
    ),
    Signature(
        "NODELOST",
        Course.RESUME_SAME,
        r"^boxcar: node \d+ of \d+ is lost: ",
        mark("the pod of another node ended or fell silent"),
        mark("nothing: it resumes when the new pod is there. kubectl get pods shows which waits"),
        where=Where.LINE,
        waits_s=(1.0, 1.0, 10.0, *[60.0] * 20),
    ),
    Signature(
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
        mark("the container could not be created or started"),
        mark(
            "check the image name, the mounts and the box's container runtime. 'could not select "
            "device driver' means that nvidia-container-toolkit is missing: use another box"
        ),
        types="audit",
        where=Where.LINE,
        is_general=True,
    ),
)

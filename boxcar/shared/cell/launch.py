"""How an attempt is started: its launcher's command, its environment, the small files it reads.

One pure function says it for the box, for smoke and for rehearse. What each launcher does with a
stop and with an exit code stands in docs/launchers.md.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import PurePath

from boxcar.shared.environment import CREDENTIALS
from boxcar.shared.errors import InputError
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

PYTHON, TORCHRUN, ACCELERATE, DEEPSPEED = "python", "torchrun", "accelerate", "deepspeed"
NONE = "none"  # the words are the command: a console script, a shell script, R
_PATH, _PYTHON_PATH = "PATH", "PYTHONPATH"
_LOOPBACK = "127.0.0.1"
# A stop has one clock, and that is Boxcar's: torchrun would kill its ranks after 30 s.
_SHUTDOWN_S = "70"


@dataclass(frozen=True)
class Machine:
    """Where it starts: the environment there, what finds a free port, its name to other nodes.

    `pods`: how many it has on Kubernetes; `lead` starts what follows it on all of them.
    """

    environ: Mapping[str, str]
    free_port: Callable[[], int]
    host: str = ""
    has_loopback: bool = True
    pods: int = 0
    lead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Start:
    """`files` are written before: text by path."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)


def start(spec: AttemptSpec, machine: Machine, secrets: Mapping[str, str]) -> Start:
    """Raises InputError for a launcher that there is none of, and for too few nodes.

    >>> start(spec, Machine(os.environ, lambda: 29400), {}).argv  # doctest: +SKIP
    ('python', '-u', 'train.py', '--lr', '0.1')
    """
    if spec.launcher not in _LAUNCHERS:
        raise InputError(_("there is no launcher {launcher}", launcher=spec.launcher))
    environ = environment(spec, machine, secrets)
    argv = _LAUNCHERS[spec.launcher](spec, machine, environ)
    files = _accelerate_files(spec) if spec.launcher == ACCELERATE else {}
    return Start(tuple(argv), environ, files)


def ranks_to_form(spec: AttemptSpec) -> int | None:
    """How many ranks have to be seen below its launcher; None where it starts none itself.

    accelerate becomes the script where it is to start one; those on other nodes nobody sees here.
    """
    is_becoming = spec.launcher == ACCELERATE and spec.ranks == 1
    forms_none = spec.launcher in (PYTHON, NONE) or is_becoming
    return None if forms_none or spec.nodes > 1 else spec.ranks


def environment(spec: AttemptSpec, machine: Machine, secrets: Mapping[str, str]) -> dict[str, str]:
    """The machine's, with the cell's own over it and the secrets over that.

    `python_path` comes before what the cell or else the machine has; of the credentials' file
    nobody hears.
    """
    box = machine.environ
    merged = {**_unless_set(spec, machine), **box, **_of_cell(spec), **spec.env, **secrets}
    merged.pop(CREDENTIALS, None)
    parts = (*spec.python_path, merged.get(_PYTHON_PATH))
    if spec.launcher == NONE:
        merged[_PATH] = _with_own_programs(spec.python, merged.get(_PATH, os.defpath))
    return {
        **merged,
        _PYTHON_PATH: os.pathsep.join(filter(None, parts)),
        "PYTHONUNBUFFERED": "1",
    }


def _with_own_programs(python: str, path: str) -> str:
    """The training Python's own first: `tune` of another environment is another program."""
    beside = os.path.dirname(python)  # noqa: PTH120
    return f"{beside}{os.pathsep}{path}" if beside else path


def _unless_set(spec: AttemptSpec, machine: Machine) -> dict[str, str]:
    """What a person or a platform may have set otherwise."""
    found = {
        # A rank that aborts or crashes shows where it was.
        "PYTHONFAULTHANDLER": "1",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": _SHUTDOWN_S,
    }
    # All ranks are on this box. Else gloo looks for its host name, which may lead nowhere, or asks
    # a name server that does not answer.
    if spec.nodes == 1 and machine.has_loopback:
        found["GLOO_SOCKET_IFNAME"] = "lo"
    return found


def _of_cell(spec: AttemptSpec) -> dict[str, str]:
    found = {
        "BOXCAR_RUN": spec.run,
        "BOXCAR_CELL": spec.cell,
        "BOXCAR_OUT": spec.out,
        "BOXCAR_RESUME": spec.resume,
        "BOXCAR_DATA_DIR": spec.data_dir,
    }
    if spec.data:
        found["BOXCAR_DATA"] = spec.data
    # Else the ranks look for each other under the box's host name, which may lead nowhere.
    if spec.launcher == TORCHRUN and spec.nodes == 1:
        found["PET_LOCAL_ADDR"] = _LOOPBACK
    if spec.nodes > 1:
        found["BOXCAR_NODES"] = str(spec.nodes)
    return found


def _by_python(spec: AttemptSpec, machine: Machine, environ: Mapping[str, str]) -> list[str]:
    return [spec.python, "-u", *spec.words]


def _by_none(spec: AttemptSpec, machine: Machine, environ: Mapping[str, str]) -> list[str]:
    return list(spec.words)


def _by_torchrun(spec: AttemptSpec, machine: Machine, environ: Mapping[str, str]) -> list[str]:
    if spec.nodes > 1:
        return _over_nodes(spec, machine)
    # Standalone: each job has its own rendezvous on a free port. A platform may preset PET_NNODES.
    alone = ["--standalone", "--nnodes", "1", "--nproc-per-node", str(spec.ranks)]
    return [*_torchrun(spec), *alone, *spec.words]


def _torchrun(spec: AttemptSpec) -> list[str]:
    return [spec.python, "-m", "torch.distributed.run"]


# --- accelerate

# To start one process, it becomes that. Else the script would hear of no signal, and its exit code
# would be lost.
_BECOME = """\
import os, sys
from accelerate.commands import launch
def become(args):
    asked = args.num_processes or 1
    if asked > 1:
        sys.exit(f"accelerate would start 1 process, {asked} were asked: distributed_type in {args.config_file}")
    command, env = launch.prepare_simple_launcher_cmd_env(args)
    os.execvpe(command[0], command, env)
if hasattr(launch, "prepare_simple_launcher_cmd_env"):
    launch.simple_launcher = become
"""  # noqa: E501
# Without a GPU its ranks train each for itself, unless they are told that it is the CPU's turn.
_ON_CPU = """\
import torch
if not getattr(torch, "accelerator", torch.cuda).is_available():
    os.environ.setdefault("ACCELERATE_USE_CPU", "true")
"""


def _by_accelerate(spec: AttemptSpec, machine: Machine, environ: Mapping[str, str]) -> list[str]:
    program = _BECOME + (_ON_CPU if spec.ranks > 1 else "") + "launch.main()"
    # Port 0: a free one.
    own = ["--num_machines", "1", "--num_processes", str(spec.ranks), "--main_process_port", "0"]
    return [spec.python, "-c", program, "--config_file", _config(spec), *own, *spec.words]


def _accelerate_files(spec: AttemptSpec) -> dict[str, str]:
    """Else a default_config.yaml in the home of the box would decide what is not said."""
    kind = "MULTI_GPU" if spec.ranks > 1 else "NO"
    return {
        _config(spec): f'compute_environment: LOCAL_MACHINE\ndistributed_type: "{kind}"\n',
    }


def _config(spec: AttemptSpec) -> str:
    return str(PurePath(spec.out).with_name("accelerate.yaml"))


# --- deepspeed


def _by_deepspeed(spec: AttemptSpec, machine: Machine, environ: Mapping[str, str]) -> list[str]:
    """Without its runner, which hands no signal on and leaves with 0 where its child was killed."""
    visible = environ.get("CUDA_VISIBLE_DEVICES", "")
    gpus = visible.split(",")[: spec.ranks] if visible else list(range(spec.ranks))
    world = base64.urlsafe_b64encode(json.dumps({"localhost": gpus}).encode()).decode()
    head = [spec.python, "-u", "-m", "deepspeed.launcher.launch", "--world_info", world]
    address = ["--master_addr", _LOOPBACK, "--master_port", str(machine.free_port())]
    if spec.words[:1] == ("-m",):
        return [*head, *address, "--module", *spec.words[1:]]
    return [*head, *address, *spec.words]


# --- several nodes: a torchrun on each, which meet at this one


def _over_nodes(spec: AttemptSpec, machine: Machine) -> list[str]:
    if machine.lead:
        return _over_pods(spec, machine)
    return _over_slurm(spec, machine)


def _meet(spec: AttemptSpec, machine: Machine, among: str) -> list[str]:
    return [
        *("--nnodes", str(spec.nodes), "--nproc-per-node", str(spec.ranks)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{machine.host}:{machine.free_port()}"),
        *("--rdzv-id", f"{among}.{spec.cell}.{spec.attempt}"),
    ]


def _too_few(spec: AttemptSpec, task: str, there: object) -> InputError:
    return InputError(
        _(
            "{cell} needs {nodes} nodes, but its job {task} has {what}: launch again when "
            "that job has ended",
            cell=spec.cell,
            nodes=spec.nodes,
            task=task,
            what=there,
        )
    )


# --- in pods of Kubernetes


def _over_pods(spec: AttemptSpec, machine: Machine) -> list[str]:
    if spec.nodes > machine.pods:
        raise _too_few(spec, machine.host, machine.pods)
    return [*machine.lead, *_torchrun(spec), *_meet(spec, machine, spec.run), *spec.words]


# --- in a job of Slurm

# srun that is told to end kills the step; a signal to the step leaves it time to save. What an srun
# that was killed has left on the other nodes would train beside this attempt.
_AROUND = """\
told=
trap 'told=yes; scancel --signal=TERM "$0"' TERM
for step in $(squeue -h -s -j "$0" -o %i); do
  case "$step" in *.[0-9]*) scancel "$step" ;; esac
done
[ -z "$told" ] || exit 143
"$@" &
while kill -0 "$!" 2>/dev/null; do wait "$!"; done
wait "$!\""""
# Which node has the store is said, because a node may have other names than its host's.
_ON_EACH = """\
export PET_RDZV_CONF=is_host=0
[ "$SLURMD_NODENAME" != "$0" ] || PET_RDZV_CONF=is_host=1
exec "$@\""""


def _over_slurm(spec: AttemptSpec, machine: Machine) -> list[str]:
    """srun starts a torchrun on each node."""
    job, nodes = machine.environ, str(spec.nodes)
    task = _task(job) or machine.host
    if spec.nodes > int(job.get("SLURM_JOB_NUM_NODES") or 1):
        raise _too_few(spec, task, job.get("SLURM_JOB_NUM_NODES") or 1)
    srun = [
        *("srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *("--kill-on-bad-exit=1", "--export=ALL", "--mpi=none"),
        f"--cpus-per-task={job.get('SLURM_CPUS_PER_TASK') or 1}",
    ]
    on_each = ["bash", "-c", _ON_EACH, job.get("SLURMD_NODENAME", "")]
    torchrun = [*_torchrun(spec), *_meet(spec, machine, task), *spec.words]
    return ["bash", "-c", _AROUND, task, *srun, *on_each, *torchrun]


def _task(job: Mapping[str, str]) -> str:
    """Its job's name, by array and index: the job id alone of an array's last task means all."""
    index = job.get("SLURM_ARRAY_TASK_ID")
    own = job.get("SLURM_ARRAY_JOB_ID") or job.get("SLURM_JOB_ID", "")
    return f"{own}_{index}" if index else own


_LAUNCHERS: dict[str, Callable[[AttemptSpec, Machine, Mapping[str, str]], list[str]]] = {
    NONE: _by_none,
    PYTHON: _by_python,
    TORCHRUN: _by_torchrun,
    ACCELERATE: _by_accelerate,
    DEEPSPEED: _by_deepspeed,
}

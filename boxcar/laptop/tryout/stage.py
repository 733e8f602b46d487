"""Where smoke tries are made, and one try: the cell's command as its box would run it, on the CPU.

Everything lies in `.boxcar/smoke/<run>/` and may be removed at any time. One smoke of a run at a
time works there; a try inherits the lock.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common import units
from boxcar.laptop.common.home import Home
from boxcar.laptop.project import cell_faults, data_of_job, short_run
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import archives
from boxcar.laptop.release.code_files import CodeFile
from boxcar.laptop.tryout import code_copy, memory, passes
from boxcar.laptop.tryout.code_copy import CodeCopy
from boxcar.laptop.tryout.fetch_data import ShowProgress, fetch_data, unseen
from boxcar.laptop.tryout.memory import Memory
from boxcar.shared.cell import launch, said, terms
from boxcar.shared.cell.launch import Machine, Start
from boxcar.shared.cell.said import Places, SaidCell
from boxcar.shared.disk import atomic, lock
from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import TemporaryError, reason_of
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.files.plan import Cell
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.triage import exit_signals

# One smoke or rehearsal of a run at a time, and who it is that is there.
#
# Two locks: `.smoke` is the verb's alone, `.lock` is inherited by what it tries. So a try that goes
# on without its verb (which was killed) is told from a verb that works.


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[int]:
    """The descriptor that a try has to inherit. Raises TemporaryError, with who is there."""
    with contextlib.ExitStack() as held:
        _hold(
            held,
            folder / ".smoke",
            mark(
                "{folder}: another smoke or rehearse of this run is at work there (process "
                "{pid}). Wait for it, or end it: kill {pid}"
            ),
            _verbs_pid(folder),
        )
        _note(_verbs_pid(folder), os.getpid())
        fd = _hold(
            held,
            folder / ".lock",
            mark(
                "{folder}: a smoke or rehearse was killed, but its training still runs. End it, "
                "then run this again: kill -- -{pid}"
            ),
            _trys_pid(folder),
        )
        yield fd


def begin_try(folder: Path) -> None:
    """To be called before a try is started: what is noted is of an earlier one."""
    _trys_pid(folder).unlink(missing_ok=True)


def note_try(folder: Path, pid: int) -> None:
    """The try's process, which is also its group."""
    _note(_trys_pid(folder), pid)


def _hold(held: contextlib.ExitStack, file: Path, sentence: str, noted: Path) -> int:
    fd = lock.hold(file)
    if fd is None:
        raise TemporaryError(_who(file, sentence, noted))
    held.callback(os.close, fd)
    return fd


def _who(file: Path, sentence: str, noted: Path) -> Sentence:
    """With the process, if one is noted; else with how a person finds it."""
    try:
        return Sentence(sentence, folder=file.parent, pid=int(noted.read_text()))
    except (OSError, ValueError):
        return _(
            "{folder}: in use by another process. To see which: lsof {file}. Run this again after "
            "it has ended",
            folder=file.parent,
            file=shlex.quote(str(file)),
        )


def _note(file: Path, pid: int) -> None:
    atomic.write_whole(file, f"{pid}\n".encode())


def _verbs_pid(folder: Path) -> Path:
    return folder / ".smoke.pid"


def _trys_pid(folder: Path) -> Path:
    return folder / ".try.pid"


# Two batches on a slow CPU, and the time that large imports take; more is a cell that hangs.
TIMEOUT_S = 600.0
# torchrun leaves its ranks 30 s after it was told to stop, see below.
_GRACE_S = 35.0
_LINES_SHOWN = 20
_TAIL_BYTES = 64 * 1024
# No GPU, and nobody hears of the try. They come over what job.yaml sets.
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ACCELERATE_USE_CPU": "true",
    "DS_ACCELERATOR": "cpu",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "SWANLAB_MODE": "disabled",
    "CLEARML_OFFLINE_MODE": "1",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "30",
}


@dataclass(frozen=True)
class Stage:
    """The folder of the tries, the code that was copied there, and the lock."""

    project: Project
    folder: Path
    held: int
    copy: CodeCopy
    python: str

    @property
    def code(self) -> Path:
        return self.copy.folder

    @property
    def files(self) -> tuple[CodeFile, ...]:
        return self.copy.files

    @property
    def data(self) -> str:
        """The folder of links that {data} stands for, "" where the job has none."""
        return str(self.folder / "data") if self.project.job.data else ""

    def out(self, cell: str) -> Path:
        return self.folder / "cells" / cell / "out"

    def log(self, cell: str) -> Path:
        return self.folder / "cells" / cell / f"{cell}.log"


@contextlib.contextmanager
def prepare(project: Project, python: str, progress: ShowProgress = unseen) -> Iterator[Stage]:
    """A stage with a fresh copy of the code, for tries by that interpreter. `progress`: shows how
    far data from URLs is, which is fetched once.

    Raises InputError, DamagedError, TemporaryError, OSError.
    """
    folder = Home(project.root).smoke(project.plan.run)
    atomic.make_folder(folder)
    with alone_in(folder) as held:
        training(folder).write_bytes(archives.build_training())
        _link_data(
            project, folder / "data", fetch_data(project, python, training(folder), progress)
        )
        yield Stage(project, folder, held, code_copy.copy_code(project, folder / "code"), python)


def _link_data(project: Project, folder: Path, fetched: Mapping[str, Path]) -> None:
    """The person's own folders, and what was fetched, under the names that a box has them by."""
    shutil.rmtree(folder, ignore_errors=True)
    if project.job.data:
        folder.mkdir()
    own = data_of_job.folders_of(project.job).items()
    sources = {name: data_of_job.source_of(project.root, source) for name, source in own}
    for name, source in (sources | {**fetched}).items():
        (folder / name).symlink_to(source)


@dataclass(frozen=True)
class Ended:
    """`why` a try failed, '' where it ended well; whether it was ended for its time; and the most
    memory that it took.
    """

    why: str
    is_late: bool = False
    peak: Memory = Memory()


def try_cell(stage: Stage, cell: Cell) -> Ended:
    out = stage.out(cell.name)
    shutil.rmtree(out.parent, ignore_errors=True)
    out.mkdir(parents=True)
    said.place(out, stage.code, stage.project.plan.links, out.parent)
    begins = start(stage, cell)
    write_files(begins)
    begin_try(stage.folder)
    try:
        with stage.log(cell.name).open("wb") as log:
            process = subprocess.Popen(
                begins.argv,
                cwd=said_cell(stage, cell).workdir,
                env=begins.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(stage.held,),
            )
    except OSError as error:
        return Ended(_("{head}: {text}", head=begins.argv[0], text=reason_of(error)))
    return _wait(stage, process)


def by_hand(stage: Stage, cell: Cell) -> str:
    """What a person types to see the same try."""
    spec = _spec(stage, cell)
    begins = launch.start(spec, replace(_machine(), environ={}), {})
    added = [f"{name}={value}" for name, value in begins.environ.items()]
    words = shlex.join(["env", *added, *begins.argv])
    return f"cd {shlex.quote(spec.workdir)} && {words}"


def tail(log: Path) -> list[str]:
    """The last lines of what a try printed: torchrun's forty about it would hide the reason."""
    end = log_end(log)
    own, _ = exit_signals.parted_by_torchrun(end)
    return (own or end).splitlines()[-_LINES_SHOWN:]


def log_end(log: Path) -> str:
    """The end of a try's log, with what torchrun says in it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        return _("(the log cannot be read: {error})", error=reason_of(error))


def has_printed(log: Path) -> bool:
    """Whether the script printed a line: torchrun warns of the environment before it starts one."""
    own = (line.strip("* ") for line in tail(log))
    return any(line and not _of_torchrun(line) for line in own)


def _of_torchrun(line: str) -> bool:
    return any(word in line for word in ("torch/distributed/", "torch.distributed.run"))


def training(folder: Path) -> Path:
    """What a train script may import of Boxcar."""
    return folder / "training.zip"


# --- the command, as a box has it


def said_cell(stage: Stage, cell: Cell, checkpoint: str = "") -> SaidCell:
    """What is run, as the job makes it short; `checkpoint` is what it resumes from."""
    plan, out = stage.project.plan, str(stage.out(cell.name))
    resume = checkpoint or said.resume_place(out, terms.terms_of_cell(plan, cell.name).resume)
    after, data = _after(stage, cell), stage.data
    places = Places(out, str(stage.code), resume, bool(checkpoint), after, data)
    short = cell_faults.short_run_of_cell(stage.project.job, cell.name)
    return short_run.describe_short_run(plan, cell, places, short)


def _after(stage: Stage, cell: Cell) -> dict[str, str]:
    """What {after} stands for here: a result that was pulled, else what that cell's try left."""
    pulled = {name: stage.project.results.cell(name) for name in cell.own.after}
    return {
        name: str(folder if folder.is_dir() else stage.out(name)) for name, folder in pulled.items()
    }


def start(stage: Stage, cell: Cell, checkpoint: str = "") -> Start:
    """How the cell's try is started, as a box would start it. Raises InputError."""
    return launch.start(_spec(stage, cell, checkpoint), _machine(), _secrets(stage.project))


def write_files(begins: Start) -> None:
    """What a launcher reads when it starts."""
    for path, text in begins.files.items():
        Path(path).write_text(text)


def _machine() -> Machine:
    is_linux = sys.platform == "linux"
    return Machine(clean_environment(os.environ), _free_port, has_loopback=is_linux)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _spec(stage: Stage, cell: Cell, checkpoint: str = "") -> AttemptSpec:
    what, out = said_cell(stage, cell, checkpoint), stage.out(cell.name)
    # What the profile sets is for its boxes' network, and not for this machine's.
    env = {name: value for name, value in what.env.items() if name not in stage.project.plan.env}
    return AttemptSpec(
        run=stage.project.plan.run,
        cell=cell.name,
        attempt=1,
        release="",
        launcher=what.launcher,
        words=what.words,
        env=env | _ENVIRONMENT | {"MLFLOW_TRACKING_URI": f"{out.as_uri()}/mlruns"},
        ranks=passes.ranks(cell),
        nodes=1,
        python=stage.python,
        python_path=(str(training(stage.folder)), *what.python_path),
        workdir=what.workdir,
        out=str(out),
        resume=what.resume,
        data_dir=str(stage.folder),
        durable_dir="",
        credentials="",
        grace_s=_GRACE_S,
        data=stage.data,
    )


def _secrets(project: Project) -> dict[str, str]:
    """Those that are set: with loggers off, most scripts ask for none."""
    return {name: os.environ[name] for name in project.job.secrets if name in os.environ}


# --- the process


def _wait(stage: Stage, process: subprocess.Popen[bytes]) -> Ended:
    try:
        note_try(stage.folder, process.pid)
        code, peak = memory.wait_and_measure(process, TIMEOUT_S)
    except subprocess.TimeoutExpired:
        why = _("it was still running after {time}", time=units.duration(TIMEOUT_S))
        return Ended(why, is_late=True)
    finally:
        _end(process)
    if code < 0:
        return Ended(_("killed by signal {number}", number=-code))
    return Ended(_("exit code {code}", code=code)) if code else Ended("", peak=peak)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell it to stop, as torchrun then ends its ranks; and kill whoever of its group is left."""
    try:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
    finally:  # also where a second Ctrl-C ends the wait
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

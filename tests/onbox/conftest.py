"""A tiny run that is real: release, wrappers, agent and processes, on tmp_path, without the laptop.

Its train script needs no torch and does what its config says, see TRAIN.
"""

from __future__ import annotations

import compileall
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import door
import forked_agent
import forked_attempt
import forked_check
import pytest
from waiting import LIMIT_S, until

from boxcar.laptop.release import archives as bundle
from boxcar.laptop.release import wrappers
from boxcar.shared import state, timestamp
from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.said import Places
from boxcar.shared.disk import atomic as durable
from boxcar.shared.disk import digest
from boxcar.shared.files import attempt_spec, codec, control, journal, manifest, release
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Artifact, Box, Plan
from boxcar.shared.files.release import (
    CODE,
    FILE,
    PLAN,
    RUN_ONE,
    RUN_QUEUE,
    Code,
    Newest,
    Release,
    releases,
    with_newest,
)
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent.runner import Runner
from onbox.agent.slots import Slot, Slots
from onbox.machine import cgroup, place

RUN = "tiny"

# The config's words: `steps` to count to, each saved to latest.json and taken up from there;
# `gate`: wait after the first step until the test opens it; `on_term`: save and leave with this
# code, or "ignore"; `exits` and `writes`: the exit code of each start and the text of its m.json
# (null: no file), the last one for all that follow; `kills_itself`: the signal; `prints`; `child`:
# a daemon that is left behind, and without what; `fills`: the disk, before the first step of the
# first start; `pipes`: where the agent reads, at its end; `appends` and `adds`: files beside the
# code; `links`: one of them, written through a hard link.
TRAIN = """\
import ctypes, json, os, signal, sys, time
from pathlib import Path

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
latest, starts = out / "latest.json", out / "starts"
step = first = json.loads(latest.read_text())["step"] if latest.exists() else 0
count = 1 + len(starts.read_text().split() if starts.exists() else [])


def save():
    (out / "latest.new").write_text(json.dumps({"step": step}))
    (out / "latest.new").replace(latest)


def leave(number, frame):
    save()
    os._exit(config["on_term"])


def of_this_start(word, default):
    values = config.get(word, [default])
    return values[min(count, len(values)) - 1]


def become_daemon(how):
    if os.fork():
        return
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    code = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))"
    words = [sys.executable, "-c", code + "; time.sleep(600)", str(out / "child")]
    if how in ("log", "all"):
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
    os.execve(words[0], words, {} if how in ("environment", "all") else dict(os.environ))


if config.get("on_term") == "ignore":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif "on_term" in config:
    signal.signal(signal.SIGTERM, leave)
(out / "environment.json").write_text(json.dumps(dict(os.environ)))
with starts.open("a") as file:
    file.write(f"{os.getpid()}\\n")
print(config.get("prints", "one step after another"))


def fill():
    with (out / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError as error:
                last = error
    raise last


if "child" in config:
    become_daemon(config["child"])
    while not ((out / "child").exists() and (out / "child").read_text()):
        time.sleep(0.01)
while step < config.get("steps", 1):
    step += 1
    save()
    if "fills" in config and count == 1:
        fill()
    with (out / "progress.jsonl").open("a") as file:
        epoch = {"epoch": config["epoch"]} if "epoch" in config else {}
        file.write(json.dumps({"step": step} | epoch) + "\\n")
    while "gate" in config and not Path(config["gate"]).exists():
        time.sleep(0.01)
for name in [*config.get("appends", []), *config.get("adds", [])]:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    with open(name, "a") as file:
        file.write("\\n")
if "links" in config:
    os.link(config["links"], out / "link")
    with (out / "link").open("a") as file:
        file.write("\\n")
if "pipes" in config and count == 1:
    cell = out.parent
    for path in (out / "progress.jsonl", out / "latest.json", cell / f"{cell.name}.log"):
        path.unlink()
        os.mkfifo(path)
    for name in ("done-2.json", "processes.json.x"):
        os.mkfifo(cell / name)
if "kills_itself" in config and count == 1:
    os.kill(os.getpid(), config["kills_itself"])
document = json.dumps({"step": step, "first": first, "starts": count})
code, text = of_this_start("exits", 0), of_this_start("writes", document)
if code == 0 and text is not None:
    (out / "m.json").write_text(text)
if "aborts_at_exit" in config and count == 1:
    terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev
    at_exit = ctypes.CDLL(None).__cxa_atexit
    at_exit(ctypes.cast(terminate, ctypes.c_void_p), None, None)
if "dies_at_end" in config and count == 1:
    os.kill(os.getpid(), config["dies_at_end"])
sys.exit(code)
"""

# The agent's interpreter with waits of minutes made short, and its modules unpacked and compiled;
# agents and their attempts are forked. Nothing else differs. A wait that ends by itself when all is
# well is left long.
HURRIED = """\
import sys

sys.argv = sys.argv[1:]
sys.path.insert(0, {unpacked!r})
from boxcar.shared.files import plan

plan.GRACE_S = {grace_s}
from onbox.attempt import attempt, stop, watch

# What is forked has loaded these before.
stop.GRACE_S = plan.GRACE_S
watch.LEFTOVER_GRACE_S, attempt._LOCK_TRIES = 0.3, 4
if sys.argv[1] == "agent":
    from boxcar.shared.disk import lock
    from onbox.agent import beat, black_box, early_end, ending, live_metrics, loop, orders
    from onbox.agent import queue_watch, runner, set_up, settler
    from onbox.attempt import leftovers
    from onbox.checkpoint import live_checkpoint
    from onbox.judging import stalls
    from onbox.machine import room_wait, set_up_marks
    from onbox.queue import lines, predecessors, queue_file

    leftovers._GRACE_S = plan.GRACE_S / 2
    ending.FLUSH_S, queue_file.GONE_S, queue_file.STILL_S = 0.2, {gone_s}, 0.3
    predecessors.TOGETHER_S = {together_s}
    put_off = lines.Lines.put_off
    lines.Lines.put_off = lambda self, cell, wait_s: put_off(self, cell, min(wait_s, {later_s}))
    live_checkpoint.SHORTEST_S = orders._LOOK_EVERY_S = 0.1
    queue_watch.FLOOR_S = 0.3
    lock.hold.__defaults__ = (0.3,)
    room_wait.LOOK_EVERY_S = 0.1
    runner.CLAIM_LOOK_EVERY_S = 0.1
    settler.WAITS_S = (0.1, 0.1, 0.1)
    set_up_marks.TWINS, set_up.GRACE_S = set_up.Path({root!r}), 1.0
    beat.EVERY_S = 0.1
    stalls.FLOOR_S, black_box.WITNESS_S = {stall_floor_s}, 0.2
    early_end.ABORT_GRACE_S, live_metrics.EVERY_S = {abort_grace_s}, 2.0
    pausing = loop.Loop.pausing
    loop.Loop.pausing = lambda self, wait_s: pausing(self, min(wait_s, 0.1))
from onbox.__main__ import main

sys.exit(main())
"""


@pytest.fixture(name="until", scope="session")
def _until() -> Callable[..., Any]:
    return until


@dataclass(frozen=True)
class Archives:
    """The agent and what a training may import, built once; and the agent unpacked."""

    onbox: str
    training: str
    files: dict[str, bytes]
    unpacked: Path


@dataclass
class TinyRun:
    """Queue q1 on box-a, q2 on box-b; q1's file has a line for each cell of the release.

    `seen` and `enter` are for a tier in a mount namespace of its own: where we see it, and what
    gets a command in there.
    """

    root: Path
    release: Path
    plan: Plan
    seen: str = ""
    enter: tuple[str, ...] = ()
    log: Path | None = None  # the agents' terminal
    start_agent: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def durable(self) -> DurablePaths:
        return DurablePaths(Path(self.seen + self.plan.durable_dir), RUN)

    def scratch(self, box: str = "box-a") -> ScratchPaths:
        return ScratchPaths(Path(self.seen + self.plan.box(box).data_dir), RUN)

    # --- the agent

    def start(
        self, queue: str = "q1", start_index: int = 0, *start_cell: str
    ) -> subprocess.Popen[bytes]:
        """An agent, as `launch` would start it."""
        return self.run(RUN_QUEUE, queue, str(start_index), *start_cell)

    def finish(self, queue: str = "q1", start_index: int = 0, *start_cell: str) -> int:
        """An agent from its start to its end; its exit code."""
        return self.start(queue, start_index, *start_cell).wait(LIMIT_S)

    def attempt(self, cell: str, number: int = 1) -> subprocess.Popen[bytes]:
        """One attempt at a cell, as the agent would start it, with no agent around it."""
        code = self.scratch().code(self.release.name)
        if not code.exists():
            code.parent.mkdir(parents=True)
            code.symlink_to(self.release / CODE)
        path = self.scratch().spec(cell, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        attempt_spec.write_attempt_spec(path, self.spec(cell, number))
        return self.run(RUN_ONE, str(path))

    def spec(self, cell: str, number: int = 1) -> AttemptSpec:
        made, found = release.read_plan(self.release), release.read_release(self.release)
        where = place.of_queue(made, self.release, found, "q1")
        silent = SimpleNamespace()
        slots = Slots(where, silent)
        runner = Runner(where, found, silent, silent, slots=slots, wake=lambda: None)
        code, out = self.scratch().code(self.release.name), str(self.out(cell))
        line = CellLine(0, 1, cell, f"configs/{cell}.json", "count", 3)
        places = Places(out, str(code), said.resume_place(out, made.resume))
        return runner.spec(line, number, said.say_cell(made, line, places), Slot())

    def run(self, wrapper: str, *words: str) -> subprocess.Popen[bytes]:
        is_agent = wrapper == RUN_QUEUE and not self.enter
        start = self.start_agent if is_agent else subprocess.Popen
        with (self.log or self.root / "agent.log").open("ab") as log:
            process = start(
                [*self.enter, "bash", f"{self.release}/{wrapper}", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={name: os.environ[name] for name in ("PATH", "HOME")},
            )
        self.agents.append(process)
        return process

    @property
    def said(self) -> str:
        """What the agents said on their terminal."""
        return (self.root / "agent.log").read_text()

    def ask(self, want: str, queue: str = "q1") -> None:
        asked = codec.to_document(control.Control(want, timestamp.utc_now()))
        durable.write_whole(self.durable.control(queue), asked)

    def open_gate(self) -> None:
        (self.root / "gate").touch()

    def append(self, *lines: str, queue: str = "q1") -> None:
        with self.durable.queue(queue).open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def push(
        self,
        archives: Archives,
        cells: Mapping[str, Mapping[str, Any]],
        *,
        train: str = TRAIN,
        files: Mapping[str, bytes] | None = None,
        **changes: Any,
    ) -> Path:
        """A further release with these cells' configs only, and the pointer to it. `files` take the
        place of others.
        """
        files = {f"{CODE}/train.py": train.encode(), **(files or {})}
        for name, config in cells.items():
            files[f"{CODE}/configs/{name}.json"] = json.dumps(config).encode()
        release = write_release(replace(self.plan, **changes), archives, files, self.seen)
        path = self.durable.newest
        pushed = with_newest(releases(path), release.name)
        durable.write_whole(path, codec.to_document(Newest(pushed, timestamp.utc_now())))
        return release

    def end(self) -> None:
        """End what a test has left: by the id of what it started, and by the name of its folder."""
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.fsencode(self.root) in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

        for record in self.root.glob("*/boxcar/*/cells/*/running.json"):
            with contextlib.suppress(ValueError, OSError):
                group = json.loads(record.read_bytes()).get("cgroup")
                until(lambda group=group: not group or is_removed(Path(group)))

    # --- what came of it

    def is_alive(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] not in "ZX"
        return False

    def events(self, *types: str, cell: str | None = None, queue: str = "q1") -> list[Event]:
        """The journal's events, of these types and this cell where they are given."""
        return [
            event
            for event in journal.read_journal(self.durable.journal(queue)).events
            if (not types or event.type in types) and cell in (None, event.cell)
        ]

    def life(self, cell: str, queue: str = "q1") -> list[str]:
        """The cell's own events, in order, without those that tell of its progress."""
        types = [event.type for event in self.events(cell=cell, queue=queue)]
        return [
            type.removeprefix("cell.")
            for type in types
            if type.startswith("cell.") and type != "cell.progress"
        ]

    def wait_for(self, type: str, cell: str | None = None, count: int = 1) -> Event:
        """The event of this type (and cell), once there are so many of them."""
        return until(lambda: self.events(type, cell=cell)[count - 1 :], (type, cell))[0]

    def warnings(self, what: str, queue: str = "q1") -> list[str]:
        return [event.data["text"] for event in self._warnings(what, queue)]

    def wait_for_warning(self, what: str, queue: str = "q1") -> Event:
        """The first of its kind: another test's orphan may be a stranger that is warned of."""
        found = until(lambda: self._warnings(what, queue), what)
        return found[0]

    def _warnings(self, what: str, queue: str) -> list[Event]:
        found = self.events("box.warning", queue=queue)
        return [event for event in found if event.data["what"] == what]

    def state(self, cell: str, queue: str = "q1") -> str:
        return state.replay(self.events(queue=queue)).cell(cell).state.word

    def result(self, cell: str) -> Any:
        """The published m.json, once every file is found to be as the manifest says."""
        made = manifest.read_manifest(self.durable.manifest(cell))
        assert manifest.compare(self.durable.cell(cell), made.files) == []
        assert "m.json" in {file.path for file in made.files}
        return json.loads((self.durable.cell(cell) / "m.json").read_bytes())

    def out(self, cell: str, box: str = "box-a") -> Path:
        return self.scratch(box).out(cell)

    def starts(self, cell: str, box: str = "box-a") -> list[int]:
        """The process ids of the cell's scripts, one for each start that this scratch has seen."""
        path = self.out(cell, box) / "starts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def wait_for_looks(self, count: int = 3, queue: str = "q1") -> None:
        """Until the agent's loop has gone round, and looked at all that it looks at."""
        beats = self.durable.heartbeat(queue)
        until(beats.exists, "the first beat")
        for _ in range(count):
            before = beats.read_bytes()
            until(lambda before=before: beats.read_bytes() != before)

    def wait_for_step(self, cell: str, step: int = 1) -> int:
        """The process id of the cell's script, once it has saved this step."""
        latest = self.out(cell) / "latest.json"
        until(lambda: latest.exists() and json.loads(latest.read_text())["step"] >= step, cell)
        return self.starts(cell)[-1]


def is_removed(group: Path) -> bool:
    cgroup.remove(group)
    return not group.exists()


MakeRun = Callable[..., TinyRun]


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    onbox, training = bundle.build_onbox(), bundle.build_training()
    unpacked = tmp_path_factory.mktemp("onbox")
    zipfile.ZipFile(BytesIO(onbox)).extractall(unpacked)
    for name in ("onbox", "boxcar", "watchdog"):
        compileall.compile_dir(unpacked / name, quiet=2)
    names = (
        bundle.file_name("onbox", onbox, ".pyz"),
        bundle.file_name("training", training, ".zip"),
    )
    return Archives(*names, dict(zip(names, (onbox, training), strict=True)), unpacked)


@pytest.fixture(scope="session")
def build_run(archives: Archives) -> MakeRun:
    """`build_run(root, {"a": {config}}, is_hurried=False, **changes_of_the_plan)`."""
    return functools.partial(build, archives)


@pytest.fixture
def make_run(tmp_path: Path, build_run: MakeRun) -> Iterator[MakeRun]:
    """`build_run` on tmp_path; what is left of it is ended with the test."""
    made: list[TinyRun] = []

    def make(cells: Mapping[str, Mapping[str, Any]], **changes: Any) -> TinyRun:
        made.append(build_run(tmp_path, cells, **changes))
        return made[-1]

    yield make
    for run in made:
        run.end()


def build(
    archives: Archives,
    root: Path,
    cells: Mapping[str, Mapping[str, Any]],
    *,
    is_hurried: bool = True,
    train: str = TRAIN,
    gone_s: float = 2.0,
    together_s: float = 0.3,
    later_s: float = 0.1,
    stall_floor_s: float = 900.0,
    abort_grace_s: float = 0.5,
    is_stubborn: bool = False,
    seen: str = "",
    enter: tuple[str, ...] = (),
    code: Mapping[str, str] = MappingProxyType({}),
    **changes: Any,
) -> TinyRun:
    is_stubborn = is_stubborn or any(
        "child" in one or one.get("on_term") == "ignore" for one in cells.values()
    )
    waits = {"grace_s": 1 if is_stubborn else 60, "gone_s": gone_s, "together_s": together_s}
    waits |= {"later_s": later_s, "stall_floor_s": stall_floor_s, "abort_grace_s": abort_grace_s}
    pythons = {}
    if is_hurried:
        pythons["agent_python"] = _hurried_python(root, archives, waits)
        pythons["training_python"] = forked_check.python()
    plan = make_plan(root, **pythons | changes)
    files = {f"{CODE}/train.py": train.encode()}
    files |= {f"{CODE}/{name}": text.encode() for name, text in code.items()}
    for name, config in cells.items():
        gate = {"gate": str(root / "gate")} if "gate" in config else {}
        files[f"{CODE}/configs/{name}.json"] = json.dumps({**config, **gate}).encode()
    run = TinyRun(root, write_release(plan, archives, files, seen), plan, seen, enter)
    if is_hurried:
        run.start_agent = forked_agent.kind(archives.unpacked)
    for folder in run.durable.folders():
        folder.mkdir(parents=True, exist_ok=True)
    run.append(*(f"configs/{name}.json count 3" for name in cells))
    return run


def make_plan(root: Path, **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "run": RUN, "profile": "local", "durable_dir": str(root / "tier"),
        "boxes": tuple(
            Box(name, str(root / name), str(root / f"{name}.credentials.json"))
            for name in ("box-a", "box-b")
        ),
        "queues": {"q1": "box-a", "q2": "box-b"}, "cells": (),
        "command": ("train.py", "{cfg}", "{out}"), "launcher": "python", "nproc": 1,
        "cell_nproc": {}, "epochs": None, "artifacts": (Artifact("m.json", ("step",)),),
        "resume": "latest.json", "scratch": (), "env": {}, "secrets": (), "linger_s": 0,
        "agent_python": sys.executable, "training_python": sys.executable,
    }  # fmt: skip
    return Plan(**values | changes)


def write_release(
    plan: Plan, archives: Archives, files: Mapping[str, bytes], seen: str = ""
) -> Path:
    """As the laptop writes it, under the digest of its list of files."""
    made = {
        **archives.files,
        PLAN: codec.to_document(plan),
        RUN_QUEUE: wrappers.render_run_queue(plan, "", archives.onbox).encode(),
        RUN_ONE: wrappers.render_run_one(plan, "").encode(),
        **files,
    }
    records = tuple(FileRecord(n, len(d), digest.of_bytes(d)) for n, d in sorted(made.items()))
    described = Release(RUN, archives.onbox, archives.training, Code(None, False), records)
    folder = DurablePaths(Path(plan.durable_dir), RUN).release(described.digest)
    for name, data in {**made, FILE: codec.to_document(described)}.items():
        path = Path(f"{seen}{folder}", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def _hurried_python(root: Path, archives: Archives, waits: Mapping[str, float]) -> str:
    script, python = root / forked_attempt.HURRIED, root / "hurried-python"
    at = forked_attempt.door_of(archives.unpacked)
    ask = door.ask(at) if at else ":\n"
    script.write_text(HURRIED.format(unpacked=str(archives.unpacked), root=str(root), **waits))
    python.write_text(
        "#!/bin/bash\n"
        f'if [ "$3" = -c ]; then exec {sys.executable} "$@"; fi\n'
        f'if [ -n "${forked_agent.TOLD}" ] && [ "$4" = agent ]; then\n'
        f'printf "%s\\0" {script} "${{@:3}}" "" >"${forked_agent.TOLD}"\n'
        f'cat /proc/$$/environ >"${forked_agent.TOLD}"\n'
        "exit\n"
        "fi\n"
        f'if [ "$4" = attempt ]; then\n{ask}fi\n'
        f'exec {sys.executable} -I -S {script} "${{@:3}}"\n'
    )
    python.chmod(0o755)
    return str(python)


@dataclass(frozen=True)
class SmallTier:
    """A durable tier of its own, in a mount namespace of its own; `enter` gets a command there."""

    folder: Path
    enter: tuple[str, ...]
    seen: str

    def fill(self, left_bytes: int) -> None:
        """Take all but `left_bytes` of its room."""
        disk = os.statvfs(f"{self.seen}{self.folder}")
        size_bytes = disk.f_bavail * disk.f_frsize - left_bytes
        with contextlib.suppress(OSError):  # somebody else wrote meanwhile
            self._filler.write_bytes(bytes(size_bytes))

    def make_room(self) -> None:
        self._filler.unlink()

    def make_read_only(self) -> None:
        # Busy for as long as somebody writes in there; the agent does several times a second.
        remount = 'until mount -o remount,bind,ro "$1" 2>/dev/null; do sleep 0.01; done'
        self._shell(f'mount --bind "$1" "$1" && {remount}')

    def make_writable(self) -> None:
        self._shell('umount "$1"')

    @property
    def _filler(self) -> Path:
        return Path(f"{self.seen}{self.folder}", "filler")

    def _shell(self, text: str) -> None:
        words = [*self.enter, "sh", "-c", text, "sh", str(self.folder)]
        subprocess.run(words, check=True, timeout=LIMIT_S)


@pytest.fixture
def small_tier(tmp_path: Path) -> Iterator[SmallTier]:
    """100 MB of memory, mounted where nobody else sees it; a skip where that is not permitted."""
    folder = tmp_path / "tier"
    folder.mkdir()
    mount = 'mount -t tmpfs -o size=100m tmpfs "$1" && echo mounted && exec sleep 600'
    try:
        holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", mount, "sh", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    with holder:
        assert holder.stdout
        said = holder.stdout.readline().decode().strip()
        if said != "mounted":
            holder.wait()
            pytest.skip(f"a file system cannot be mounted here: {said}")
        enter = ("nsenter", "-t", str(holder.pid), "-m")
        yield SmallTier(folder, enter, f"/proc/{holder.pid}/root")
        holder.kill()

"""A tiny project and the `boxcar` program, as a person has them, in any folder.

Its cells are trained by the standard library alone and leave JSON, so that a run takes seconds.
What lies on the disk is read here without Boxcar's own code: the tests are a second opinion.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, TypeVar

import forked_check
import quick_python
import yaml
from forked_verb import MOUNTS_OF, QUICK_BOXES, ForkedVerb
from waiting import LIMIT_S, until

from boxcar.shared.disk import lock

T = TypeVar("T")
P = TypeVar("P", bound="TinyProject")

BOXCAR = Path(sys.executable).with_name("boxcar")
RUN = "tiny"

# Counts to `epochs`, saves every step, goes on from there, and writes down each start and step, so
# that a test sees what was done twice. At `hold_at` it waits until a test lets it go.
TRAIN = """
import argparse, json, os, signal, sys, time
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("config", "task", "epochs", "out"):
    parser.add_argument("--" + name, required=True)
asked = parser.parse_args()
config, out = json.loads(Path(asked.config).read_text()), Path(asked.out)
latest, told = out / "latest.json", []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
step = json.loads(latest.read_text())["step"] if latest.exists() else 0

def save(path, record):
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(record))
    new.replace(path)

with (out / "history.txt").open("a") as history:
    print("start", step, file=history, flush=True)
    while step < int(asked.epochs):
        time.sleep(config.get("seconds", 0))
        step += 1
        print("step", step, file=history, flush=True)
        save(latest, {"step": step})
        with (out / "progress.jsonl").open("a") as progress:
            print(json.dumps({"step": step}), file=progress)
        while step == config.get("hold_at") and not Path(config["until"]).exists() and not told:
            time.sleep(0.02)
        if told:
            sys.exit(85)
print("trained", asked.config, asked.task, flush=True)
if exit_code := config.get("exit_code"):
    sys.exit(exit_code)
save(out / "model.json", {"weights": [config.get("x", 1) * n for n in range(50)], "steps": step})
save(out / "metrics.json", {"score": step + 0.5, "task": asked.task, "x": config.get("x", 1)})
"""
ARTIFACTS = ["model.json", "metrics.json"]
JOB: dict[str, Any] = {
    "name": RUN,
    "command": "train.py --config {cfg} --task {task} --epochs {epochs} --out {out}",
    "launcher": "python",
    "nproc_per_node": 1,
    "epochs": 2,
    "artifacts": ARTIFACTS,
    "resume": "latest.json",
}


@dataclass(frozen=True)
class Said:
    """How a verb ended, and what it said."""

    words: str
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What is on stdout, which must be one JSON document and nothing else; of `watch`, which
        says one in each line, the last."""
        is_watched = "watch" in self.words.split()
        texts = self.out.splitlines() if is_watched else [self.out]
        try:
            return [json.loads(text) for text in texts][-1]
        except ValueError as error:
            raise AssertionError(f"stdout is not one JSON document ({error}): {self}") from error

    def ended(self, code: int) -> Said:
        """Itself, once its exit code is the expected one."""
        assert self.code == code, f"expected exit code {code}: {self}"
        assert "Traceback" not in self.out + self.err, str(self)
        return self

    def __str__(self) -> str:
        return f"{self.words}: exit code {self.code}\n{self.out}\n{self.err}"


@dataclass(frozen=True)
class TinyProject:
    """A folder with job.yaml, queues/, configs/ and train.py, in which verbs are typed.

    `before` are words in front of each verb, such as those that enter a mount namespace; `seen` is
    then where that namespace's root is seen from here. Without `before`, or where `mounts_of` says
    whose mounts these are, verbs are forked, which is quicker; and so is much of what a local box
    starts, unless `is_quick` is false.
    """

    root: Path
    run: str = RUN
    before: tuple[str, ...] = ()
    seen: Path = Path("/")
    mounts_of: int | None = None
    is_forked: bool = True
    is_quick: bool = True

    @property
    def as_programs(self: P) -> P:
        """Itself, whose verbs start as a person's do, and have command lines of their own."""
        return replace(self, is_forked=False)

    def boxcar(
        self, *words: str, typed: str | None = None, env: Mapping[str, str] | None = None
    ) -> Said:
        """Type a verb and wait for its end; `typed` is the line that a person answers with."""
        stdin = subprocess.PIPE if typed is not None else subprocess.DEVNULL
        with self.start(*words, env=env, stdin=stdin) as process:
            try:
                line = f"{typed}\n" if typed is not None else None
                out, err = process.communicate(line, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += f"\nkilled after {LIMIT_S:.0f} s. {self.told()}"
        return Said(f"boxcar {shlex.join(words)}", process.returncode, out, err)

    def start(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:
        """Start a verb, and do not wait for its end."""
        env = environment() | dict(env or {})
        start, before = subprocess.Popen, self.before
        if self.is_forked and (self.mounts_of or not before):
            start, before = ForkedVerb, ()
            env |= {MOUNTS_OF: str(self.mounts_of)} if self.mounts_of else {}
            env |= _quick_boxes() if self.is_quick else {}
        return start(
            [*before, str(BOXCAR), *words],
            cwd=self.root,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def agent(self, queue: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """The last release's agent in the foreground, behind the words of `before`."""
        releases = (self.tier / "releases").iterdir()
        wrapper = max(releases, key=lambda folder: folder.stat().st_mtime) / "run_queue.sh"
        return subprocess.run(
            [*before, "bash", str(wrapper), queue],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    # --- what a person writes

    def write_job(self, **changes: Any) -> None:
        """job.yaml: JOB and the queue files with these changes; what is None is left out.

        The first queue runs on box-a, the second on box-b, and so on.
        """
        files = sorted((self.root / "queues").glob("*.txt"))
        boxes = {
            f"queues/{file.name}": f"box-{at}"
            for file, at in zip(files, ascii_lowercase, strict=False)
        }
        job = JOB | {"queues": boxes} | changes
        job = {key: value for key, value in job.items() if value is not None}
        (self.root / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False, width=1000))

    def write_config(self, name: str, **config: Any) -> str:
        """A config, and its path as a queue line has it."""
        path = self.root / "configs" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(config))
        return f"configs/{name}.json"

    def hold(self, name: str, at: int, **config: Any) -> str:
        """A config whose cell waits after that step, until `let_go`."""
        return self.write_config(name, hold_at=at, until=str(self._go(name)), **config)

    def let_go(self, name: str) -> None:
        self._go(name).touch()

    def _go(self, name: str) -> Path:
        return self.root.with_name(f"{self.root.name}-go-{name}")

    def append(self, queue: str, *lines: str) -> None:
        """Lines at the end of a local queue file."""
        path = self.root / "queues" / f"{queue}.txt"
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    # --- what Boxcar leaves

    @property
    def local(self) -> Path:
        """What the local profile makes of this machine: boxes/ and durable/."""
        return self.seen / self.root.relative_to("/") / ".boxcar" / "local"

    @property
    def tier(self) -> Path:
        return self.local / "durable" / "boxcar" / self.run

    def box(self, box: str) -> Path:
        return self.local / "boxes" / box / "boxcar" / self.run

    @property
    def results(self) -> Path:
        return self.seen / self.root.relative_to("/") / "results" / self.run

    def out(self, box: str, cell: str) -> Path:
        return self.box(box) / "cells" / cell / "out"

    @property
    def releases(self) -> set[str]:
        return {path.name for path in (self.tier / "releases").iterdir()}

    def events(self, queue: str) -> list[dict[str, Any]]:
        """Every event of a queue's journal; a last line that is still being written is not one."""
        path = self.tier / "journal" / f"{queue}.jsonl"
        data = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def types(self, queue: str, cell: str | None = None) -> list[str]:
        """The types of the queue's events, or only of those about a cell."""
        events = self.events(queue)
        return [e["type"] for e in events if cell is None or e["data"].get("cell") == cell]

    def warnings(self, queue: str, what: str) -> list[dict[str, Any]]:
        """What was warned of that; of another test's orphan there may be a warning, too."""
        warned = [e["data"] for e in self.events(queue) if e["type"] == "box.warning"]
        return [data for data in warned if data["what"] == what]

    def all_events(self) -> list[dict[str, Any]]:
        paths = sorted((self.tier / "journal").glob("*.jsonl"))
        return [event for path in paths for event in self.events(path.stem)]

    def agent_log(self, queue: str) -> str:
        """What the agents of the queue said to nobody in particular."""
        logs = self.local.glob(f"boxes/*/boxcar/*/agent-{queue}.log")
        return "".join(log.read_text() for log in logs)

    # --- waiting

    def wait_for(self, what: str, look: Callable[[], T]) -> T:
        """What `look` gives once it is true; if it never is, what there was to be seen instead."""
        return until(look, lambda: f"{what}. {self.told()}")

    def wait_for_event(self, queue: str, type: str, cell: str | None = None) -> None:
        """Until the journal has an event of this type, of that cell if one is named."""
        self.wait_for(f"{type} {cell or ''} in {queue}", lambda: type in self.types(queue, cell))

    def wait_for_step(self, box: str, cell: str, step: int) -> None:
        """Until the cell's checkpoint holds this step."""
        latest = self.out(box, cell) / "latest.json"
        self.wait_for(
            f"step {step} of {cell}",
            lambda: latest.exists() and json.loads(latest.read_text())["step"] >= step,
        )

    def wait_for_agents(self) -> None:
        """Until every agent that was started has said its last word and holds its queue no more."""
        self.wait_for("the end of each agent", lambda: not self._has_agents())

    def _has_agents(self) -> bool:
        for path in (self.tier / "journal").glob("*.jsonl"):
            types = [t for t in self.types(path.stem) if t in ("agent.started", "agent.stopped")]
            if types[-1:] != ["agent.stopped"]:
                return True
        return any(lock.is_held(path) for path in (self.tier / "locks").glob("*.lock"))

    def told(self) -> str:
        """The end of every agent's log and journal, for the message of a test that fails."""
        patterns = ("agent-*.log", "cells/*/*.log", "journal/*.jsonl")
        files = [path for pattern in patterns for path in self.local.rglob(pattern)]
        return "\n".join(f"--- the end of {path}\n{_tail(path)}" for path in files)


MakeProject = Callable[..., TinyProject]


def make_project(root: Path, queues: Mapping[str, Sequence[str]], **job: Any) -> TinyProject:
    """A project in `root` with these queues (lines of each), its configs all `{"x": 3}`.

    A config that a line names is written unless it is there. `job` changes JOB.
    """
    project = TinyProject(root, job.get("name", RUN))
    root.mkdir(parents=True, exist_ok=True)
    (root / "train.py").write_text(TRAIN)
    for queue, lines in queues.items():
        project.append(queue, *lines)
        for line in lines:
            name = Path(shlex.split(line)[0]).stem
            if not (root / "configs" / f"{name}.json").exists():
                project.write_config(name, x=3)
    project.write_job(**job)
    return project


def _quick_boxes() -> dict[str, str]:
    return {QUICK_BOXES: os.pathsep.join((quick_python.here(), forked_check.python()))}


def environment() -> dict[str, str]:
    """A person's shell, without what another Boxcar may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BOXCAR_")}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-1500:].decode("utf-8", "replace")
    except FileNotFoundError:
        return "(it is gone)"

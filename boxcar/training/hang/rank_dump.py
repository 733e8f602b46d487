"""What one rank says of itself when no step comes any more: {out}/hang/rank_00001.json.

Each rank writes its own file, whole; all ranks read all of them, and so may a laptop later. A rank
that has left writes one too, and the last that leaves well removes them all.
"""

from __future__ import annotations

import dataclasses
import gc
import io
import json
import os
import pickle
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.training import torch_private
from boxcar.training.hang import stacks
from boxcar.training.hang.stacks import CodeLine, Frame

# --- torch's flight recorder: the last collectives that this rank handed to its backend.
# NCCL has one in all versions, gloo since torch 2.8. It is on by default in new versions; desync.py
# switches it on everywhere. Nothing here is called while all is well.
# Not covered: what is pending inside a CUDA collective that torch did not see start.


MOST_COLLECTIVES = 20


def last_collectives(*, with_stacks: bool) -> list[dict[str, Any]]:
    """The last collectives, oldest first.

    Each has `collective`, `seq` in its `group`, `is_pending`, `sizes`, `frames`.
    Empty where the recorder is off, or the backend has none. Stacks take torch a second, the first
    time.
    """
    try:
        dump = torch_private.collectives(with_stacks=with_stacks)
        entries = _Plain(io.BytesIO(dump)).load().get("entries", []) if dump else []
        return [_entry(entry) for entry in entries[-MOST_COLLECTIVES:]]
    except (RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError, EOFError):
        # An aid, and its form is torch's own affair: a diagnosis must not die of it.
        return []


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "collective": entry["profiling_name"].rpartition(":")[2],
        "seq": entry.get("collective_seq_id"),
        # Each group counts for itself.
        "group": str(entry.get("process_group")),
        # gloo never says "completed"; an entry that is done with is retired.
        "is_pending": entry.get("state") != "completed" and not entry.get("retired"),
        "sizes": entry.get("input_sizes"),
        "frames": [_frame(frame) for frame in reversed(entry.get("frames", []))],
    }


def _frame(frame: dict[str, Any]) -> Frame:
    file, name = frame["filename"], frame["name"]
    # The recorder knows no modules.
    module = ".".join(["torch", *file.rpartition("/torch/")[2].removesuffix(".py").split("/")])
    return Frame(file, frame["line"], name, module if "/torch/" in file else "")


class _Plain(pickle.Unpickler):
    """torch's C++ gives lists, dicts, texts and numbers, spelled as a pickle; anything else is
    refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


_CLOCKS_DIFFER_S = 5.0


@dataclass(frozen=True)
class Attempt:
    """Which start of the job this process belongs to, so that an earlier one's files are not
    believed: they may lie in the same folder, and a retry may have the same port."""

    group: str
    host: str
    """The node: its name in Slurm where it has one, because one host may be several nodes."""
    launcher: int
    since: str

    @classmethod
    def of_this_process(cls, env: Mapping[str, str]) -> Attempt:
        names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
        group = "/".join(env.get(name, "") for name in names)
        # Ranks that somebody started by hand have no parent in common.
        launcher = os.getppid() if env.get("TORCHELASTIC_RUN_ID") else 0
        host = env.get("SLURMD_NODENAME") or socket.gethostname()
        return cls(group, host, launcher, timestamp.utc_now())

    def has(self, group: str, host: str, launcher: int, at: str) -> bool:
        """Whether what these four stand in was written by this start of the job."""
        if group != self.group:
            return False
        if host == self.host and self.launcher:
            return launcher == self.launcher
        # What was written before we began, on another node or without torchrun, is of an earlier
        # start.
        return timestamp.seconds_between(at, self.since) < _CLOCKS_DIFFER_S

    def now(self) -> dict[str, Any]:
        """What a file of this attempt says of its origin."""
        origin = {"group": self.group, "host": self.host, "launcher": self.launcher}
        return {**origin, "pid": os.getpid(), "at": timestamp.utc_now()}


FORMAT = "boxcar.hang-rank/1"
# Words of an error that a rank has because another one is gone, or called something else.
_FOLLOWS = re.compile(
    r"Connection (closed|reset) by|Timed out (waiting|after)|Socket (closed|Timeout)|Broken pipe"
    r"|mismatch between collectives|preamble\.length|monitoredBarrier|Watchdog caught"
    r"|NCCL (error|communicator)|ncclRemoteError|failed to recv|wait timeout after",
    re.IGNORECASE,
)
_FOLLOWING_TYPES = ("DistBackendError", "DistNetworkError", "DistStoreError")


@dataclass(frozen=True)
class RankDump:
    """One rank at one moment. `places` are the user's frames, the outermost first."""

    rank: int
    world: int
    state: str
    """running | raised | aborted (in C++) | left"""
    step: int | None = None
    waits: str = "compute"
    """collective | loader | compute | nothing (it has left)"""
    collective: str | None = None
    is_patient: bool = False
    """It waits where another rank may well work for long (stall.patient)."""
    places: tuple[CodeLine, ...] = ()
    last_step_at: CodeLine | None = None
    error: str = ""
    is_follower: bool = False
    """The error is what a rank gets when another one is gone."""
    loader_lengths: tuple[int, ...] = ()
    """Batches of each DataLoader that is alive, where they are known."""
    group: str = ""
    host: str = ""
    launcher: int = 0
    """torchrun's process on this host; 0 without one."""
    pid: int = 0
    at: str = ""
    silent_s: float = 0.0
    collectives: tuple[dict[str, Any], ...] = ()
    threads: str = ""
    py_spy: str = ""
    """Of dumps that py-spy was asked for; nobody asks it any more."""

    @property
    def place(self) -> CodeLine | None:
        """The user's own line."""
        return self.places[-1] if self.places else None


def take(
    attempt: Attempt,
    rank: int,
    world: int,
    frames: Sequence[Frame],
    *,
    is_idle: bool = False,
    error: BaseException | None = None,
    **facts: Any,
) -> RankDump:
    """Look at this process, which is at `frames`.

    `is_idle`: its main thread used no CPU lately, so a backward pass that it is in waits for the
    gradients of others.
    """
    entries = last_collectives(with_stacks=_on_gpu()) if world > 1 else []
    name, frames = _waits_in(world, frames, entries, is_sure=is_idle or error is not None)
    is_follower = error is not None and name is not None and follows(error)
    in_loader = "loader" if stacks.waits_for_loader(frames) else "compute"
    return RankDump(
        rank=rank,
        world=world,
        state="raised" if error else "running",
        waits="collective" if name else in_loader,
        collective=name,
        places=tuple(stacks.code_line_of_frame(frame) for frame in stacks.users(frames)),
        error=f"{type(error).__name__}: {error}"[:2000] if error else "",
        is_follower=is_follower,
        loader_lengths=_loader_lengths(),
        collectives=tuple({**entry, "frames": str(entry["frames"][:1])} for entry in entries),
        threads=stacks.all_threads(),
        **attempt.now(),
        **facts,
    )


def left(
    attempt: Attempt, rank: int, world: int, frames: Sequence[Frame], **facts: Any
) -> RankDump:
    """This rank goes, without an error that anybody knows of."""
    places = tuple(stacks.code_line_of_frame(frame) for frame in stacks.users(frames))
    return RankDump(
        rank=rank,
        world=world,
        state="left",
        waits="nothing",
        places=places,
        loader_lengths=_loader_lengths(),
        **attempt.now(),
        **facts,
    )


def follows(error: BaseException) -> bool:
    """Whether this error only says that another rank is gone, or was elsewhere."""
    # A TemporaryError of ours has torch's own error as its cause.
    is_told = type(error).__name__ in _FOLLOWING_TYPES or (
        isinstance(error, RuntimeError) and bool(_FOLLOWS.search(str(error)))
    )
    return is_told or (error.__cause__ is not None and follows(error.__cause__))


def path_of(folder: Path, rank: int) -> Path:
    return folder / f"rank_{rank:05d}.json"


def write(folder: Path, dump: RankDump) -> None:
    """Raises OSError."""
    atomic.make_folder(folder)
    text = json.dumps({"format": FORMAT, **dataclasses.asdict(dump)}, indent=1) + "\n"
    atomic.write_whole(path_of(folder, dump.rank), text.encode(errors="replace"))


def read_all(folder: Path, attempt: Attempt | None = None) -> list[RankDump]:
    """The dumps that lie there, by rank; `attempt` leaves out those of another one.

    A file that is no dump is left out and said on stderr: the others still tell something.
    """
    dumps = [dump for path in sorted(folder.glob("rank_*.json")) if (dump := read(path))]
    return [
        dump
        for dump in dumps
        if attempt is None or attempt.has(dump.group, dump.host, dump.launcher, dump.at)
    ]


def read(path: Path) -> RankDump | None:
    """One dump; None where there is none, or where it is none, which is said on stderr."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in dataclasses.fields(RankDump)}
        return _parse({name: value for name, value in fields.items() if name in known})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        print(f"boxcar: {path} is not a rank's dump: {error}", file=sys.stderr)
        return None


def _parse(fields: dict[str, Any]) -> RankDump:
    for name in ("loader_lengths", "collectives"):
        fields[name] = tuple(fields.get(name) or ())
    fields["places"] = tuple(stacks.parse_code_line(each) for each in fields.get("places") or ())
    if fields.get("last_step_at"):
        fields["last_step_at"] = stacks.parse_code_line(fields["last_step_at"])
    return RankDump(**fields)


def _waits_in(
    world: int, frames: Sequence[Frame], entries: Sequence[dict[str, Any]], *, is_sure: bool
) -> tuple[str | None, Sequence[Frame]]:
    """The collective that this rank waits in, and the stack from which it was called."""
    name = stacks.collective(frames) if world > 1 else None
    pending = next((entry for entry in entries if entry["is_pending"]), None)
    if name in (stacks.GRADIENTS, stacks.DDP_BUFFERS) and not is_sure:
        name = None
    if _on_gpu() and entries:
        if name == stacks.GRADIENTS and not pending:
            # The thread that runs the backward pass there is another one, and may be at work.
            name = None
        if name is None and pending:
            # A CUDA collective was called long before the line at which its result is needed.
            return pending["collective"], pending["frames"] or frames
    return name, frames


def _on_gpu() -> bool:
    torch = sys.modules.get("torch")
    return bool(torch and torch.cuda.is_available() and torch.cuda.is_initialized())


def _loader_lengths() -> tuple[int, ...]:
    module = sys.modules.get("torch.utils.data.dataloader")
    if module is None:
        return ()
    # Not gc.get_objects: it hands out tuples that another thread is just making, which breaks them.
    kinds = {module.DataLoader, *module.DataLoader.__subclasses__()}
    loaders = [each for each in gc.get_referrers(*kinds) if type(each) in kinds]
    return tuple(length for loader in loaders if (length := _length(loader)) is not None)


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except Exception:  # an iterable dataset has no length, and says so in many ways
        return None

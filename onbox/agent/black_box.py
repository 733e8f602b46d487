"""What is kept of a cell that stands still: who runs, the stacks of each rank, torch's flight
recorder, the box's last minutes. Gathered by a thread, since who looks into a process waits for it.

The stacks are py-spy's, where it is on PATH or beside the training Python and may trace: it changes
nothing in the process. Without it there are none until the attempt is ended by policy, when Python
writes them to the log (`faulthandler`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from boxcar.shared import paths, timestamp
from boxcar.shared.disk import atomic, regular_file
from boxcar.shared.files import attempt
from boxcar.shared.record import dataclass
from onbox.attempt import leftovers, watch
from onbox.judging import log_tail
from onbox.judging.stalls import Stall
from onbox.machine import process
from onbox.machine.place import Place

# Who reads and writes more than that while it is looked at does not stand still: it saves or loads.
WITNESS_S, WITNESS_BYTES = 30.0, 1 << 20
_PY_SPY, _PY_SPY_S = "py-spy", 20.0
_MOST_RANKS, _MOST_FILES, _MOST_BYTES, _MOST_LOG = 16, 32, 8 << 20, 1 << 20
# Where torch's flight recorder writes to, by its own variables, the newer name first; else here.
_RECORDERS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_RECORDER = "/tmp/nccl_trace_rank_"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Gathered:
    """`is_at_work`: it stands still no more than a disk does. `stacks_of`: of how many ranks."""

    stall: Stall
    is_at_work: bool
    stacks_of: int = 0


class BlackBox:
    """`keep_gauges(path)` keeps the box's last minutes there; it raises OSError."""

    def __init__(self, place: Place, keep_gauges: Callable[[Path], None]) -> None:
        self._place, self._keep_gauges = place, keep_gauges
        self._ready: list[Gathered] = []

    def gather(self, stall: Stall) -> None:
        """Begin to; `ready` tells when it is done."""
        name = f"black-box-{stall.cell}"
        threading.Thread(target=self._gather, args=(stall,), name=name, daemon=True).start()

    def ready(self) -> list[Gathered]:
        """Those that are done, each once."""
        found, self._ready = self._ready, []
        return found

    def _gather(self, stall: Stall) -> None:
        is_at_work, stacks_of = False, 0
        try:
            scratch = self._place.scratch
            pids = leftovers.of_attempt(scratch, stall.cell, stall.attempt)
            before, until = _moved_bytes(pids), time.monotonic() + WITNESS_S
            folder = self._place.durable.black_box(stall.cell)
            stacks_of = self._keep_stacks(folder, stall, pids)
            keep_traces(self._place, stall.cell, stall.attempt)
            self._keep_gauges(folder / f"attempt-{stall.attempt}-gauges.jsonl")
            time.sleep(max(0.0, until - time.monotonic()))
            moved = _moved_bytes(pids)
            is_at_work = any(moved[pid] - before.get(pid, 0) > WITNESS_BYTES for pid in moved)
        except OSError:
            pass  # a tier that is away: it is told all the same
        finally:
            self._ready = [*self._ready, Gathered(stall, is_at_work, stacks_of)]

    def _keep_stacks(self, folder: Path, stall: Stall, pids: Sequence[int]) -> int:
        """Of how many ranks there are stacks."""
        atomic.make_folder(folder)
        ranks = ranks_of(self._place, stall.cell, stall.attempt)
        program = _py_spy(self._place)
        head = f"{stall.cell}, attempt {stall.attempt}, {timestamp.utc_now()}"
        parts, count = [head, *map(_told, sorted(pids))], 0
        if program is None:
            parts.append("no stacks: py-spy is neither on PATH nor beside the training Python")
        for pid in ranks[:_MOST_RANKS]:
            if program is None:
                break
            is_told, text = _stacks(program, pid)
            parts.append(f"--- process {pid}\n{text}")
            count += is_told
        data = "\n".join(parts)[:_MOST_BYTES].encode(errors="replace") + b"\n"
        atomic.write_whole(folder / f"attempt-{stall.attempt}-stacks.txt", data)
        return count


def keep_traces(place: Place, cell: str, number: int) -> None:
    """What torch and the training layer have written of it until now; it never raises."""
    with contextlib.suppress(OSError):
        folder = place.durable.black_box(cell)
        for path in _traces(place, cell, number):
            data = regular_file.read_at(path, _MOST_BYTES)
            atomic.make_folder(folder)
            atomic.write_whole(folder / f"attempt-{number}-{path.name}", data)


def keep_end(place: Place, cell: str, number: int) -> None:
    """Once it has ended: with the end of its log, where an aborted rank has left its stacks."""
    keep_traces(place, cell, number)
    with contextlib.suppress(OSError):
        text = log_tail.read(place.scratch, cell).text[-_MOST_LOG:]
        folder = place.durable.black_box(cell)
        atomic.make_folder(folder)
        atomic.write_whole(folder / f"attempt-{number}-log.txt", text.encode(errors="replace"))


def ranks_of(place: Place, cell: str, number: int) -> list[int]:
    """The processes that train: those that were told a rank, else each Python of the attempt."""
    running = attempt.read_running(place.scratch.running(cell))
    if running is None or running.attempt != number:
        return []
    launchers = next(process.generations(running.pid), [])
    if ranks := [rank for launcher in launchers for rank in watch.ranks(launcher)]:
        return ranks
    pids = leftovers.of_attempt(place.scratch, cell, number)
    return [p for p in pids if p != running.pid and process.program(p).startswith("python")]


def _traces(place: Place, cell: str, number: int) -> Iterator[Path]:
    """At most so many files that were written since the attempt began."""
    since_s = 0.0
    if (running := attempt.read_running(place.scratch.running(cell))) is not None:
        since_s = timestamp.parse_utc(running.started_at).timestamp()
    found = [*_files(place.scratch.out(cell) / "hang")]
    environments = [process.environment(pid) for pid in ranks_of(place, cell, number)]
    for environment in environments:
        found.append(_recorded(environment))
    newer = [path for path in found if _written_s(path) >= since_s]
    yield from sorted(set(newer))[:_MOST_FILES]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _recorded(environment: Mapping[str, str]) -> Path:
    begin = next((environment[name] for name in _RECORDERS if name in environment), _RECORDER)
    return Path(f"{begin}{environment.get('RANK', '0')}")


def _written_s(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _py_spy(place: Place) -> str | None:
    beside = os.path.dirname(paths.program_on_box(place.plan.training_python))  # noqa: PTH120
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(_PY_SPY, path=f"{beside}{os.pathsep}{path}" if beside else path)


def _stacks(program: str, pid: int) -> tuple[bool, str]:
    """Whether it could look, and what it says; where it may not trace, that."""
    try:
        done = subprocess.run(
            [program, "dump", "--pid", str(pid)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PY_SPY_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"no stacks: {error}"
    said = (done.stdout if done.returncode == 0 else done.stderr).decode(errors="replace").strip()
    return done.returncode == 0, said if done.returncode == 0 else f"no stacks: {said}"


def _told(pid: int) -> str:
    """A line for people: its words may hold a secret, and are left out."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(stat[11]) + int(stat[12])) / _TICKS
        waits_in = Path(f"/proc/{pid}/wchan").read_text().strip("0\0 \n") or "-"
        name = process.program(pid)
        return f"{pid} {name!a}: state {stat[0]}, {cpu_s:.0f} s of CPU, kernel {waits_in}"
    return f"{pid}: it has ended"


def _moved_bytes(pids: Sequence[int]) -> dict[int, int]:
    """What each has read and written since it began, by the kernel's count."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            counts = dict(line.split(": ") for line in lines)
            found[pid] = int(counts["rchar"]) + int(counts["wchar"])
    return found

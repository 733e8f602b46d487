"""Where everything lies. Nobody else joins these names.

Three places: the durable tier (what survives the box), the scratch of one box (fast, lost with it),
and the results on the laptop.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from boxcar.shared import names
from boxcar.shared.errors import DamagedError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MANIFEST = "manifest.json"
RECEIPT = "receipt.json"
# Below a data folder: what was sent, and beside it the proof of that.
DATA_FILES, DATA_PROOF = "files", "proof.json"
# Below a cell's folder: its live checkpoint, and beside it the pointer to that.
RESUME_FOLDER = "resume"
RESUME = f"{RESUME_FOLDER}/resume.json"
# What the agent itself writes in a cell's folder on the durable tier; nothing published may be it.
AGENTS_OWN = (MANIFEST, RECEIPT, RESUME_FOLDER)
OWN_NAME = _("has a name that Boxcar uses itself")
# Of a name that leads nowhere it is known that it is no link.
_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(frozen=True)
class DurablePaths:
    """The run on the durable tier; see docs/formats.md for who writes what."""

    durable_dir: Path
    run: str

    @cached_property
    def root(self) -> Path:
        return self.durable_dir / "boxcar" / self.run

    @property
    def releases(self) -> Path:
        return self.root / "releases"

    def fetched(self, key: str) -> Path:
        """What the first box of this run got from a URL."""
        return self.root / "fetched" / f"{key}.json"

    def release(self, digest: str) -> Path:
        return self.releases / digest

    @property
    def newest(self) -> Path:
        """Which release was pushed last."""
        return self.root / "newest.json"

    @property
    def queues(self) -> Path:
        return self.root / "queues"

    def queue(self, queue: str) -> Path:
        """Of all members of a pool it is one."""
        return self.queues / f"{names.file_of(queue)}.txt"

    def known_queues(self, planned: Iterable[str]) -> list[str]:
        """Those of a plan, and those that have left a journal or a file here. The file of a pool is
        no queue itself.
        """
        begun = [*planned, *sorted(path.stem for path in self.journals.glob("*.jsonl"))]
        files = {names.file_of(queue) for queue in begun}
        left = {path.stem for path in self.queues.glob("*.txt")} - files
        return list(dict.fromkeys([*begun, *sorted(left)]))

    def lock(self, queue: str) -> Path:
        return self.root / "locks" / f"{queue}.lock"

    @property
    def control_folder(self) -> Path:
        return self.root / "control"

    def control(self, queue: str) -> Path:
        return self.control_folder / f"{queue}.json"

    @property
    def journals(self) -> Path:
        return self.root / "journal"

    def journal(self, queue: str) -> Path:
        return self.journals / f"{queue}.jsonl"

    def heartbeat(self, queue: str) -> Path:
        return self.root / "heartbeat" / f"{queue}.json"

    @property
    def gauges_folder(self) -> Path:
        return self.root / "gauges"

    def gauges(self, queue: str) -> Path:
        """What its box had left, minute by minute."""
        return self.gauges_folder / f"{queue}.jsonl"

    def gauges_of_failed(self, cell: str) -> Path:
        """The last minutes of its box, as of its failure."""
        return self.gauges_folder / "failed" / f"{cell}.jsonl"

    def black_box(self, cell: str) -> Path:
        """What was kept of its attempts that stood still."""
        return self.gauges_folder / "stalled" / cell

    def delivered(self, queue: str) -> Path:
        return self.root / "delivered" / f"{queue}.json"

    @cached_property
    def claims(self) -> Path:
        return self.root / "claims"

    def claim(self, cell: str) -> Path:
        return self.claims / f"{cell}.json"

    @cached_property
    def cells(self) -> Path:
        return self.root / "cells"

    def cell(self, cell: str) -> Path:
        return self.cells / cell

    def manifest(self, cell: str) -> Path:
        return self.cells.joinpath(cell, MANIFEST)

    def receipt(self, cell: str) -> Path:
        return self.cell(cell) / RECEIPT

    def resume(self, cell: str) -> Path:
        return self.cells.joinpath(cell, RESUME_FOLDER)

    @property
    def accepted_folder(self) -> Path:
        return self.root / "accepted"

    def accepted(self, cell: str) -> Path:
        """That the laptop has proven the cell's result."""
        return self.accepted_folder / f"{cell}.json"

    def lent(self, cell: str) -> Path:
        """Where files of a result lie that come from the laptop; nobody reads them there."""
        return self.root / "lent" / cell

    @property
    def replaced(self) -> Path:
        """What is kept of results and checkpoints that others took the place of."""
        return self.root / "replaced"

    @property
    def slurm(self) -> Path:
        """On a cluster: what was submitted, and what Slurm said last."""
        return self.root / "slurm"

    @property
    def slurm_intent(self) -> Path:
        """There while somebody submits, and when nobody knows what came of it."""
        return self.slurm / "submitting.json"

    def slurm_submit(self, token: str) -> Path:
        """What was submitted under that token."""
        return self.slurm / "submits" / f"{token}.json"

    @property
    def slurm_seen(self) -> Path:
        """What squeue said last."""
        return self.slurm / "squeue.json"

    def slurm_leases(self, queue: str) -> Path:
        """Whose the queue was and is, by number."""
        return self.slurm / "leases" / queue

    def slurm_outside(self, queue: str) -> Path:
        """What squeue said outside of the container that the queue's agent runs in."""
        return self.slurm / f"{queue}.squeue"

    def folders(self) -> list[Path]:
        """What must be there before an agent starts."""
        names = ("queues", "locks", "control", "journal", "heartbeat", "delivered", "claims")
        folders = (self.releases, self.cells, self.accepted_folder)
        return [*folders, *(self.root / name for name in names)]


@dataclass(frozen=True)
class ScratchPaths:
    """The run on one box's own fast disk."""

    data_dir: Path
    run: str

    @cached_property
    def root(self) -> Path:
        return self.data_dir / "boxcar" / self.run

    def code(self, release: str, slot: int = 0) -> Path:
        """Each slot has its own: a script may write beside its code."""
        return self.root / "code" / (f"{release}.{slot}" if slot else release)

    def wrapper(self, release: str) -> Path:
        """run_one.sh and what it looks for beside itself."""
        return self.root / "wrapper" / release

    @property
    def data(self) -> Path:
        return self.root / "data"

    def data_of(self, release: str) -> Path:
        """What the train script knows as {data}: links, which another release does not change."""
        return self.data / release

    @property
    def earlier(self) -> Path:
        """What is kept of attempts that nothing continues."""
        return self.root / "earlier"

    def agent_log(self, queue: str) -> Path:
        return self.root / f"agent-{queue}.log"

    def gauge_ring(self, queue: str) -> Path:
        """The last ten minutes of the box's gauges."""
        return self.root / f"gauges-{queue}.ring"

    def start(self, queue: str) -> Path:
        """How the queue's agent was started here."""
        return self.root / f"start-{queue}.json"

    @property
    def own_end(self) -> Path:
        """That the box has called its provider to end it."""
        return self.root / "own-end.json"

    @property
    def idle_end(self) -> Path:
        """The same of a box that was through with its cells."""
        return self.root / "idle-end.json"

    @property
    def deadline(self) -> Path:
        """Held by what stops the box when nothing moves there."""
        return self.root / "deadline"

    def deadline_notice(self, queue: str) -> Path:
        """For the queue's agent, which removes it."""
        return self.root / f"deadline-notice-{queue}.json"

    def started(self) -> list[str]:
        """The queues that have such a record."""
        found = sorted(path.stem for path in self.root.glob("start-*.json"))
        return [stem.removeprefix("start-") for stem in found]

    @property
    def gpu_locks(self) -> Path:
        """Of all runs on this box."""
        return self.data_dir / "boxcar" / ".gpus"

    @property
    def set_ups(self) -> Path:
        """Of all runs on this box."""
        return self.data_dir / "boxcar" / ".setup"

    @cached_property
    def cells(self) -> Path:
        return self.root / "cells"

    def cell(self, cell: str) -> Path:
        return self.cells / cell

    def out(self, cell: str) -> Path:
        """What the train script knows as {out}."""
        return self.cell(cell) / "out"

    def log(self, cell: str) -> Path:
        """The cell's own log, over all attempts. It is also the lock of the attempt that runs."""
        return self.cell(cell) / f"{cell}.log"

    def beside(self, cell: str) -> Path:
        """What the cell's last attempt wrote beside its code."""
        return self.cell(cell) / "beside"

    def running(self, cell: str) -> Path:
        return self.cell(cell) / "running.json"

    def processes(self, cell: str) -> Path:
        return self.cell(cell) / "processes.json"

    def unloaded(self, cell: str) -> Path:
        """Checkpoints that are put aside while an older one is tried, by attempt."""
        return self.cell(cell) / "unloaded"

    def spec(self, cell: str, attempt: int) -> Path:
        """What that attempt runs, and where."""
        return self.cell(cell) / f"spec-{attempt}.json"

    def done(self, cell: str, attempt: int) -> Path:
        return self.cell(cell) / f"done-{attempt}.json"

    @property
    def nodes(self) -> Path:
        """Where the pods of a queue speak to each other."""
        return self.root / "nodes"

    @property
    def node_order(self) -> Path:
        return self.nodes / "order.json"

    def node_word(self, node: int) -> Path:
        """Of the pod of that number; the agent's is 0 and says nothing."""
        return self.nodes / f"node-{node}.json"

    def node_log(self, cell: str, attempt: int, node: int) -> Path:
        """What the ranks of another pod print, before it is in the cell's log."""
        return self.cell(cell) / f"node-{node}-{attempt}.log"


@dataclass(frozen=True)
class DataPaths:
    """Data folders that all runs share, each named by a digest of its files: on a box's own disk,
    or on the durable tier. No run has such a name.
    """

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "boxcar" / ".data"

    def folder(self, digest: str) -> Path:
        return self.root / digest

    def files(self, digest: str) -> Path:
        return self.folder(digest) / DATA_FILES

    def unfinished(self, digest: str) -> Path:
        """Its folder while it comes; nobody believes it."""
        return self.root / f"{digest}.part"

    def of_url(self, key: str) -> Path:
        """Where what a URL gives is fetched, and what is known of it; see `fetched_data`."""
        return self.root / "urls" / key


@dataclass(frozen=True)
class ResultPaths:
    """The run on the laptop, after a pull."""

    results_dir: Path
    run: str

    @property
    def root(self) -> Path:
        return self.results_dir / self.run

    @property
    def partial(self) -> Path:
        """Where a cell lies while it is pulled; nothing in it is believed."""
        return self.root / ".partial"

    @property
    def cells(self) -> Path:
        return self.root / "cells"

    def cell(self, cell: str) -> Path:
        return self.cells / cell

    def manifest(self, cell: str) -> Path:
        return self.cell(cell) / MANIFEST

    def failed_log(self, cell: str) -> Path:
        """The log of a cell that failed and so has no result."""
        return self.root / "failed" / f"{cell}.log"

    def resume(self, cell: str) -> Path:
        """The live checkpoint of a cell, brought here from a box that may be gone tomorrow."""
        return self.root / "resume" / cell

    def resume_pointer(self, cell: str) -> Path:
        """What it is; written last."""
        return self.root / "resume" / f"{cell}.json"

    @property
    def journals(self) -> Path:
        return self.root / "journal"

    @property
    def gauges(self) -> Path:
        return self.root / "gauges"

    @property
    def receipt(self) -> Path:
        return self.root / RECEIPT

    @property
    def teardown(self) -> Path:
        return self.root / "teardown.json"


def scratches(data_dir: Path) -> list[ScratchPaths]:
    """The runs that have something on this box."""
    found = sorted((data_dir / "boxcar").glob("*/"))
    return [ScratchPaths(data_dir, path.name) for path in found if names.RUN.fullmatch(path.name)]


def is_own_name(relative: str, cell: str) -> bool:
    """Whether what has this path below a cell's folder would take the place of what the agent
    itself writes there, the cell's log among it.
    """
    first = relative.split("/", maxsplit=1)[0].casefold()
    return first in (*AGENTS_OWN, f"{cell}.log".casefold())


def on_box(text: str) -> Path:
    """A path of a box as a plan spells it, here on the box: absolute, or below our home by `~/`.

    Raises DamagedError for any other.
    """
    if "\0" in text or not text.startswith(("/", "~/")):
        raise DamagedError(
            _("expected an absolute path, or one that begins with ~/; found {text!r}", text=text)
        )
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise DamagedError(
            _("the path {text!r} cannot be resolved here: {error}", text=text, error=error)
        ) from error
    if not path.is_absolute():  # HOME itself may be set to anything
        raise DamagedError(
            _(
                "the path {text!r} resolves to {path!r}: check HOME",
                text=text,
                path=str(path),
            )
        )
    return path


def program_on_box(text: str) -> str:
    """A program of a box as a plan spells it: a path as above, or a name that PATH leads to."""
    return str(on_box(text)) if text.startswith("~/") else text


def inside(folder: Path, relative: str) -> Path:
    """`folder / relative`, where that stays inside; raises DamagedError for a path that leaves it.

    For names that came from a file: no absolute path, no `..`, no empty part, no NUL.
    """
    parts = relative.split("/")
    try:
        os.fsencode(relative)
    except UnicodeEncodeError:
        raise DamagedError(_("{relative!r} is not a valid file name", relative=relative)) from None
    if "\0" in relative or any(part in ("", ".", "..") for part in parts):
        raise DamagedError(
            _(
                "the path {relative!r} leads out of {folder}",
                relative=relative,
                folder=folder,
            )
        )
    return folder.joinpath(*parts)


def has_symlink(folder: Path, relative: str) -> bool:
    """Whether any step of `relative` below `folder` is a symbolic link, or `folder` where that
    itself is meant, as by "." or "./a". Raises OSError where a step cannot be looked at.
    """
    step = str(folder)
    for part in relative.split("/"):
        if part not in ("", "."):  # "folder/." would be what the folder itself leads to
            step = f"{step}/{part}"
        if _is_link(step):
            return True
    return False


def _is_link(path: str) -> bool:
    """Of a text, as a Path takes as long as the look. `os.path.islink` says no link where it could
    not look. Raises OSError.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError as error:
        if error.errno not in _NOWHERE:
            raise
    except ValueError:
        pass  # no name that a file could have
    return False

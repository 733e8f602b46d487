"""The second home of a run: what its queue has on the durable tier, copied to a URL as well.

A thread, and in it one child of the training's interpreter at a time; no cell waits for either.
What is due stands in the journal and on the tier, so nothing is handed over, and nothing is lost
with an agent that is killed: each published cell that no `cell.copied` follows, then the live
checkpoints of cells that are not verified. Nothing of this ends a queue.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import digest
from boxcar.shared.environment import CREDENTIALS
from boxcar.shared.errors import BoxcarError, DamagedError, message_of, some
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.process import second_home_child
from boxcar.shared.process.second_home_child import Child
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.state import Verified
from onbox.machine import credentials
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter
from onbox.result import settle

TICK_S = 0.1
LOOK_EVERY_S = 5.0
FIRST_WAIT_S, LONGEST_WAIT_S = 30.0, 1800.0
# At the end of a queue: the box is paid for meanwhile.
LAST_TRY_S = 600.0
MOST_NAMED = 10

RESULT, CHECKPOINT, NO_CHECKPOINT = "result", "checkpoint", "no checkpoint"


@dataclass(frozen=True)
class Due:
    """What is to be done for a cell: its result or live checkpoint copied, or the latter removed.

    `version`: the digest of the manifest, or the name of the checkpoint's file.
    """

    cell: str
    what: str
    version: str


class SecondHome:
    """Of a plan that names one. `start` begins it, `close` ends it."""

    def __init__(self, place: Place, reporter: Reporter) -> None:
        self._place, self._reporter, self._url = place, reporter, str(place.plan.second)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="second-home", daemon=True)
        self._copied: dict[str, bytes] = {}  # by cell: its `cell.synced`, packed
        self._checkpoints: dict[str, str] = {}  # by cell: the one that was copied last
        self._waits_s: dict[Due, float] = {}
        self._not_before: dict[Due, float] = {}

    def start(self) -> None:
        self._thread.start()

    def try_to_the_end(
        self,
        tick: Callable[[], None],
        is_to_stop: Callable[[], bool],
        has_more: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait for what is left, for a bounded time, and say what is left then; not where
        `has_more`: it is no end.
        """
        self._not_before.clear()
        until = time.monotonic() + LAST_TRY_S

        def is_tried() -> bool:
            return self._thread.is_alive() and not is_to_stop() and time.monotonic() < until

        while self._all_due() and is_tried():
            if has_more():
                return
            tick()
            time.sleep(TICK_S)
        if left := self.left():
            text = _(
                "{cells}: not completely copied to {url} yet; the next agent tries again",
                cells=some(left, MOST_NAMED),
                url=self._url,
            )
            self._reporter.warn("not_copied", text)

    def close(self) -> None:
        """What is under way is given up; the next agent does it again."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def left(self) -> list[str]:
        """The cells of which something is not there yet, as far as the tier can be read."""
        return list(dict.fromkeys(d.cell for d in self._all_due() if d.what != NO_CHECKPOINT))

    def _all_due(self) -> list[Due]:
        """As far as the tier can be read."""
        due: list[Due] = []
        with contextlib.suppress(BoxcarError, OSError):
            due.extend(self._due())
        return due

    # --- what is due

    def _due(self) -> Iterator[Due]:
        yield from self._results()
        yield from self._live_checkpoints()

    def _results(self) -> Iterator[Due]:
        copied, synced = self._reporter.newest("cell.copied"), self._reporter.newest("cell.synced")
        for cell in synced:
            if self._copied.get(cell) is synced.packed(cell):
                continue  # so that of ten thousand not each is read at each look
            sha256 = synced[cell].data["manifest_sha256"]
            there = copied[cell].data if cell in copied else {}
            if (there.get("manifest_sha256"), there.get("url")) == (sha256, self._url):
                self._copied[cell] = synced.packed(cell)
            # It is away for a moment while another attempt's takes its place.
            elif self._place.durable.manifest(cell).exists():
                yield Due(cell, RESULT, sha256)

    def _live_checkpoints(self) -> Iterator[Due]:
        for cell, record in self._reporter.state().cells.items():
            known = self._checkpoints.get(cell)
            if isinstance(record.state, Verified):
                if known is not None:
                    yield Due(cell, NO_CHECKPOINT, known)
            elif record.attempts:
                pointer = resume_pointer.read_resume_pointer(self._place.durable.resume(cell))
                if pointer and pointer.file.path != known:
                    yield Due(cell, CHECKPOINT, pointer.file.path)

    # --- the thread

    def _work(self) -> None:
        while not self._is_over.is_set():
            if not self._did_one():
                self._is_over.wait(LOOK_EVERY_S)

    def _did_one(self) -> bool:
        due = None
        try:
            now_s = time.monotonic()
            due = next((d for d in self._due() if now_s >= self._not_before.get(d, 0.0)), None)
            if due:
                self._do(due)
        except (BoxcarError, OSError) as error:
            self._put_off(due, error)
            return False
        return due is not None

    def _put_off(self, due: Due | None, error: Exception) -> None:
        """`due` is None where the tier could not be read."""
        if self._is_over.is_set() or (due and not self._is_still_due(due)):
            return  # given up, or another one took its place
        if due:
            wait_s = self._waits_s.get(due, FIRST_WAIT_S)
            self._waits_s[due] = min(LONGEST_WAIT_S, 2 * wait_s)
            self._not_before[due] = time.monotonic() + wait_s
        text = _("{why}; retried later, and no cell waits for it", why=message_of(error).text)
        with contextlib.suppress(OSError):
            self._reporter.warn("copy_failed", text, due.cell if due else None)

    def _is_still_due(self, due: Due) -> bool:
        with contextlib.suppress(BoxcarError, OSError):
            return due in self._due()
        return True

    def _do(self, due: Due) -> None:
        if due.what == RESULT:
            self._copy_result(due)
        elif due.what == CHECKPOINT:
            self._copy_checkpoint(due)
        else:
            folder = self._place.durable.resume(due.cell)
            self._ask("drop", folder, kept=self._published_in(folder))
            del self._checkpoints[due.cell]

    def _copy_result(self, due: Due) -> None:
        folder = self._place.durable.cell(due.cell)
        made = manifest.read_manifest(folder / paths.MANIFEST)
        if self._put(folder, made.all_files, paths.MANIFEST) != due.version:
            raise DamagedError(
                _("{folder}: its manifest is not the one that was published", folder=folder)
            )
        about = {"cell": due.cell, "attempt": made.attempt, "manifest_sha256": due.version}
        size_bytes, files = made.size_bytes, len(made.all_files)
        self._reporter.say(
            "cell.copied", **about, url=self._url, size_bytes=size_bytes, files=files
        )

    def _copy_checkpoint(self, due: Due) -> None:
        folder = self._place.durable.resume(due.cell)
        if pointer := resume_pointer.read_resume_pointer(folder):
            kept = self._published_in(folder)
            self._put(folder, (pointer.file,), resume_pointer.FILE, is_alone=True, kept=kept)
            self._checkpoints[due.cell] = pointer.file.path

    def _published_in(self, folder: Path) -> list[str]:
        """What of a mirror is of a result that was copied, if there is one. Raises DamagedError."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(
                settle.published_in(folder, manifest.read_manifest(folder.parent / paths.MANIFEST))
            )
        return []

    def _put(self, folder: Path, files: tuple[FileRecord, ...], last: str, **words: object) -> str:
        """The digest of the file that was put there last."""
        data = (folder / last).read_bytes()
        named = FileRecord(last, len(data), digest.of_bytes(data))
        self._ask(
            "put",
            folder,
            folder=str(folder),
            files=[codec.encode(file) for file in files],
            last=codec.encode(named),
            **words,
        )
        return named.sha256

    def _ask(self, do: str, of: Path, **words: object) -> None:
        url = second_home_child.url_of(self._url, self._place.durable, of)
        second_home_child.ask(self._child(), {"do": do, "url": url, **words}, self._is_over.is_set)

    def _child(self) -> Child:
        """Its credentials are read each time: a launch may have brought new ones."""
        place = self._place
        secrets = credentials.read(paths.on_box(place.plan.box(place.box).credentials)).env
        environment = {**os.environ, **second_home_child.variables(place.plan), **secrets}
        environment.pop(CREDENTIALS, None)
        environment["PYTHONPATH"] = str(place.release / place.training_zip)
        return Child(place.plan.training_python, environment, tuple(secrets.values()))

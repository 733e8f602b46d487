"""The job's data on this box: fetched where it comes from a URL, and linked to below {data}.

`boxcar.training.fetch` fetches in a child that holds the lock of its place: two queues, two slots,
or an agent and the successor of one that was killed wait for each other. Each sees how far it is.

The links are made once all data is whole. Another release has links of its own: data that is
changed and sent again never moves under a cell that trains.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, data_proof, fetched_data
from boxcar.shared.files.fetched_data import PROBLEM, FetchedData
from boxcar.shared.files.heartbeat import FETCHES, Fetching
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.files.release import CODE
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import _
from onbox.agent import set_up
from onbox.agent.beat import Beat
from onbox.agent.dead_mirrors import DeadMirrors
from onbox.agent.orders import Orders
from onbox.agent.outcome import StopQueue
from onbox.agent.runner import Steps
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter

# A source that does not answer is asked again soon, then less and less often, for so long since
# its last byte. One that never gave a byte is probably written wrong, and the box is paid for.
_SOON_S, _RARELY_S = 1.0, 30.0
PATIENCE_S, PATIENCE_AT_FIRST_S = 30 * 60.0, 2 * 60.0
_PROGRAM = "boxcar.training.fetch.to_store"
_LOOK_EVERY_S = 1.0


class DataFetch:
    def __init__(
        self, reporter: Reporter, orders: Orders, beat: Beat, mirrors: DeadMirrors
    ) -> None:
        self._reporter, self._orders, self._beat, self._mirrors = reporter, orders, beat, mirrors
        self._next_look = 0.0

    def is_needed(self, place: Place) -> bool:
        """Whether the box or tier still lacks data that the release of `place` has from URLs."""
        return any(
            fetched_data.find_data(place.data_store, one) is None for one in place.plan.data_urls
        )

    def steps(self, place: Place) -> Steps[bool]:
        """Fetch it, one after the other. False where the agent is to end before all is there.
        Raises StopQueue for what cannot be had.
        """
        try:
            for one in place.plan.data_urls:
                if not (yield from self._steps_of(place, one)):
                    return False
        finally:
            self._beat.fetches(None)
        return True

    def _steps_of(self, place: Place, one: DataUrl) -> Steps[bool]:
        folder = place.data_store.of_url(fetched_data.key_of(one))
        try:
            atomic.make_folder(folder)
            held = yield from self._locked(folder, one)
            if held is None:
                return False
            try:
                if fetched_data.find_data(place.data_store, one):  # by whom we have waited for
                    return True
                return (yield from self._fetch(place, one, folder, held))
            finally:
                os.close(held)
        except OSError as error:
            raise StopQueue(_said(place, one, str(error))) from error

    def _locked(self, folder: Path, one: DataUrl) -> Steps[int | None]:
        """The lock; None where the agent is to end first."""
        while (held := lock.try_hold(folder / "lock")) is None:
            if self._orders.is_to_end:
                return None
            self._show(folder, one)
            yield
        return held

    def _fetch(self, place: Place, one: DataUrl, folder: Path, held: int) -> Steps[bool]:
        began = last_byte = time.monotonic()
        self._reporter.say("data.fetching", name=one.name, url=fetched_data.url_of(one))
        most, again_after_s = 0, _SOON_S
        while not self._orders.is_to_end:
            child = self._start(place, one, folder, held)
            while child.poll() is None and not self._orders.is_to_end:
                done = self._show(folder, one)
                if done > most:
                    most, last_byte, again_after_s = done, time.monotonic(), _SOON_S
                yield
            if child.poll() is None:
                yield from set_up.end(child)  # what has come is kept
                return False
            if child.returncode == 0:
                break
            patience_s = PATIENCE_S if most else PATIENCE_AT_FIRST_S
            is_over = time.monotonic() > last_byte + patience_s
            may_do_better = child.returncode == exit_codes.TEMPORARY or child.returncode < 0
            if not may_do_better or is_over:
                raise StopQueue(_said(place, one, _problem(folder, child.returncode)))
            self._reporter.warn("data_waits", _waits(one, _problem(folder, child.returncode)))
            until = time.monotonic() + again_after_s
            again_after_s = min(2 * again_after_s, _RARELY_S)
            while time.monotonic() < until and not self._orders.is_to_end:
                yield
        found = fetched_data.find_data(place.data_store, one)
        if found is None:
            if self._orders.is_to_end:
                return False
            raise StopQueue(_said(place, one, _("it is not there after all")))
        self._reporter.say(
            "data.fetched",
            name=one.name,
            url=found.url,
            sha256=found.sha256,
            size_bytes=found.size_bytes,
            digest=found.digest,
            seconds=round(time.monotonic() - began, 1),
        )
        return True

    def _start(
        self, place: Place, one: DataUrl, folder: Path, held: int
    ) -> subprocess.Popen[bytes]:
        environ = self._mirrors.without(set_up.environment(place, place.release / CODE))
        environ["PYTHONPATH"] = str(place.release / place.training_zip)
        request = {
            "base": str(place.data_store.base),
            "box": place.box,
            "url": codec.encode(one),
        }
        log = folder / "log"
        with log.open("wb") as out:
            child = subprocess.Popen(
                [paths.program_on_box(place.plan.training_python), "-m", _PROGRAM],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=(held,),
            )
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError), child.stdin:
            child.stdin.write(json.dumps(request).encode())
        return child

    def _show(self, folder: Path, one: DataUrl) -> int:
        """In the heartbeat; the bytes that have come."""
        if time.monotonic() < self._next_look:
            return 0
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        now = fetched_data.read_progress(folder) or Fetching(one.name, FETCHES, 0, 0, 0.0)
        self._beat.fetches(now)
        return now.done_bytes


def _problem(folder: Path, returncode: int) -> str:
    """What the child says; of one that died the end of its log."""
    with contextlib.suppress(OSError):
        return (folder / PROBLEM).read_text(errors="replace")
    said = ""
    with contextlib.suppress(OSError):
        said = (folder / "log").read_text(errors="replace").strip()
    last = said.splitlines()[-1:] or [_("it said nothing")]
    return _("ended with {rc}: {said}", rc=returncode, said=last[0])


def _said(place: Place, one: DataUrl, problem: str) -> str:
    return _(
        "SETUP: data {name} cannot be fetched on {box}: {problem}. Correct it, then launch",
        name=one.name,
        box=place.box,
        problem=problem,
    )


def _waits(one: DataUrl, problem: str) -> str:
    return _("data {name}: {problem}. It is tried again", name=one.name, problem=problem)


# --- the links that are {data}


_MOST_TOLD = 3


def link_data(place: Place) -> None:
    """Raises StopQueue for data that is not whole on this box, or cannot be linked to."""
    try:
        _link_data(place)
    except (OSError, DamagedError) as error:
        raise StopQueue(_("DATA: {error}", error=error)) from error


def _link_data(place: Place) -> None:
    folder = place.scratch.data_of(place.release.name)
    for name, digest in (place.plan.data | _of_urls(place)).items():
        stored = place.data_store.folder(digest)
        if problems := data_proof.problems_of_data(stored):
            raise StopQueue(
                _(
                    "DATA: {name} is not whole on {box}: {problems}. To send it again: launch",
                    name=name,
                    box=place.box,
                    problems="; ".join(problems[:_MOST_TOLD]),
                )
            )
        atomic.make_folder(folder)
        _link(folder / name, place.data_store.files(digest))


def _of_urls(place: Place) -> dict[str, str]:
    """Raises StopQueue for what is not what the run's first box got."""
    found = {}
    for one in place.plan.data_urls:
        fetched = fetched_data.find_data(place.data_store, one)
        if fetched is None:
            text = _(
                "DATA: {name} is gone from {box}. To fetch it again: launch",
                name=one.name,
                box=place.box,
            )
            raise StopQueue(text)
        _refuse_another(place, one, fetched)
        found[one.name] = fetched.digest
    return found


def _refuse_another(place: Place, one: DataUrl, fetched: FetchedData) -> None:
    path = place.durable.fetched(fetched_data.key_of(one))
    atomic.make_folder_on_tier(path.parent, place.durable.root)
    atomic.create_once(path, codec.to_document(fetched))
    first = fetched_data.read_fetched_data(path)
    if first.sha256 != fetched.sha256:
        raise StopQueue(
            _(
                "DATA: {name} on {box} is another file (sha256 {ours}) than the run's first box, "
                "{first}, got (sha256 {theirs}): the source has changed. Write the right sha256 "
                "beside its url, then launch",
                name=one.name,
                box=place.box,
                ours=fetched.sha256[:12],
                first=first.box,
                theirs=first.sha256[:12],
            )
        )


def _link(link: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        if link.readlink() == target:
            return
    new = atomic.temporary_name(link)
    new.symlink_to(target)
    try:
        new.replace(link)
    except IsADirectoryError:  # a script put something in its place
        os.rename(link, f"{link}.{os.urandom(4).hex()}")  # noqa: PTH104
        new.replace(link)

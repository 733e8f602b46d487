"""`onbox idle-end`: what an agent leaves behind where the job says `when_done: end`.

It holds no lock and speaks for an instant only, as the queue's next writer. Once the box has been
idle for long enough, and every cell that ran here is proven on a tier that outlives the verb, it
gives notice in the journal, waits ten minutes, and has the box stop itself by the reversible verb.
It never destroys. Where the box has no such verb of its own, it only tells.

It goes away without a word where a queue of this run has an agent again, or the run was torn down.
"""

from __future__ import annotations

import contextlib
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import paths, state, timestamp
from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.files import control, journal, manifest
from boxcar.shared.files.own_end import read_own_end
from boxcar.shared.files.plan import IdleEnd
from boxcar.shared.news.wanted import BOX_ENDS, BOX_STAYS, QUIET
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.wire.box_asks import STOP
from boxcar.shared.wire.question import RunOnBox
from onbox.agent.between_agents import FLUSH_S, deliverer_of, say_between_agents
from onbox.agent.held import held
from onbox.answers import others
from onbox.judging.idle_box import NOTICE_S, IdleBox, Step
from onbox.machine import end_itself, gpus
from onbox.machine.credentials import Credentials
from onbox.machine.place import Place
from onbox.webhooks import deliver

LOOK_EVERY_S = 20.0
# A call that has not ended the box in this time has not been heard.
HEARD_S = 300.0
# Memory that a driver and a desktop hold, and a share of time that is nobody's work.
_IDLE_PERCENT, _IDLE_BYTES = 5.0, 1 << 30
_TERMINALS = Path("/dev/pts")


def leave_behind(release: Path, queue: str) -> None:
    """A process that was started as this one, by its door."""
    deliver.start_behind("idle-end", release, queue)


class Over(Exception):
    """Nobody waits for the end of this box any more."""


def run(place: Place, asked: IdleEnd, known: Credentials) -> int:
    """Until the box has ended, or nobody waits for that. Always 0: nobody reads it."""
    with contextlib.suppress(Over):
        _Waiting(place, asked, known).wait()
    return 0


class _Waiting:
    def __init__(self, place: Place, asked: IdleEnd, known: Credentials) -> None:
        self._place, self._asked, self._known = place, asked, known
        self._begun_at = timestamp.utc_now()
        self._box = IdleBox(asked.after_s, NOTICE_S)
        self._is_able = bool(asked.from_box or asked.own_key)
        self._voids = 0

    def wait(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            why_not = self._why_not()
            step = self._box.look(
                time.monotonic(), is_idle=why_not is None, is_told=self._is_told()
            )
            if step in (Step.NOTICE, Step.END) and (why_not := self._why_unproven()):
                was_told, step = step is Step.END, self._box.doubt()
                step = step if was_told else Step.NONE
            if step is Step.NOTICE and not self._is_able:
                self._say(BOX_STAYS, _bills_on(self._place.box, self._asked))
                return
            if step is Step.NOTICE:
                self._say(BOX_ENDS, _notice(self._place.box), ends_box=self._place.box)
            elif step is Step.VOID:
                self._void(why_not)
            elif step is Step.END:
                self._end()
                return

    def _void(self, why: str | None) -> None:
        """A chat hears of the first alone, and of each notice: what is used now and then would
        else be two messages each time.
        """
        text = _void(self._place.box, why, is_first=not self._voids)
        about = {QUIET: True} if self._voids else {}
        self._voids += 1
        self._say(BOX_ENDS, text, is_over=True, **about)

    def _why_not(self) -> str | None:
        """The first witness that speaks against it. Raises Over."""
        try:
            self._refuse_end_of_waiting()
            return next(_witnesses(self._place, self._asked), None)
        except (BoxcarError, OSError) as error:
            return words_of(error)

    def _why_unproven(self) -> str | None:
        """A doubt about what ran here; it may take a while, and is asked twice."""
        place = self._place
        try:
            found = (one for queue in place.scratch.started() for one in unproven(place, queue))
            return next(found, None)
        except (BoxcarError, OSError) as error:
            return words_of(error)

    def _refuse_end_of_waiting(self) -> None:
        place = self._place
        if place.queue not in place.scratch.started():
            raise Over  # torn down
        asked = control.read_control(place.durable.control(place.queue))
        if asked.want != control.RUN:
            if self._box.is_noticed:
                text = _("{box} stays on: somebody called its shutdown off", box=place.box)
                self._say(BOX_ENDS, text, is_over=True)
            raise Over
        if lock.is_held(place.durable.lock(place.queue)):
            raise Over  # its agent leaves another one of us behind

    def _is_told(self) -> bool:
        """Whether the notice has arrived where a person reads it; where nothing is sent from here,
        at once.
        """
        if not self._box.is_noticed:
            return True
        place = self._place
        with contextlib.suppress(BoxcarError, OSError):
            deliverer = deliverer_of(place, self._known)
            if deliverer is None or not deliverer.pending():
                return True
            with held(place.durable, place.queue):
                deliverer.start()
                deliverer.close(FLUSH_S)
            return not deliverer.pending()
        return False

    def _say(self, what: str, text: Sentence, **about: Any) -> None:
        """Raises Over where another writer has the queue."""
        try:
            say_between_agents(self._place, self._known, what, text, **about)
        except BoxcarError as error:
            raise Over from error

    def _end(self) -> None:
        """What was said to the provider is kept, and nothing is believed of it."""
        box, record = self._place.box, self._place.scratch.idle_end
        problem = _call(self._asked, record)
        if problem is None:
            time.sleep(HEARD_S)  # a box that ends does not come back from this
            told = read_own_end(record) if self._asked.own_key else None
            said = (told.said if told else "") or "-"
            problem = _("it was told to stop, and is still here (the answer: {said})", said=said)
        text = _("{box} could not stop itself and may still bill: {why}", box=box, why=problem)
        self._say(BOX_ENDS, _("over: {text}", text=_notice(box)), is_over=True)
        self._say(BOX_STAYS, text)


def _call(asked: IdleEnd, record: Path) -> Sentence | None:
    """Begin the end by the box's own means; why it cannot."""
    if asked.from_box:
        words = shlex.split(asked.from_box)
        try:
            subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            return _("{program}: {why}", program=words[0], why=str(error.strerror))
        return None
    provider = str(asked.own_key)
    names, found = end_itself.OWN[provider], end_itself.first_environment()
    for name in (names.id, names.key):
        if not found.get(name):
            return _("{name} is not set on this box", name=name)
    end_itself.begin_own_end(record, provider, STOP, found)
    return None


def _witnesses(place: Place, asked: IdleEnd) -> Iterator[Sentence]:
    """What speaks against the end, the cheapest first. Raises BoxcarError, OSError."""
    here = RunOnBox(place.plan.run, str(place.durable.durable_dir), str(place.scratch.data_dir))
    queues = place.scratch.started()
    found = [
        *others.locks_of_agents(place.durable, place.scratch, queues),
        *others.locks_of_attempts(place.scratch),
    ]
    for path, who in found:
        if lock.is_held(path):
            yield _("{who} is at work", who=str(who.queue or who.cell))
    for other in others.at_work_beside(here):
        yield _("run {run} is at work on this box", run=other.run)
    yield from _typed(asked.after_s)
    yield from _cards()


def _typed(within_s: float, folder: Path = _TERMINALS) -> Iterator[Sentence]:
    """Somebody who is at a terminal of the box."""
    for path in folder.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if time.time() - max(path.stat().st_mtime, path.stat().st_atime) < within_s:
                yield _("somebody uses a terminal of the box")


def unproven(place: Place, queue: str) -> Iterator[Sentence]:
    """Cells that ran here, and whose results are not all there as their manifests say."""
    known = state.replay(journal.read_journal(place.durable.journal(queue)).events).cells
    for cell, record in known.items():
        if not isinstance(record.state, state.Verified):
            yield _("{cell} is {state}", cell=cell, state=record.state.word)
            continue
        path, folder = place.durable.manifest(cell), place.durable.cell(cell)
        if digest.of_file(path) != record.state.manifest_sha256:
            yield _("{cell}: its manifest has changed", cell=cell)
        for file in manifest.read_manifest(path).files:
            there = paths.inside(folder, file.path).lstat()
            if not stat.S_ISREG(there.st_mode) or there.st_size != file.size_bytes:
                yield _("{cell}: {file} is not as it was published", cell=cell, file=file.path)


def _cards(ask: Callable[[], Sequence[Any]] = gpus.ask_child) -> Iterator[Sentence]:
    """A driver that does not answer is a doubt, too."""
    rows = ask()
    if not rows and gpus.has_device():
        yield _("the GPUs do not say whether they are in use")
    for index, row in enumerate(rows):
        busy, used = row.get("utilization_percent", 0), row.get("memory_used_bytes", 0)
        if "problem" in row or busy >= _IDLE_PERCENT or used >= _IDLE_BYTES:
            yield _("GPU {index} is in use, or does not say", index=index)


def _notice(box: str) -> Sentence:
    return _(
        "{box} is idle and every cell that ran there is proven: it stops itself in {minutes:.0f} "
        "min, unless somebody uses it (when_done: end). Its disks stay. To keep it on, type the "
        "command below",
        box=box,
        minutes=NOTICE_S / 60,
    )


def _void(box: str, why: str | None, *, is_first: bool) -> Sentence:
    why = why or _("the box stood still meanwhile")
    if is_first:
        return _(
            "{box} stays on: {why}. The idle time starts again. Next time only boxcar status says "
            "so",
            box=box,
            why=why,
        )
    return _("{box} stays on: {why}. The idle time starts again", box=box, why=why)


def _bills_on(box: str, asked: IdleEnd) -> Sentence:
    return _(
        "{box} has been idle for {minutes:.0f} min and every cell that ran there "
        "is proven. It cannot stop itself, and keeps billing",
        box=box,
        minutes=asked.after_s / 60,
    )

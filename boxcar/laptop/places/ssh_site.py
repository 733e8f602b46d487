"""A run on boxes over ssh, and its end: secrets go, nothing starts again, then the platform's verb.

Where the box can run the verb itself (AutoDL's shutdown) it is asked to, and counts as off once the
verb was seen to begin there and the box fell silent. Elsewhere its meter is open until somebody saw
it end (`teardown/meters.py`). Files on a box are not removed: the verb does that where it does, and
what survives it is said. A box that fails holds up no other.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import ClassVar

from boxcar.laptop.common import side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import host_keys
from boxcar.laptop.hosts.connection import Ran
from boxcar.laptop.hosts.ssh_errors import KeyRefused, ProxyFailed, TooManyConnections, Unreachable
from boxcar.laptop.places import own_key
from boxcar.laptop.places.mirrored_site import REPORT_TIMEOUT_S, MirroredSite
from boxcar.laptop.providers import known
from boxcar.laptop.run.open_run import Pause
from boxcar.laptop.run.view import CellView
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP, OnBoxes, on_boxes, stays
from boxcar.laptop.tensorboard.shown import OnBox, Place
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    MayStillBillError,
    Message,
    TemporaryError,
    message_of,
)
from boxcar.shared.files.plan import SHARED
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.run_asks import Wait

# Whether a box that was told to end itself has fallen silent, and not only the way to it.
#
# A pulled cable is silent too. So a box counts as silent where its address refuses the connection
# (no sshd there any more), or where nothing comes back while another box of the run is heard, and
# that on several looks in a row. What is heard of neither is no sign of anything. Nor is a
# connection that is taken and closed at once: sshd itself does that, by MaxStartups, and since 9.8
# for up to ten minutes to an address from which log-ins failed.
#
# Not covered: a box that ends its sshd and lives on. Only the console knows.


LOOKS = 3
WITHIN_S = 90.0


class Sign(Enum):
    """What a look at a box has shown."""

    ANSWERS = _("it still answers")
    STRANGER = _("another machine answers under its name")
    TURNED_AWAY = _("its address refuses connections")
    SHUT_OUT = _(
        "its address closes every connection at once: a gateway, or an sshd that blocks this "
        "machine for some minutes"
    )
    NOTHING = _("it does not respond")
    LOST = _("neither it nor any other box responds: this machine may be offline")


# A refusal is somebody's word; nothing at all has to last.
PAUSE_S = {
    Sign.ANSWERS: 3.0,
    Sign.TURNED_AWAY: 3.0,
    Sign.SHUT_OUT: 3.0,
    Sign.NOTHING: 10.0,
    Sign.LOST: 10.0,
}
# Asks a box for a sign of life. Raises as `Ssh.run` does.
Knock = Callable[[str], object]


def wait_until_silent(knock: Knock, box: str, others: Sequence[str]) -> Sign | None:
    """None once the box is silent; the last sign where it is not, or nobody can tell."""
    silent_looks, until = 0, time.monotonic() + WITHIN_S
    while True:
        sign = look_for_signs(knock, box, others)
        if sign is Sign.STRANGER:
            return sign
        silent_looks = silent_looks + 1 if sign in (Sign.TURNED_AWAY, Sign.NOTHING) else 0
        if silent_looks == LOOKS:
            return None
        # What has begun to be silent is looked at to the end.
        if not silent_looks and time.monotonic() > until:
            return sign
        time.sleep(PAUSE_S[sign])


def look_for_signs(knock: Knock, box: str, others: Sequence[str]) -> Sign:
    """One look at the box; where nothing comes back, at the others too."""
    sign = _sign_of(knock, box)
    if sign is not Sign.NOTHING or _is_any_heard(knock, others):
        return sign
    return Sign.LOST


def _is_any_heard(knock: Knock, boxes: Sequence[str]) -> bool:
    signs = side_by_side.each(boxes, lambda box: _sign_of(knock, box))
    return any(sign is not Sign.NOTHING for sign in signs)


def _sign_of(knock: Knock, box: str) -> Sign:
    try:
        knock(box)
    except ProxyFailed:
        return Sign.NOTHING  # what leads there said it, whatever it said
    except TooManyConnections:
        return Sign.SHUT_OUT
    except Unreachable as error:
        return Sign.TURNED_AWAY if error.is_brief else Sign.NOTHING
    except KeyRefused:
        return Sign.ANSWERS  # an sshd that knows the box's key lives
    except InputError:
        return Sign.STRANGER
    except BoxcarError:
        return Sign.ANSWERS  # it said something, if nothing that helps
    return Sign.ANSWERS


# A box holds a question for so long at most: less than what makes a connection too old to be used.
HELD_S = 25.0
# Of what comes within it, such as the end of a cell and the start of the next, one look.
TOGETHER_S = 0.3
# How soon a person who leaves is heard.
_ASIDE_S = 0.2


class SshSite(MirroredSite):
    """See Site. `tell` also hears what happens while a box is waited for, and of each that has
    stopped itself.
    """

    poll_s = 30.0
    end_fix: ClassVar[Command | str] = Command(
        "down", ("--gone", "BOX", "--because", "…"), note=_("only for a box that is gone for good")
    )

    @property
    def has_mounted_tier(self) -> bool:
        return self.plan.durable_scope == SHARED

    def await_news(self, otherwise_s: float, most_s: float, pause: Pause = time.sleep) -> object:
        """See OpenRun. A box whose line is cut meanwhile has news, too: that it is silent."""
        marks = {box: reply.mark for box, reply in self._replies.items() if reply.mark}
        if not marks:
            return pause(otherwise_s)
        for box, mark in marks.items():
            question = Wait(self._queues_of(box), mark, int(min(most_s, HELD_S)))
            self._held.put(box, partial(self._ask_held, box, question))
        began = time.monotonic()
        while (waited_s := time.monotonic() - began) < most_s:
            if waited_s >= TOGETHER_S and not all(map(self._held.is_held, marks)):
                return None
            if pause(_ASIDE_S) is True:
                return True
        return None

    def _ask_held(self, box: str, question: Wait) -> None:
        self.ask(box, question, timeout_s=HELD_S + REPORT_TIMEOUT_S, tries=1)

    def has_output(self, box: str, cell: str) -> bool:
        """As of the last look; of an attempt that has ended since the box is asked."""
        reply = self._replies.get(box)
        if reply and cell in reply.attempts:
            return cell in reply.written
        return super().has_output(box, cell)

    def box_with_log(self, cell: CellView) -> str | None:
        """Its own, or any that sees what was published on a shared tier."""
        silent, own = self.silent_boxes(), super().box_with_log(cell)
        if own not in {None, *silent} or not self.has_mounted_tier or not cell.is_verified:
            return own
        return next((name for name in self._names if name not in silent), own)

    def events_on(self, box: str) -> Place | None:
        there = self.folder_on(box, self.plan.box(box).data_dir)
        python = self.plan.training_python
        if python.startswith("~"):
            python = self.folder_on(box, python).path
        cells = ScratchPaths(Path(there.path), self.plan.run).cells
        return OnBox(there.ssh, self.project.profile.hook, python, str(cells))

    # --- its end

    def end_price(self) -> list[str]:
        profile, boxes = self.project.profile, self.plan.boxes
        told: list[str] = [
            _("credentials: {file} on {box}", file=box.credentials, box=box.name)
            for box in boxes
            if not self.is_gone(box.name)
        ]
        told += [
            _(
                "everything {box} did after {at}, its last answer",
                box=box.name,
                at=self.seen_at(box.name),
            )
            for box in boxes
            if self.is_gone(box.name)
        ]
        tiers = profile.storage.tiers
        lost = [name for name in tiers if name not in profile.meter_stop.preserves]
        mounted = _("wherever it is mounted")
        return [
            *told,
            *(_("{head}: {text}", head=name, text=tiers[name].path or mounted) for name in lost),
        ]

    def end_keeps(self) -> list[str]:
        """What the platform keeps, and what it goes on to bill."""
        verb, tiers = self.project.profile.meter_stop, self.project.profile.storage.tiers
        as_it_is = _("as it is")
        return [
            *(
                _(
                    "{tier} on the platform: {folder}",
                    tier=name,
                    folder=tiers[name].path or as_it_is,
                )
                for name in verb.preserves
            ),
            *(_("still bills: {what}", what=what) for what in verb.still_bills),
        ]

    def others_on_boxes(self, begun: Teardown | None) -> OnBoxes:
        """Of each box that is still to be ended: who works there, and what would go with it."""
        ended = set(begun.boxes) if begun else set()
        question = box_asks.SeeOthers(stays(self.project.profile))
        seen, errors = side_by_side.each_or_why(
            self._to_end(begun), lambda box: self.ask(box, question)
        )
        return on_boxes(
            seen,
            [
                _(
                    "cannot tell who else uses {box}: {why}",
                    box=box,
                    why=message_of(error).text,
                )
                for box, error in errors.items()
                if box not in ended  # which may be off by now, by a person's hand
            ],
        )

    @property
    def _ends_itself(self) -> bool:
        """Whether a box of this platform can be told to end itself."""
        verb = self.project.profile.meter_stop
        return verb.from_box is not None or verb.own_key is not None

    def to_destroy(self, begun: Teardown | None) -> dict[str, str]:
        verb = self.project.profile.meter_stop
        if verb.is_reversible:
            return {}
        rented = known.ids_by_key(self.project.profile, self.project.root)
        said = {box: self._id(box) for box in self._names} if verb.own_key else {}
        over = {*begun.told, *_seen_ended(begun)} if begun else set()
        left = [box for box in self._names if box not in over and not self.is_gone(box)]
        return {box: id_ for box in left if (id_ := rented.get(box) or said.get(box))}

    def _to_end(self, begun: Teardown | None) -> list[str]:
        """The boxes that are there, on which something is left to do."""
        over = set(self.silent_boxes())
        if begun:
            over |= {*begun.told, *_seen_ended(begun)}
        if begun and not self._ends_itself:
            over |= set(begun.boxes)
        return [box for box in self._names if box not in over and not self.is_gone(box)]

    def end_boxes(self, steps: Steps) -> None:
        """End every box. Raises TemporaryError for those that were not, once all were tried;
        MayStillBillError where all is done on them but that somebody saw their meters end.
        """
        problems = self._end_all(steps)
        # After all of that, and again by a `down` that goes on: a box that is off tells nothing.
        words = shlex.split(self.project.profile.meter_stop.from_box or "")
        still_bills = self._stop_all(steps, words) if self._ends_itself else []
        if problems:
            raise TemporaryError([*problems, *still_bills])
        if still_bills:
            kind = MayStillBillError if self.project.profile.is_billed else TemporaryError
            raise kind(still_bills)

    def _end_all(self, steps: Steps) -> list[Message]:
        """Boxcar's own part on each box; what is wrong with those that could not be reached."""
        problems = []
        for box in self.plan.boxes:
            if box.name in steps.now.boxes or self.is_gone(box.name):
                continue
            try:
                alive = self._end(box.name, box.credentials, steps.now.beside)
            except (BoxcarError, OSError) as error:
                why = message_of(error).text
                problems.append(
                    _(
                        "{box}: its secrets are still there: {why}. Fix that, then run again",
                        box=box.name,
                        why=why,
                    )
                )
                continue
            if alive:
                raise TemporaryError(
                    _(
                        "{box}: {alive} is still running there, so nothing was ended",
                        box=box.name,
                        alive=", ".join(alive),
                    ),
                    DRAIN_OR_STOP,
                )
            steps.ended(box.name)
        return [Message(problem, Command("down")) for problem in problems]

    def _end(self, box: str, credentials: str, beside: Iterable[str]) -> list[str]:
        """What is at work there, and so nothing was done; but for the runs that a person named."""
        question = box_asks.End(self.queues_on(box), credentials, tuple(beside))
        alive = self.ask(box, question).alive
        return [own_key.named(at_work) for at_work in alive]

    def _stop_all(self, steps: Steps, words: Sequence[str]) -> list[Message]:
        """Have the boxes end themselves, by the program `words` or without any by their own key;
        the last one once the others are silent.

        What answers under the name of a box that is gone is somebody else's, or has results that
        nobody saw.
        """
        left = [
            box
            for box in self._names
            if box in steps.now.boxes
            and box not in _seen_ended(steps.now)
            and not self.is_gone(box)
        ]
        # One that still runs shows that it is not this machine's network that is silent.
        left.sort(key=lambda box: box not in steps.now.told)
        groups = (left[:-1], left[-1:])
        found = [
            problem
            for group in groups
            for problem in side_by_side.each(group, lambda box: self._stop(steps, words, box))
        ]
        return [problem for problem in found if problem]

    def _stop(self, steps: Steps, words: Sequence[str], box: str) -> Message | None:
        """What is wrong with the box; None where it was told, and has fallen silent, or where its
        end is left to a person.
        """
        verb = self.project.profile.meter_stop
        if words:
            problem = self._tell_by_program(steps, words, box)
        else:
            problem = own_key.tell_box(self, steps, box, self._untold)
        if problem or box not in steps.now.told:
            return problem
        others = [name for name in self._names if name != box and not self.is_gone(name)]
        sign = wait_until_silent(lambda name: self.run_program(name, ["true"]), box, others)
        if sign is Sign.ANSWERS:
            said = own_key.said_by_provider(self, steps, box) if verb.own_key else ""
            if verb.own_key and own_key.is_provider_asked_next(self.project):
                self.tell(
                    _(
                        "{box}: still answers, so its own key ended nothing{said}",
                        box=box,
                        said=said,
                    )
                )
                return None
            return Message(
                _(
                    "{box}: still answers {within_s:.0f} s after {command}{said}. {by_hand}, then "
                    "again",
                    box=box,
                    within_s=WITHIN_S,
                    command=shlex.join(words) or verb.verb,
                    said=said,
                    by_hand=self._by_hand(box),
                ),
                Command("down"),
            )
        if sign:
            return self._unknown(box, steps.now.told[box], sign)
        steps.off(box)
        if verb.own_key:
            self.tell(
                _(
                    "{box}: told and silent after {verb}, not confirmed by the provider. Check in "
                    "the console that billing stopped",
                    box=box,
                    verb=verb.verb,
                )
            )
            return None
        self.tell(
            _(
                "{box} no longer answers after {verb}. Check in the console that billing stopped",
                box=box,
                verb=verb.verb,
            )
        )
        return None

    def _tell_by_program(self, steps: Steps, words: Sequence[str], box: str) -> Message | None:
        try:
            ran = self.run_program(box, words, lambda: steps.told(box))
        except (TemporaryError, InputError) as error:
            # Once it has begun, the verb takes the connection with it, as it should.
            return None if box in steps.now.told else self._untold(box, error)
        if ran.code:
            steps.untold(box)
            return self._refused(box, words, ran)
        return None

    def _refused(self, box: str, words: Sequence[str], ran: Ran) -> Message:
        return Message(
            _(
                "{box}: {command} failed there (exit code {code}), so it still bills: {what}. "
                "{by_hand}, then",
                box=box,
                command=shlex.join(words),
                code=ran.code,
                what=ran.err.strip()[-300:] or _("no output"),
                by_hand=self._by_hand(box),
            ),
            _again(box),
        )

    def _untold(self, box: str, error: Exception) -> Message:
        return Message(
            _(
                "{box}: could not be told to shut down, so it still bills: {text}. {by_hand}, or "
                "again",
                box=box,
                text=message_of(error).text,
                by_hand=self._by_hand(box),
            ),
            _again(box),
        )

    def _unknown(self, box: str, told_at: str, sign: Sign) -> Message:
        return Message(
            _(
                "{box}: was told to shut down at {told_at}, but it is not certain that it did "
                "({sign}). Check the console ({console}), then",
                box=box,
                told_at=told_at,
                sign=sign.value,
                console=self._where(box),
            ),
            _again(box),
        )

    def _by_hand(self, box: str) -> str:
        return _(
            "Do it by hand: {verb} ({box})",
            verb=self.project.profile.meter_stop.verb,
            box=self._where(box),
        )

    def _id(self, box: str) -> str | None:
        return host_keys.instance_id(Home(self.project.root), box)

    def _where(self, box: str) -> str:
        """Where a person ends it, with its own id in a command that wants one."""
        where = self.project.profile.meter_stop.where
        return _("{where}", where=where.replaced("<id>", self._id(box) or "<id>"))


def _seen_ended(teardown: Teardown) -> set[str]:
    return {*teardown.off, *teardown.seen_gone, *teardown.seen_off}


def _again(box: str) -> Command:
    """`down` for a box that can be told, or a person's word for one that the console shows off."""
    seen = Command("down", ("--seen-off", box), note=_("once the console shows that it is off"))
    return Command("down", or_else=seen)

"""A run whose tier is read from the mirror of what boxes report: rented ones, and a cluster's door.

One short round trip for each box renews it.

A box that does not answer is silent: nothing is known of it by that, least of all that it is dead.
It is asked again later and later, because a storm of connections makes sshd refuse more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.common import side_by_side
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.near import the_run, unknown_of
from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.hosts.ask_over_ssh import Hand
from boxcar.laptop.hosts.connection import TRIES, Ran, Ssh
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.reported_files import Mirror
from boxcar.laptop.places.held_questions import HeldQuestions
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.log_source import BoxLog, FileLog, LogSource
from boxcar.laptop.run.open_run import ASK_TIMEOUT_S, Tell
from boxcar.laptop.run.view import CellView
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    BoxcarError,
    DamagedError,
    InputError,
    TemporaryError,
    message_of,
)
from boxcar.shared.files import heartbeat, receipt
from boxcar.shared.files.plan import SHARED
from boxcar.shared.paths import MANIFEST, DurablePaths
from boxcar.shared.sentence import _, chained, mark, said_by
from boxcar.shared.wire.question import A, Question
from boxcar.shared.wire.run_asks import Report, Reported

REPORT_TIMEOUT_S = 45.0
MOST_ANSWERS = 100  # of a box in one refresh, some megabytes each
LONGEST_LOOK_S = 120.0
LONGEST_PAUSE_S = 600.0
_FIRST_PAUSE_S = 15.0
# A network disk shows a box what another one has put into a folder after a minute at the latest.
OLDEST_LISTING_S = 60.0


class MirroredSite(Site):
    """See Site. `tell` hears of a box that is met for the first time."""

    tick_s = 1.0

    def __init__(self, project: Project, tell: Tell) -> None:
        super().__init__(project, tell)
        self._names = [box.name for box in project.plan.boxes]
        self._hands: dict[str, Hand] = {}
        self._replies: dict[str, Reported] = {}
        self._reader: str | None = None  # who has listed the cells of a shared tier
        self._heard_at: dict[str, str] = {}
        self._ahead_s: dict[str, float] = {}
        self._silent: dict[str, Exception] = {}
        self._held = HeldQuestions()
        self._ended: set[str] = set()  # by a teardown that is under way, or gone for good
        self._pauses: dict[str, tuple[float, float]] = {}  # box -> (until, how long it was)
        self.mirror = Mirror(Home(project.root).mirror, project.plan.run)

    @property
    def tier(self) -> DurablePaths:
        return self.mirror.tier

    def box_label(self, box: str) -> str:
        return box

    # --- what is known

    def refresh(self, *, is_exact: bool = False) -> None:
        teardown = receipt.read_teardown(self.results.teardown)
        if teardown and teardown.finished_at:
            return  # boxes of these names may be somebody else's by now
        self._gone |= set(teardown.gone) if teardown else set()
        self._ended = self._gone | (set(teardown.boxes) if teardown else set())
        names = [name for name in self._names if name not in self._ended]
        asked = [
            name
            for name in names
            if time.monotonic() >= self._paused_until(name)
            and (is_exact or not self._held.is_held(name))
        ]
        self._look(asked, reader=asked[:1])
        if self._is_shared and not any(self._sees_tier(box) for box in asked[:1]):
            another = [box for box in asked if self._sees_tier(box)][:1]
            self._look(another, reader=another)

    def give_up_boxes(self, names: Iterable[str]) -> None:
        left = {self._last_box_of(name) for name in self.tier.known_queues(self.plan.queues)}
        known = sorted({*self._names, *(box for box in left if box)})
        for box in names:
            if box == self.plan.durable_dir:
                self._refuse_a_tier_in_sight()
                self._gone.add(box)
                continue
            if box not in known:
                said = unknown_of(box, known, what="box", of=the_run(self.plan.run))
                raise InputError(said.under(f"--gone {box}"))
            if box in self._replies or (box in self._ended - self._gone and self._answers(box)):
                raise InputError(_("--gone {box}: it answers, so it is not gone", box=box))
            self._gone.add(box)
            self._silent.pop(box, None)
        self._ended |= self._gone

    def seen_at(self, box: str) -> str | None:
        return self.mirror.seen_at(box)

    def silent_boxes(self) -> dict[str, str]:
        # In short: what to do about it is said once, by doubts.
        return {
            box: getattr(why, "why", None) or message_of(why).text
            for box, why in self._silent.items()
        }

    def doubts(self) -> list[str]:
        told = []
        for box in self._names:
            if box in self._silent:
                seen_at = self.seen_at(box)
                known = (
                    _("last heard from at {seen_at}", seen_at=seen_at)
                    if seen_at
                    else _("never heard from")
                )
                told.append(
                    _(
                        "{box} does not answer ({known}): {silent}",
                        box=box,
                        known=known,
                        silent=self._silent[box],
                    )
                )
        return told + self.unread() + self.tier_doubts()

    def unread(self) -> list[str]:
        """What boxes have told that they could not read."""
        found = ((box, reply.unread or {}) for box, reply in self._replies.items())
        return [
            _("{box} cannot read {name}: {why}", box=box, name=name, why=why)
            for box, each in found
            for name, why in each.items()
        ]

    def tier_doubts(self) -> list[str]:
        tier = self.plan.durable_dir
        if self.is_gone(tier):
            return []
        anew = "" if self._is_shared else _(" Or is this a newly rented box? Then launch")
        return [
            _(
                "{box} answers, but the run is not in {tier} there: is it mounted?{anew}",
                box=box,
                tier=tier,
                anew=anew,
            )
            for box in self._names
            if box in self._replies and not self._sees_tier(box) and self.mirror.names_of(box)
        ]

    def has_lost_its_tier(self, box: str) -> bool:
        # Of a tier that is shared, another box may still see everything.
        return not self._is_shared and box in self._replies and not self._sees_tier(box)

    def is_agent_alive(self, queue: str) -> bool | None:
        box = self.plan.queues.get(queue) or self._last_box_of(queue)
        told = {name: reply.agents.get(queue) for name, reply in self._replies.items()}
        if any(told.values()):
            return True  # also of a box that was said to be gone: another one sees its lock
        if box in self._ended:
            return False
        if box is None:
            return None if self._silent else False  # nothing shows that it ever ran
        is_blind = box in told and told[box] is None
        if is_blind and (self.is_gone(self.plan.durable_dir) or not self.tier.root.exists()):
            return False  # its lock went with the tier, or the run was never launched
        return told.get(box)

    def is_attempt_alive(self, box: str, cell: str) -> bool | None:
        if box in self._replies:
            return cell in self._replies[box].attempts
        return False if box in self._ended else None

    def progress_at(self, box: str, cell: str) -> str | None:
        reply = self._replies.get(box)
        return reply.progress_at.get(cell) if reply else None

    def listing_age_s(self, box: str) -> float:
        return OLDEST_LISTING_S if self._is_shared and box != self._reader else 0.0

    def clock_ahead_s(self, box: str) -> float:
        return self._ahead_s.get(box, 0.0)

    # --- what is done

    def ask(
        self,
        box: str,
        question: Question[A],
        *,
        timeout_s: float = ASK_TIMEOUT_S,
        tries: int = TRIES,
    ) -> A:
        answered = self._hand(box).ask(
            question, self._run_on(box), timeout_s=timeout_s, tries=tries
        )
        self._pauses.pop(box, None)
        return answered

    def reach_tiers(self, boxes: Sequence[str]) -> list[str]:
        if not self._is_shared:
            return list(dict.fromkeys(boxes))
        answering = [box for box in boxes if box not in self._silent and box not in self._gone]
        if not answering:
            whys = [self._silent[box] for box in boxes if box in self._silent]
            # Where a person has to mend each of them, the same call will not succeed later.
            is_mendable = all(isinstance(why, InputError) for why in whys)
            raise (InputError if is_mendable else TemporaryError)(
                _(
                    "none of {boxes} answers, so the durable tier is unreachable: {whys}",
                    boxes=", ".join(boxes),
                    whys=chained(
                        mark("{first}; {second}"), list(dict.fromkeys(map(said_by, whys)))
                    ),
                )
            )
        return answering[:1]

    def folder_on(self, box: str, path: str) -> Remote:
        hand = self._hand(box)
        hello = hand.hello()
        return Remote(hand.ssh, hello.expand(path), has_rsync=hello.has_rsync)

    def published_folder(self, cell: str) -> Remote:
        plan = self.plan
        name = f"cells/{cell}/{MANIFEST}"
        owners = () if self._is_shared else self.mirror.boxes_with(name, self._names)
        # With a shared tier all can give it; its own box spreads the load.
        queue = next((known.queue for known in plan.cells if known.name == cell), "")
        for box in (*owners, *plan.boxes_of_files.get(queue, ()), *self._names):
            if box not in self._silent:
                return self.folder_on(box, str(self.project.on_tier.cell(cell)))
        raise TemporaryError(_("{cell}: no box that has it answers", cell=cell))

    def run_program(
        self, box: str, words: Sequence[str], on_start: Callable[[], None] = lambda: None
    ) -> Ran:
        """Run a program of the box's own; `on_start` is called once it has begun there.

        Raises TemporaryError where the link did not hold, InputError where another box answers.
        """
        return self._hand(box).run(words, tries=1, on_start=on_start)

    def log_of(self, cell: CellView) -> LogSource | None:
        """A box has the log while the cell runs and after it, the results after a pull."""
        pulled = self.pulled_log(cell.name)
        if pulled.is_file() and not cell.is_under_way:
            return FileLog(pulled)
        box = self.box_with_log(cell)
        log = BoxLog(self, box, cell.name) if box else None
        return log if log and log.is_there() else None

    def kept_copies(self, name: str) -> list[Path]:
        return self.mirror.kept(name)

    def forget_boxes(self) -> None:
        self.mirror.drop()

    def close(self) -> None:
        for hand in self._hands.values():
            hand.ssh.close()

    # --- inside

    @property
    def _is_shared(self) -> bool:
        return self.plan.durable_scope == SHARED

    def _refuse_a_tier_in_sight(self) -> None:
        seeing = [box for box in self._replies if self._sees_tier(box)]
        if seeing and (self._is_shared or len(seeing) == len(self._replies)):
            raise InputError(
                _(
                    "--gone {durable_dir}: {seeing} can see it, so it is not gone",
                    durable_dir=self.plan.durable_dir,
                    seeing=", ".join(seeing),
                )
            )

    def _answers(self, box: str) -> bool:
        """Whether a box that is not asked any more, because its part is done, is there."""
        try:
            self.run_program(box, ["true"])
        except (TemporaryError, InputError):
            return False
        return True

    def _hand(self, box: str) -> Hand:
        if box not in self._hands:
            ssh = Ssh(box, Home(self.project.root), self.tell)
            folder, agent = self.plan.box(box).data_dir, ask_over_ssh.agent_program()
            self._hands[box] = Hand(ssh, self.project.profile, folder, *agent)
        return self._hands[box]

    def _look(self, boxes: Sequence[str], reader: Sequence[str]) -> None:
        """Ask the boxes side by side, and again those that have more to say.

        Of a shared tier the reader tells everything.
        """
        self._reader = next(iter(reader), self._reader)
        until = time.monotonic() + LONGEST_LOOK_S
        for _answer in range(MOST_ANSWERS):
            side_by_side.each(
                boxes,
                lambda box: self._report(box, is_reader=box in reader),
                on_interrupt=self.close,
            )
            boxes = [box for box in boxes if not self._take(box)]
            if not boxes:
                return
            if time.monotonic() > until:
                break
        for box in boxes:
            why = _("{box}: did not finish reporting its files after many answers", box=box)
            self._fall_silent(box, DamagedError(why))

    def _take(self, box: str) -> bool:
        """Whether the mirror has all that the box would tell, as far as it can be told now."""
        if not self._sees_tier(box):
            return True
        reply = self._replies[box]
        files = [file for file in reply.files if not self._has_its_own_word(file.path, box)]
        gone = [name for name in reply.gone if not self._has_its_own_word(name, box)]
        try:
            is_whole = self.mirror.take_report(box, files, gone, self._heard_at[box])
        except (BoxcarError, OSError) as error:
            self._fall_silent(box, error)
            return True
        return is_whole and not reply.is_more

    def _has_its_own_word(self, name: str, box: str) -> bool:
        """Whether another box that answers has the queue: a network disk may show older files here.

        What it says of its lock would not fit them, and a queue that is done would look dead.
        """
        if name.startswith(("cells/", "claims/", "accepted/", "releases/")):
            return False  # a queue may be called plan or manifest
        queue, of_queue = PurePosixPath(name).stem, self.plan.queues
        is_file = name.startswith("queues/")
        owners = self.plan.boxes_of_files.get(queue, ()) if is_file else (of_queue.get(queue),)
        owner = next((one for one in owners if one and self._sees_tier(one)), box)
        return owner != box

    def _report(self, box: str, *, is_reader: bool) -> None:
        try:
            reply = self._ask_report(box, is_reader=is_reader)
        except (BoxcarError, OSError) as error:
            self._fall_silent(box, error)
            return
        self._replies[box] = reply
        self._silent.pop(box, None)

    def _fall_silent(self, box: str, why: Exception) -> None:
        self._silent[box] = why
        self._replies.pop(box, None)
        self._pause(box)

    def _ask_report(self, box: str, *, is_reader: bool) -> Reported:
        is_of_all = is_reader and self._is_shared
        have = self.mirror.prefixes_here(*(self._names if is_of_all else [box]))
        everything = is_reader or not self._is_shared
        before = timestamp.utc_now()
        question = Report(self._queues_of(box), everything, have)
        reply = self.ask(box, question, timeout_s=REPORT_TIMEOUT_S, tries=2)
        self._heard_at[box] = timestamp.utc_now()
        self._ahead_s[box] = ahead_s(before, reply.at, self._heard_at[box])
        # What it was not asked about, another box may have.
        return replace(reply, gone=tuple(name for name in reply.gone if name in have))

    def _queues_of(self, box: str) -> tuple[str, ...]:
        """Its own, and those that have left the plan: their agent may still run, on any box."""
        left = set(self.tier.known_queues(self.plan.queues)) - set(self.plan.queues)
        return (*self.queues_on(box), *sorted(left))

    def _sees_tier(self, box: str) -> bool:
        return box in self._replies and self._replies[box].is_tier_there

    def _last_box_of(self, queue: str) -> str | None:
        """Where a queue that has left the plan was last at work, as far as is known."""
        try:
            beat = heartbeat.read_heartbeat(self.tier.heartbeat(queue))
        except DamagedError:
            return "unknown"
        return beat.box if beat else None

    def _paused_until(self, box: str) -> float:
        return self._pauses.get(box, (0.0, 0.0))[0]

    def _pause(self, box: str) -> None:
        last_s = self._pauses.get(box, (0.0, 0.0))[1]
        pause_s = min(LONGEST_PAUSE_S, last_s * 2 or _FIRST_PAUSE_S)
        self._pauses[box] = (time.monotonic() + pause_s, pause_s)


def ahead_s(before: str, at: str, after: str) -> float:
    """How far a clock that said `at` is ahead of ours, which said the others around it."""
    first, told, last = map(timestamp.parse_utc, (before, at, after))
    # When in between it was read nobody knows: the middle is least wrong.
    return (told - first - (last - first) / 2).total_seconds()

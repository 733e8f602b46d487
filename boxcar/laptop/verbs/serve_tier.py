"""What push and launch share: the release on a durable tier, and the lines of its queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boxcar.laptop.common import show, side_by_side
from boxcar.laptop.common.progress import Progress
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.queues import sync
from boxcar.laptop.project.queues.sync import Ahead, Append, CommentedThere, CommentOut
from boxcar.laptop.results.lend import lend_files
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError, NoRoomError
from boxcar.shared.files import queue_line
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.release import Release
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.envelope import Replies
from boxcar.shared.wire.question import Question

CHECK_TIMEOUT_S = 600.0  # a slow network disk reads the whole release for it


def by_tier(site: Site, queues: Sequence[str]) -> dict[str, list[str]]:
    """The queues or queue files on each durable tier, by the box that the tier is reached by."""
    boxes = {queue: _boxes_of(site, queue) for queue in queues}
    reached = site.reach_tiers(list(dict.fromkeys(box for each in boxes.values() for box in each)))
    if site.plan.durable_scope != EACH_BOX:
        return {box: list(queues) for box in reached}
    return {box: [name for name in queues if box in boxes[name]] for box in reached}


def _boxes_of(site: Site, queue: str) -> tuple[str, ...]:
    """Its own; of a queue file all that work through it."""
    own = site.plan.queues.get(queue)
    return (own,) if own else site.plan.boxes_of_files[queue]


@dataclass(frozen=True)
class Wanted:
    """What a box is asked for a queue at once, in this order."""

    box: str
    questions: tuple[Question[Any], ...]


@dataclass(frozen=True)
class Served:
    """Whether the release was sent just now, what was answered for each queue that asked for
    something, and why others were not asked.
    """

    is_new: bool
    replies: dict[str, Replies]
    errors: dict[str, Exception]


def serve(
    site: Site,
    box: str,
    built: tuple[Release, Path],
    queues: Sequence[str],
    want: Callable[[str], Wanted],
    *,
    bar: Progress,
    on_sent: Callable[[], None] = lambda: None,
    before: Sequence[Question[Any]] = (),
) -> Served:
    """Have the release on the tier of this box, and ask what each queue wants.

    `want` is called for each queue once all is sent, after `on_sent`. What the first queue wants is
    asked together with the release's name, where no other box waits for that; `before` are
    questions that are asked before any queue's.
    """
    made, folder = built
    find = run_asks.FindRelease(made.digest)
    sizes_bytes = tuple(file.size_bytes for file in made.files)
    prepare = run_asks.Prepare(made.digest, sizes_bytes, is_mounted=site.has_mounted_tier)
    replies = site.ask_all(box, find, prepare, timeout_s=CHECK_TIMEOUT_S)
    found = replies.to(find)
    _refuse(site, box, made, found.problems)
    sending = None if found.is_there else _Sending(site, box, folder, made, bar)
    if sending:
        sending.begin(_prepared(replies, prepare))
    on_sent()
    wanted, errors = side_by_side.each_or_why(queues, want)
    # Before any line: an agent that meets a line without its release would let it wait.
    point = (*(() if found.is_newest else (run_asks.PointTo(made.digest),)), *before)
    answered = {}
    if sending or point:
        is_alone = all(one.box == box for one in wanted.values())
        first = next(iter(wanted), None) if is_alone else None
        questions = (*point, *(wanted[first].questions if first else ()))
        replies = sending.install(questions) if sending else _ask(site, box, questions)
        for question in point:
            replies.to(question)
        answered = {first: replies} if first else {}
    left = [name for name, one in wanted.items() if one.questions and name not in answered]
    others, unasked = side_by_side.each_or_why(
        left, lambda name: _ask(site, wanted[name].box, wanted[name].questions)
    )
    return Served(sending is not None, answered | others, errors | unasked)


def _ask(site: Site, box: str, questions: Sequence[Question[Any]]) -> Replies:
    """What makes a release known and starts agents: not where a person has typed Ctrl-C."""
    side_by_side.end_if_given_up()
    return site.ask_all(box, *questions, timeout_s=CHECK_TIMEOUT_S)


def _prepared(replies: Replies, prepare: run_asks.Prepare) -> run_asks.Prepared:
    try:
        return replies.to(prepare)
    except NoRoomError as error:
        raise NoRoomError(
            _("{error}. Free some space there, then run the same command again", error=error)
        ) from error


class _Sending:
    """Everything under an unfinished name; the box checks it, and then gives it its own."""

    def __init__(self, site: Site, box: str, folder: Path, made: Release, bar: Progress) -> None:
        self._site, self._box, self._folder, self._made = site, box, folder, made
        self._part = bar.part(sum(file.size_bytes for file in made.files), box)

    def begin(self, prepared: run_asks.Prepared) -> None:
        """Send it. What a push that broke off has left there is gone on with."""
        target = self._site.project.on_tier.release(self._made.digest)
        name = prepared.kept or atomic.temporary_name(target).name
        self._there = self._site.folder_on(self._box, str(target.with_name(name)))
        self._install = run_asks.Install(self._made.digest, name)
        self._bases = prepared.bases
        self._send()

    def install(self, questions: Sequence[Question[Any]]) -> Replies:
        """Have it checked and named, and in the same round trip ask the `questions`."""
        replies = _ask(self._site, self._box, (self._install, *questions))
        try:
            replies.to(self._install)
        except DamagedError:
            # The box has removed it. Should a base be at fault, the second time nothing is copied.
            if not self._bases:
                raise
            self._bases = ()
            self._send()
            return self.install(questions)
        self._part.end()
        return replies

    def _send(self) -> None:
        folders.send_folder(
            self._folder,
            self._there,
            on_bytes=self._part.at,
            bases=self._bases,
            copied=self._copied_there,
            has_own_connection=False,
        )
        self._part.doing = _("checked by the box")

    def _copied_there(self) -> tuple[str, ...]:
        question = run_asks.CopyUnchanged(
            self._made.digest, self._install.unfinished, self._made.files
        )
        return self._site.ask(self._box, question, timeout_s=CHECK_TIMEOUT_S).names


def _refuse(site: Site, box: str, made: Release, problems: Sequence[str]) -> None:
    if problems:
        raise DamagedError(
            _(
                "{box}: {digest} changed since it was pushed: {problems}. It was left as it is. "
                "If no agent runs from it, move the folder away and push again.",
                box=box,
                digest=site.project.on_tier.release(made.digest),
                problems="; ".join(problems[:5]),
            )
        )


@dataclass(frozen=True)
class Lines:
    """What the tier's queue file lacks of the local one; `there`: what the tier has, if known."""

    change: sync.Change
    there: bytes | None
    questions: tuple[run_asks.Append | run_asks.CommentOut, ...]


NO_LINES = Lines(sync.Same(), None, ())


def box_for_lines(site: Site, name: str) -> str:
    """The queue's own, or another one of a shared tier where that one does not answer."""
    others = (box.name for box in site.plan.boxes)
    return site.reach_tiers(list(dict.fromkeys([*_boxes_of(site, name), *others])))[0]


def send_queue(site: Site, name: str, bar: Progress) -> str:
    """Append what the local queue file has more; what was done."""
    box, lines = box_for_lines(site, name), lines_of(site, name, bar)
    replies = site.ask_all(box, *lines.questions) if lines.questions else None
    return say_lines(site, name, lines, replies)


def lines_of(site: Site, name: str, bar: Progress) -> Lines:
    """What is to be asked for a queue, once the files that its lines need were sent."""
    local, shared = site.project.queue_files[name], site.tier.queue(name)
    there = sync.read_tier_queue(shared)
    change = sync.decide(local, shared, there)
    if site.has_lost_its_tier(_boxes_of(site, name)[0]):
        # What we know of it is another box's, which had this name before.
        there, change = None, sync.anew(local, there)
    elif site.plan.durable_scope == EACH_BOX:
        # Before the lines: a line that comes after a result which was lent needs its files.
        for text in lend_files(site, name, bar):
            show.say(text)
    if isinstance(change, CommentedThere):
        _say_commented_there(name, local, change)
        change = change.change
    known = None if there is None else (len(there), digest.of_bytes(there))
    if isinstance(change, Append):
        return Lines(change, there, (run_asks.Append(name, known, change.data),))
    if isinstance(change, CommentOut):
        read = known or (0, digest.of_bytes(b""))
        return Lines(change, there, (run_asks.CommentOut(name, read, change.data),))
    return Lines(change, there, ())


def say_lines(site: Site, name: str, lines: Lines, replies: Replies | None) -> str:
    """Say what was done, which comes back as a word. Raises what the box raised."""
    for question in lines.questions:
        assert replies
        replies.to(question)
    return say_change(site, name, lines)


def say_change(site: Site, name: str, lines: Lines) -> str:
    change = lines.change
    if isinstance(change, Append):
        _say_appended(site, name, change.data)
        return "appended"
    if isinstance(change, CommentOut):
        for line in change.lines:
            show.say(_("{queue}: commented out on the tier: {line}", queue=name, line=line))
        before = (lines.there or b"").count(b"\n")
        _say_appended(site, name, b"".join(change.data.splitlines(keepends=True)[before:]))
        return "commented out"
    if isinstance(change, Ahead):
        show.say(
            _(
                "{queue}: {n} {n:line was|lines were} appended on the tier; {file} lacks "
                "{n:it|them}",
                queue=name,
                n=len(change.lines),
                file=site.project.queue_files[name],
            )
        )
        return "ahead"
    return "same"


def _say_appended(site: Site, name: str, data: bytes) -> None:
    """Comments are sent with the lines of cells, and are not counted."""
    if n := len(queue_line.parse_queue(data).cells):
        file = site.project.on_tier.queue(name)
        show.say(_("{queue}: {n} {n:line|lines} appended to {file}", queue=name, n=n, file=file))


def _say_commented_there(name: str, local: Path, found: CommentedThere) -> None:
    for number, line in found.lines:
        show.say(
            _(
                "{queue}: line {number} is commented out on the tier, but not here: {line}",
                queue=name,
                number=number,
                line=line,
            )
        )
    command = sync.to_comment_out(local, found.lines)
    show.say(
        _(
            "{queue}: lines commented out on the tier are skipped. To comment them out here, too: "
            "{command}. To run such a cell after that, append a new line",
            queue=name,
            command=command,
        )
    )

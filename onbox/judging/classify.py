"""What follows from how an attempt ended. Pure: decided from values, nothing is touched.

Evidence is looked at from the surest down: the artifacts, the reserved exit codes, then what
`boxcar.shared.triage` makes of the rest. A log line never makes a success; only a launcher that
returned 0 with its artifacts there does. Only the identical config is ever tried again, and only
where the class says that this can help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from boxcar.shared.cell import duration
from boxcar.shared.errors import some
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.plan import IN_CODE, IN_OUT
from boxcar.shared.news.wanted import NAN
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.triage import exit_signals
from boxcar.shared.triage.evidence import Cause, Course, Evidence
from onbox.judging.verdict import Action, Verdict

# What a disk lacks was measured: room is waited for. See the signatures for what only a log says.
DISK = "DISK"
ACTIONS = {
    Course.RESUME_SAME: Action.RETRY,
    Course.WAIT_NETWORK: Action.RETRY,
    Course.OTHER_BOX: Action.STOP_QUEUE,
    Course.FREE_SPACE: Action.RETRY,
    Course.FIX_CONFIG: Action.FAIL,
    Course.FIX_CODE: Action.FAIL,
    Course.FIX_DATA: Action.FAIL,
    Course.OUT_OF_MEMORY: Action.FAIL,
    Course.PREEMPTED: Action.PREEMPTED,
    Course.TIME_LIMIT: Action.FAIL,
    Course.STOP_QUEUE: Action.STOP_QUEUE,
    Course.ASK: Action.FAIL,
}
# What a disk that is full by the log, and has room again, is given.
_WAITS_FOR_SPACE_S = (60.0, 300.0)
# With a disk full beside it, room would help none of these.
_ABOVE_DISKS = (Course.OTHER_BOX, Course.OUT_OF_MEMORY)
SCRIPTS_OWN = "PY"

CHANGED_CODE = "CODE"
NO_ART = "NO-ART"
# A line that cannot be run as it is; the word is of a time when only its config could be why.
MISFIT = "NOCFG"
TIME_LIMIT = "TIME_LIMIT"
WRONG_RANKS = "RANKS"
_SIGTERM = 15
# Kept, and judged anew by a later launch: see settle.UnfitError and settle.UncheckedError.
UNFIT, UNCHECKED = "UNFIT", "UNCHECKED"
# Resumed for as long as the platform lets it run, but a script that always says 85 comes to an end.
_WAITS_AFTER_PREEMPTION_S = (1, 1, 10, *[60] * 20)
_WAITS_AFTER_KILL_S = (1, 10, 60)
_NO_TORCHRUN = "python"
PREEMPTED, GONE = "EXIT85", "GONE"
# 85 that nobody had asked for, with nothing to go on from; and a launcher's 0 that proves nothing.
UNASKED, RANKS_ALIVE = "UNASKED", "RANKS-ALIVE"
# Ended by the agent, as the job asks for.
STALL, NOT_A_NUMBER = "STALLED", "NAN-METRIC"
NOTHING_SEEN = Evidence()
_LAST_ERROR = re.compile(r"^(?:\[rank\d+\]:\s*)?([\w.]*(?:Error|Exception|Interrupt)\b.*)$", re.M)
# How boxcar.training reports one; what is merely slow goes on.
_HANG = re.compile(r"^boxcar: ([a-z]+(?:-[a-z]+)+: .*)$", re.M)
_LONGEST_REASON = 400  # characters
# torchrun's own last words say nothing about the cause.
_WRAPPER_WORDS = ("ChildFailedError", "torch.distributed.elastic", "SignalException")


def classify(
    done: Done,
    log_tail: str,
    missing: Sequence[str],
    problem: str = "",
    *,
    lacking_room: str = "",
    launcher: str = "torchrun",
    strays: Mapping[str, str] = MappingProxyType({}),
    workdir: str = IN_CODE,
    has_saved: bool = False,
    seen: Evidence = NOTHING_SEEN,
) -> Verdict:
    """The verdict on one attempt.

    `log_tail` is the end of this attempt's part of the cell's log; `missing` are the artifacts that
    are not there, `problem` says what keeps those that are there from being published;
    `lacking_room` is what the cell's disk lacks, '' where it has room. `strays` are declared files
    that it wrote beside its code: declared path -> where it lay there. `workdir` is the plan's.
    `has_saved`: a whole checkpoint is there, newer than the attempt's begin. `seen` is what else is
    known: of GPUs, of torchrun's error file, where the log's part begins.
    """
    if done.ranks_formed is not None:
        return _of_wrong_ranks(done)
    if done.over_time_s is not None:
        limit = duration.spell_duration(done.over_time_s)
        reason = _("it had not ended after {limit}, its time limit", limit=limit)
        return Verdict(Action.FAIL, TIME_LIMIT, reason, course=Course.TIME_LIMIT)
    rcs = {done.rc, *_worker_rcs(log_tail, launcher)}
    if done.rc == 0:
        where_it_is = _where_it_is(missing, strays, workdir)
        return _ended_well(done, missing, problem, lacking_room, where_it_is, has_saved=has_saved)
    evidence = replace(seen, log=log_tail, rcs=frozenset(rcs), oom_kills=done.oom_kills)
    return (
        _left(done, rcs, lacking_room, has_saved=has_saved)
        or _by_code(rcs, lacking_room, log_tail)
        or _by_triage(done, evidence, lacking_room)
    )


def _worker_rcs(log_tail: str, launcher: str) -> set[int]:
    """Without a launcher that reports on workers, such a line is the script's own."""
    if launcher == _NO_TORCHRUN:
        return set()
    return exit_signals.worker_rcs(log_tail)


def without_record(wrapper_rc: int | None, log_tail: str, *, lacking_room: str = "") -> Verdict:
    """The wrapper left no record of the attempt; `wrapper_rc` is None where nobody waited for it.

    Ended by itself, it never came to start the launcher, and no other cell would fare better. On a
    full disk it may have had no room for the record.
    """
    if lacking_room:
        return _await_room(lacking_room, log_tail)
    cause = _judged(Evidence(log_tail))
    if cause.course is Course.FREE_SPACE:
        return of_cause(cause)
    if wrapper_rc is not None and wrapper_rc > 0 and wrapper_rc != exit_codes.TEMPORARY:
        reason = _(
            "run_one.sh ended with exit code {rc} before the launcher started: {error}",
            rc=wrapper_rc,
            error=last_error(log_tail),
        )
        return Verdict(Action.STOP_QUEUE, "WRAPPER", reason, course=Course.STOP_QUEUE)
    reason = _("the attempt was killed: it left no record of its end")
    return Verdict(Action.RETRY, GONE, reason, _WAITS_AFTER_KILL_S, course=Course.RESUME_SAME)


def of_ended_job(verdict: Verdict, state: str) -> Verdict:
    """Of an attempt that left no record, in a job that a scheduler ended with this word.

    Whatever it was, it was the job's: only one whose memory was too small would end alike again.
    """
    if verdict.failure != GONE:
        return verdict
    is_memory = state == "OUT_OF_MEMORY"
    cause = _judged(Evidence(f"JobState={state}{' (oom-kill event)' if is_memory else ''}"))
    reason = _("Slurm ended its job: {state}", state=state)
    if is_memory:
        both = _("{first}. {second}", first=reason, second=cause.reason)
        return replace(of_cause(cause), reason=both)
    return replace(verdict, failure=cause.id if cause.is_known else GONE, reason=reason)


def of_ended_pod(verdict: Verdict, reason: str) -> Verdict:
    """The same of a pod, by Kubernetes' word for it: a cell whose memory was too small would end
    alike again, and so is not tried again.
    """
    if verdict.failure != GONE:
        return verdict
    cause = _judged(Evidence(f"Reason: {reason}"))
    told = _("Kubernetes ended its pod: {reason}", reason=reason)
    if cause.course is Course.OUT_OF_MEMORY:
        both = _("{first}. {second}", first=told, second=cause.reason)
        return replace(of_cause(cause), reason=both)
    return replace(verdict, failure=cause.id if cause.is_known else GONE, reason=told)


def of_changed_code(names: Sequence[str]) -> Verdict:
    """Files of the release were changed while the cell ran: who knows what it was that ran."""
    reason = _(
        "it changed {n} {n:file|files} of the release while it ran: {names}. A script must write "
        "into {{out}}, or into files of its own",
        n=len(names),
        names=some(names, 5),
    )
    return Verdict(Action.FAIL, CHANGED_CODE, reason, course=Course.FIX_CODE)


def of_early_end(verdict: Verdict, what: str, text: str) -> Verdict:
    """Of an attempt that the agent has ended for this warning, unless it came to its end before."""
    if verdict.action is Action.SUCCEED or verdict.failure == CHANGED_CODE:
        return verdict
    if what == NAN:
        return Verdict(Action.FAIL, NOT_A_NUMBER, text, is_final=True, course=Course.FIX_CONFIG)
    return Verdict(Action.RETRY, STALL, text, _WAITS_AFTER_KILL_S, course=Course.RESUME_SAME)


def last_error(log_tail: str) -> str:
    """The last line that looks like an exception's, else the last line; '' for an empty log."""
    errors = [line for line in _LAST_ERROR.findall(log_tail) if not _is_wrappers(line)]
    lines = [line.strip() for line in log_tail.splitlines() if line.strip()]
    return (errors or lines or [""])[-1][:300]


def _ended_well(
    done: Done,
    missing: Sequence[str],
    problem: str,
    lacking_room: str,
    where_it_is: str,
    *,
    has_saved: bool,
) -> Verdict:
    if done.was_told_to_stop:
        # Many scripts leave with 0 when they are told to; the identical command will tell.
        return _preempted(_("it was asked to stop"), has_saved=has_saved)
    if done.ranks_alive is not None:
        return _of_ranks_alive(done.ranks_alive)
    if not (missing or problem):
        return Verdict(Action.SUCCEED)
    if lacking_room:
        return _await_room(lacking_room, "")
    if missing:
        reason = _("it exited with 0, but did not write {names}", names=", ".join(missing))
        if where_it_is:
            reason = _("{first}. {second}", first=reason, second=where_it_is)
        return Verdict(Action.FAIL, NO_ART, reason, course=Course.FIX_CODE)
    return Verdict(Action.FAIL, UNFIT, problem, is_kept=True, course=Course.ASK)


def _where_it_is(missing: Sequence[str], strays: Mapping[str, str], workdir: str) -> str:
    if not strays:
        return ""
    paths = [strays[name] for name in missing if name in strays] or strays.values()
    places = ", ".join(f"./{path}" for path in sorted(paths))
    return _(
        "The script wrote it to {places}, beside its code: {way_out}",
        places=places,
        way_out=way_out(workdir),
    )


def way_out(workdir: str) -> str:
    """What to do about a declared file that was written beside the code."""
    is_in_out = workdir == IN_OUT  # then the script itself names the folder of its code
    return _("write it into $BOXCAR_OUT") if is_in_out else _("set workdir: out in job.yaml")


def _of_wrong_ranks(done: Done) -> Verdict:
    reason = _(
        "the launcher was asked for {asked} ranks and formed {formed}. Set nproc_per_node to what "
        "the box and the script can do, and leave it out of the command",
        asked=done.ranks_asked,
        formed=done.ranks_formed,
    )
    return Verdict(Action.FAIL, WRONG_RANKS, reason, is_final=True, course=Course.FIX_CONFIG)


def _of_ranks_alive(count: int) -> Verdict:
    reason = _("the launcher exited with 0 while {n} {n:rank|ranks} still ran", n=count)
    return Verdict(
        Action.RETRY, RANKS_ALIVE, reason, _WAITS_AFTER_KILL_S, course=Course.RESUME_SAME
    )


def _left(done: Done, rcs: set[int], lacking_room: str, *, has_saved: bool) -> Verdict | None:
    if done.was_told_to_stop and rcs & {-_SIGTERM, 128 + _SIGTERM, 1, exit_codes.PREEMPTED}:
        return _preempted(_("it was asked to stop"), has_saved=has_saved)
    if exit_codes.PREEMPTED not in rcs:
        return None
    if has_saved:
        return _preempted(_("it exited with 85"), has_saved=True)
    if lacking_room:
        return _await_room(lacking_room, "")
    reason = _("it exited with 85, unasked, and saved no checkpoint")
    return Verdict(Action.FAIL, UNASKED, reason, course=Course.FIX_CODE)


def _preempted(what: str, *, has_saved: bool) -> Verdict:
    template = mark("{what}, and saved a checkpoint")
    if not has_saved:
        template = mark("{what}, and saved no checkpoint")
    reason = Sentence(template, what=what)
    return Verdict(
        Action.PREEMPTED, PREEMPTED, reason, _WAITS_AFTER_PREEMPTION_S, course=Course.PREEMPTED
    )


def _by_code(rcs: set[int], lacking_room: str, log_tail: str) -> Verdict | None:
    if exit_codes.NO_RETRY in rcs:
        reason = _diagnosed(_("the script asked not to be retried"), log_tail)
        return Verdict(Action.FAIL, "EXIT42", reason, is_final=True, course=Course.FIX_CODE)
    if exit_codes.STOP_QUEUE in rcs:
        reason = _("the script asked for the queue to stop")
        return Verdict(Action.STOP_QUEUE, "EXIT43", reason, course=Course.STOP_QUEUE)
    if exit_codes.NO_ROOM in rcs and lacking_room:
        return _await_room(lacking_room, "")
    if exit_codes.NO_ROOM in rcs:
        reason = _("the script found too little disk space")
        return Verdict(Action.STOP_QUEUE, "EXIT3", reason, course=Course.FREE_SPACE)
    if exit_codes.TEMPORARY in rcs:
        reason = _diagnosed(_("the script asked to be retried later"), log_tail)
        return Verdict(Action.RETRY, "EXIT75", reason, (60.0, 300.0), course=Course.RESUME_SAME)
    return None


def _diagnosed(reason: Sentence, log_tail: str) -> Sentence:
    """With what the training layer's report of a hang says there, with its kind."""
    found = _HANG.findall(log_tail)
    return _("{words}: {text}", words=reason, text=found[-1][:_LONGEST_REASON]) if found else reason


def _by_triage(done: Done, evidence: Evidence, lacking_room: str) -> Verdict:
    cause = _judged(evidence)
    if lacking_room and cause.course not in _ABOVE_DISKS:
        return _await_room(lacking_room, evidence.log)
    if done.rc in (126, exit_codes.NOT_FOUND) and cause.course is not Course.OTHER_BOX:
        reason = _("a program was not found: {error}", error=last_error(evidence.log))
        return Verdict(Action.STOP_QUEUE, "NOEXE", reason, course=Course.STOP_QUEUE)
    # An error that only the script knows is named by its exit code.
    is_own = not cause.is_known or cause.id.startswith(SCRIPTS_OWN)
    if is_own:
        said = cause.quotes[0].text if cause.quotes else ""
        cause = replace(cause, id=f"EXIT{done.rc}", reason=said or _("exit code {rc}", rc=done.rc))
    return of_cause(cause)


def of_cause(cause: Cause) -> Verdict:
    """What the agent does about it."""
    return Verdict(
        ACTIONS[cause.course],
        cause.id,
        cause.reason,
        cause.waits_s or (_WAITS_FOR_SPACE_S if cause.course is Course.FREE_SPACE else ()),
        course=cause.course,
        quotes=cause.quotes,
    )


def _judged(evidence: Evidence) -> Cause:
    # Late: the rows cost a start 0.14 s of CPU and 4 MB, and most agents meet no failure.
    from boxcar.shared.triage.judge import judge

    return judge(evidence)


def _await_room(lacking_room: str, log_tail: str) -> Verdict:
    reason = _("a disk was full when it ended: {lacking}", lacking=lacking_room)
    if error := last_error(log_tail):
        reason = _("{reason} ({error})", reason=reason, error=error)
    return Verdict(Action.AWAIT_ROOM, DISK, reason, course=Course.FREE_SPACE)


def _is_wrappers(line: str) -> bool:
    return any(word in line for word in _WRAPPER_WORDS)

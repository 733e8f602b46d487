"""The door: `invoke --list` is the map, one task for each verb.

Each task calls one function of boxcar.laptop, whose file has the verb's name. Settings may also
stand in invoke.yaml (`boxcar: {profile: ..., job: ...}`) or the environment, by Invoke's own rules.
Long, because Invoke reads each verb's flags and their help from its task, and it reads one file.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import Argument, Collection, Context, Exit, Task, task

from boxcar.shared import exit_codes
from boxcar.shared.errors import BoxcarError, InputError, message_of
from boxcar.shared.message import Message

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project

HELP = {
    "profile": "the platform, a name from profiles/ (default: the one this run was launched with, "
    "or first audited, smoked or pushed; else invoke.yaml's, else the first of the job's "
    "candidates that fits, else local)",
    "job": "the job file (default: job.yaml)",
    "box": "only this box; may be given again",
    "queue": "only this queue; may be given again",
    "cell": "only this cell; may be given again",
    "json": "one JSON document on stdout",
    "lang": "en or zh (default: your locale's language)",
}


class Verb(Task):  # type: ignore[type-arg]
    """An Invoke task that knows `-f` for --follow, which is Invoke's own for something else."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        for argument in arguments:
            if argument.name == "follow":
                argument.names += ("f",)
        return arguments


def verb(
    help: dict[str, str] | None = None, iterable: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Any]:
    """An Invoke task whose return value is its exit code, and whose errors are sentences."""

    def decorate(function: Callable[..., int]) -> Any:
        @functools.wraps(function)
        def body(*arguments: Any, **options: Any) -> None:
            # Invoke switches it off, and each command in a checkout would compile all modules anew.
            sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
            from boxcar.laptop.common import show

            show.begin()
            code, messages = _ended(function, arguments, options)
            for message in messages:
                show.say(message)
            if messages and options.get("json"):
                show.json_error(function.__name__.replace("_", "-"), code, messages)
            if code:
                raise Exit(code=code)

        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        texts = {name: text for name, text in (HELP | (help or {})).items() if name in names}
        return task(klass=Verb, help=texts, iterable=iterable, auto_shortflags=False)(body)

    return decorate


def _ended(
    function: Callable[..., int], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[int, tuple[Message, ...]]:
    """A verb's exit code, and where it raised an error, what that says."""
    try:
        return function(*arguments, **options), ()
    except BoxcarError as error:
        return 2 if error.exit_code == 2 else 1, error.messages
    except BrokenPipeError:
        # Who read our words has read enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0, ()
    except OSError as error:
        return 1, (message_of(error),)
    except KeyboardInterrupt:
        again = Message("\ninterrupted; the same command again continues from here")
        return exit_codes.INTERRUPTED, (again,)


@verb()
def demo(c: Context) -> int:
    """The whole life of a run on this machine, on real data, in two minutes."""
    from boxcar.laptop.verbs.demo import demo

    return demo()


@verb(
    help={
        "script": "the train script (default: the one that looks most like it, or you are asked)",
        "yes": "take all guesses and ask nothing",
        "run_help": "run the script's --help as well, for flags that its source does not say",
    }
)
def init(c: Context, script: str = "", yes: bool = False, run_help: bool = False) -> int:
    """Read a folder of training code, and write a job.yaml, a first queue and a .boxcarignore."""
    from boxcar.laptop.verbs.init import init

    return init(Path.cwd(), named=script, yes=yes, with_help=run_help)


@verb()
def plan(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    """Resolve job, profile and queues, and show what would run. Spends nothing."""
    from boxcar.laptop.verbs.plan import plan

    return plan(_project(c, profile, job), as_json=json)


@verb(help={"mixed": "new lines may run other code than the cells before them"})
def push(
    c: Context, profile: str = "", job: str = "", mixed: bool = False, json: bool = False
) -> int:
    """Build the release, put it on the durable tier, append new queue lines."""
    from boxcar.laptop.verbs.push import push

    return push(_project(c, profile, job), is_mixed=mixed, as_json=json)


@verb(
    iterable=("cell",),
    help={"all": "try each cell also where there are more than 12, not one of each kind"},
)
def smoke(
    c: Context,
    profile: str = "",
    job: str = "",
    cell: Any = None,
    all: bool = False,
    json: bool = False,
) -> int:
    """Every cell for two batches on this machine's CPU, before money is spent."""
    from boxcar.laptop.verbs.smoke import smoke

    return smoke(_project(c, profile, job), cells=cell or None, is_all=all, as_json=json)


@verb(
    help={
        "cell": "rehearse this cell (default: the first of each task and number of ranks); may be "
        "given again",
        "kills": "how often the second run is killed (default: 1)",
        "seed": "picks the moments of the kills; give the same one to repeat a rehearsal",
        "tolerance": "relative difference that still counts as equal (default: 1e-6)",
    },
    iterable=("cell",),
)
def rehearse(
    c: Context,
    profile: str = "",
    job: str = "",
    cell: Any = None,
    kills: str = "1",
    seed: str = "",
    tolerance: str = "",
    json: bool = False,
) -> int:
    """Run a cell on the CPU, run it again with a SIGKILL, and compare the two results."""
    from boxcar.laptop.verbs.rehearse import rehearse

    return rehearse(
        _project(c, profile, job),
        cells=cell or None,
        kills=_number(kills, "--kills", int),
        seed=_number(seed, "--seed", int) if seed else None,
        tolerance=_number(tolerance, "--tolerance", float) if tolerance else None,
        as_json=json,
    )


@verb(
    help={
        "speed": "BOX=FACTOR, 2 for a box that is twice as fast; may be given again",
        "minutes": "TASK=NUMBER or CELL=NUMBER, how long such a cell takes; may be given again",
        "write": "rewrite the local queue files; without it the new order is only shown",
    },
    iterable=("speed", "minutes"),
)
def split(
    c: Context,
    profile: str = "",
    job: str = "",
    speed: Any = None,
    minutes: Any = None,
    write: bool = False,
    json: bool = False,
) -> int:
    """Spread the cells over the queue files so that all queues end at about the same time."""
    from boxcar.laptop.verbs.split import finish, split

    finish(Path(job or c.config.boxcar.job).parent.resolve())
    return split(
        _project(c, profile, job),
        speeds=speed or [],
        minutes=minutes or [],
        write=write,
        as_json=json,
    )


@verb(
    help={
        "cfg": "the config of all cells, as in a queue line; - for none",
        "task": "their task, as in a queue line; may be left out where the command takes none",
        "epochs": "their epochs (default: those of the job)",
        "set": "KEY=VALUE,VALUE or KEY=0..2, also --KEY=VALUE,VALUE; `boxcar grid` takes them "
        "without --set too; may be given again",
        "queue": "a queue for the lines; may be given again (default: all)",
        "configs": "write one config file for each cell into this folder below the code folder, "
        "for scripts that take no overrides",
        "write": "write the lines and files; without it they are only shown",
    },
    iterable=("set", "queue"),
)
def grid(
    c: Context,
    cfg: str,
    profile: str = "",
    job: str = "",
    task: str = "",
    epochs: str = "",
    set: Any = None,
    queue: Any = None,
    configs: str = "",
    write: bool = False,
    json: bool = False,
) -> int:
    """One line for each combination of values, spread over the queue files; none twice."""
    from boxcar.laptop.grids.asked_grid import Asked
    from boxcar.laptop.verbs.grid import grid
    from boxcar.laptop.verbs.split import finish

    number = _number(epochs, "--epochs", int) if epochs else None
    asked = Asked(cfg, task, number, tuple(set or ()), tuple(queue or ()), configs)
    finish(Path(job or c.config.boxcar.job).parent.resolve())
    project = _project(c, profile, job, despite_faults=True)  # queues may be empty yet
    return grid(project, asked, is_to_write=write, as_json=json)


@verb(iterable=("box",))
def audit(c: Context, profile: str = "", job: str = "", box: Any = None, json: bool = False) -> int:
    """What each box is and has, and whether the run may start there."""
    from boxcar.laptop.verbs.audit import audit

    return audit(_project(c, profile, job), boxes=box or None, as_json=json)


@verb(
    help={
        "start_index": "skip the first N cells of each queue (default: as it was launched before)",
        "no_smoke": "on a platform that bills, launch cells that have not passed smoke; it "
        "is recorded",
    },
    iterable=("box",),
)
def launch(
    c: Context,
    profile: str = "",
    job: str = "",
    box: Any = None,
    start_index: str = "",
    no_smoke: bool = False,
    json: bool = False,
) -> int:
    """Audit, push, start the agents, and check that the first cells run. Safe to repeat."""
    from boxcar.laptop.verbs.launch import launch

    first = _number(start_index, "--start-index", int) if start_index else None
    return launch(
        _project(c, profile, job),
        start_index=first,
        boxes=box,
        is_smoked=not no_smoke,
        as_json=json,
    )


@verb()
def status(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    """The state of the run, once."""
    from boxcar.laptop.verbs.status import status

    return status(_launched(c, profile, job), as_json=json)


@verb(
    help={
        "every": "time between two looks, such as 10s, 30m or 2h (default: 30s over ssh)",
        "once_if_changed": "look once, and print only what is new since the last such look "
        "(for cron)",
    }
)
def watch(
    c: Context,
    profile: str = "",
    job: str = "",
    every: str = "",
    once_if_changed: bool = False,
    json: bool = False,
) -> int:
    """The state of the run, live, until the queues have ended."""
    from boxcar.laptop.verbs.watch import watch

    interval_s = _seconds(every, "--every") if every else None
    return watch(
        _launched(c, profile, job, is_quiet=once_if_changed),  # cron mails every word
        interval_s=interval_s,
        is_once=once_if_changed,
        as_json=json,
    )


@verb(
    help={
        "cell": "the cell; `logs NAME` works too",
        "follow": "keep printing until the cell ends",
        "lines": "the last N lines (default: 50)",
        "json": "one JSON document a line on stdout",
    }
)
def logs(
    c: Context,
    cell: str,
    profile: str = "",
    job: str = "",
    follow: bool = False,
    lines: str = "50",
    json: bool = False,
) -> int:
    """One cell's log."""
    from boxcar.laptop.verbs.logs import logs

    most = _number(lines, "--lines", int)
    return logs(_launched(c, profile, job), cell=cell, follow=follow, lines=most, as_json=json)


@verb()
def runs(c: Context, json: bool = False) -> int:
    """All runs that you launched from this machine, as they were last seen; asks no box."""
    from boxcar.laptop.verbs.runs import runs

    return runs(as_json=json)


@verb(iterable=("cell",))
def pull(c: Context, profile: str = "", job: str = "", cell: Any = None, json: bool = False) -> int:
    """Copy published results here, each checked against its manifest. Safe to repeat."""
    from boxcar.laptop.verbs.pull import pull

    return pull(_launched(c, profile, job), cells=cell or None, as_json=json)


@verb(
    help={"allow_pickle": "load this file even though it may run code; may be given again"},
    iterable=("allow_pickle",),
)
def verify(
    c: Context, profile: str = "", job: str = "", allow_pickle: Any = None, json: bool = False
) -> int:
    """Compare the roster with the results, load every artifact, write the receipt."""
    from boxcar.laptop.verbs.verify import verify

    return verify(_launched(c, profile, job), allow_pickle=allow_pickle or [], as_json=json)


@verb(
    help={
        "to": "html or png (a file beside the results), md, latex, csv or json (on stdout)",
        "metric": "show this number; may be given again (default: those of the job's report or "
        "metrics)",
        "baseline": "the cell or group to compare with (default: the job's, else the one that is "
        "called so, else the first of its task)",
        "run": "a run whose results lie here; may be given again (default: the job's own)",
        "incomplete": "LaTeX gets incomplete groups too, in brackets",
        "check": "a file that report wrote: whether it still agrees with the receipt",
    },
    iterable=("metric", "run"),
)
def report(
    c: Context,
    profile: str = "",
    job: str = "",
    to: str = "",
    metric: Any = None,
    baseline: str = "",
    run: Any = None,
    incomplete: bool = False,
    check: str = "",
    json: bool = False,
) -> int:
    """The ablation as a table and a page: groups, differences, curves; only what is proven."""
    from boxcar.laptop.report.run_report import Asked
    from boxcar.laptop.verbs.report import asked_of, check_file, report

    project = _launched(c, profile, job)
    if check:
        return check_file(project, Path(check))
    given = Asked((), tuple(metric or ()), baseline, is_incomplete_shown=incomplete)
    return report(project, asked_of(project, run or (), given), to=to, as_json=json)


@verb(
    help={
        "abandon": "give up the cell of this name; may be given again; needs --because",
        "gone": "this box, or the durable tier by its path, is gone for good; may be given again; "
        "needs --because",
        "because": "the reason, which is recorded",
        "approve": "the digest of the receipt, instead of typing the run's name",
        "rotated": "this credential was replaced after its box was given up; may be given again",
    },
    iterable=("abandon", "gone", "rotated"),
)
def down(
    c: Context,
    profile: str = "",
    job: str = "",
    abandon: Any = None,
    gone: Any = None,
    because: str = "",
    approve: str = "",
    rotated: Any = None,
    json: bool = False,
) -> int:
    """The teardown gate: it opens when every result is here and loads, and you say yes."""
    from boxcar.laptop.verbs.down import down

    return down(
        _launched(c, profile, job),
        abandon=abandon or [],
        gone=gone or [],
        because=because or None,
        approve=approve or None,
        rotated=rotated or [],
        as_json=json,
    )


@verb(iterable=("queue", "box"))
def drain(c: Context, profile: str = "", job: str = "", queue: Any = None, box: Any = None) -> int:
    """Let each queue finish its running cell, then end it."""
    from boxcar.laptop.verbs.drain import drain

    return drain(_launched(c, profile, job), queues=queue or None, boxes=box or None)


@verb(iterable=("queue", "box"))
def stop(c: Context, profile: str = "", job: str = "", queue: Any = None, box: Any = None) -> int:
    """Let each queue save a checkpoint, and end it now."""
    from boxcar.laptop.verbs.stop import stop

    return stop(_launched(c, profile, job), queues=queue or None, boxes=box or None)


@verb(
    help={
        "cell": "the cell to be moved",
        "queue": "the queue that gets it",
        "gone": "its box will never answer again; needs --because",
        "because": "why, for the record",
    },
    iterable=("gone",),
)
def move(
    c: Context,
    cell: str,
    queue: str,
    profile: str = "",
    job: str = "",
    gone: Any = None,
    because: str = "",
    json: bool = False,
) -> int:
    """Give one cell of a box that is dead or stopped to another queue."""
    from boxcar.laptop.verbs.move import move

    return move(
        _launched(c, profile, job),
        cell=cell,
        queue=queue,
        gone=gone or (),
        because=because or None,
        as_json=json,
    )


@verb(help={"put_back": "put back what is proven; else it is only shown"})
def repair(
    c: Context, profile: str = "", job: str = "", put_back: bool = False, json: bool = False
) -> int:
    """Show which of the run's files are damaged, and put back what they were."""
    from boxcar.laptop.verbs.repair import repair

    return repair(_launched(c, profile, job), is_to_write=put_back, as_json=json)


@verb(
    iterable=("through",),
    help={
        "port": "the port to listen on (default: 8765); 0 takes a free one",
        "through": "a rented box, by its ssh alias, whose own 127.0.0.1 is to lead here; may be "
        "given again",
    },
)
def listen(c: Context, port: str = "8765", through: Any = None, json: bool = False) -> int:
    """A small webhook receiver: checks signatures and prints what arrives. Ctrl-C ends it."""
    from boxcar.laptop.verbs.listen import listen

    number = _number(port, "--port", int)
    secret = os.environ.get("BOXCAR_WEBHOOK_SECRET", "")
    return listen(number, secret, as_json=json, through=through or ())


@verb(help={"cell": "explain the state of this cell; without it, the platform and its clocks"})
def explain(
    c: Context, profile: str = "", job: str = "", cell: str = "", lang: str = "", json: bool = False
) -> int:
    """A platform's conveniences and danger clocks, or why a cell is in its state."""
    from boxcar.laptop.profiles.profile import load_profile
    from boxcar.laptop.verbs import explain

    if cell:
        return explain.explain(_launched(c, profile, job), cell=cell, as_json=json)
    # A platform can be read about before there is a job.
    name = profile or c.config.boxcar.profile or "local"
    root = Path(job or c.config.boxcar.job).parent.resolve()
    return explain.explain_platform(load_profile(name, root), language=lang, as_json=json)


@verb()
def check_profiles(c: Context, json: bool = False) -> int:
    """List profiles that cannot work, and facts older than six months."""
    from boxcar.laptop.verbs.check_profiles import check_profiles

    return check_profiles(Path.cwd(), as_json=json)


def _number(text: str, flag: str, kind: Callable[[str], Any]) -> Any:
    """Taken as text, because Invoke itself answers anything else with a traceback."""
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1_000_000:
        raise InputError(f"{flag}: expected a number from 0, found {text!r}")
    return number


def _seconds(text: str, flag: str) -> float:
    """`90`, `90s`, `30m` or `2h` as seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1] in units else (text, 1.0)
    return float(_number(number, flag, float)) * unit


def _launched(c: Context, profile: str, job: str, *, is_quiet: bool = False) -> Project:
    """For verbs that run nothing new: what is wrong with the local files is said and stops none."""
    from boxcar.laptop.common import show

    project = _project(c, profile, job, despite_faults=True, is_quiet=is_quiet)
    if problems := (*project.doubts, *project.faults):
        also = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        show.say(f"local files: {problems[0].text}{also}; fix it before the next push or launch")
    return project


def _project(
    c: Context,
    profile: str,
    job: str,
    *,
    despite_faults: bool = False,
    is_quiet: bool = False,
) -> Project:
    """The project; which profile it is, and why, is the first line that a verb says."""
    from boxcar.laptop.common import show
    from boxcar.laptop.project.project import open_project
    from boxcar.laptop.sites.open_site import SITES

    show.remember_flags(profile, job)
    settings = c.config.boxcar
    project = open_project(
        Path(job or settings.job),
        profile,
        default=settings.profile,
        kinds=SITES,
        despite_faults=despite_faults,
    )
    if not is_quiet:
        show.say(project.why)
    return project


namespace = Collection(
    demo,
    init,
    plan,
    split,
    grid,
    smoke,
    rehearse,
    audit,
    push,
    launch,
    status,
    watch,
    runs,
    logs,
    pull,
    verify,
    report,
    down,
    drain,
    stop,
    move,
    repair,
    listen,
    explain,
    check_profiles,
)
namespace.configure({"boxcar": {"profile": "", "job": "job.yaml"}})

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

from boxcar.door import garbage, streams
from boxcar.door.flags import LETTERS, text_of
from boxcar.door.help import verb_text
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import BoxcarError, Command, InputError, Message, message_of
from boxcar.shared.process import exit_codes, told_to_end

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project


class Verb(Task):  # type: ignore[type-arg]
    """An Invoke task that knows `-f` and `-p`, which are Invoke's own for something else."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        for argument in arguments:
            if argument.name in LETTERS:
                argument.names += (LETTERS[argument.name],)
        return arguments


def verb(iterable: tuple[str, ...] = ()) -> Callable[[Callable[..., int]], Any]:
    """An Invoke task whose return value is its exit code, and whose errors are sentences.

    What it and its flags do is in the catalogue, in each language; Invoke's own lists are English.
    """

    def decorate(function: Callable[..., int]) -> Any:
        name = function.__name__.replace("_", "-")

        @functools.wraps(function)
        def body(*arguments: Any, **options: Any) -> None:
            # Invoke switches it off, and each command in a checkout would compile all modules anew.
            sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
            from boxcar.laptop.common import show

            garbage.let_it_lie()
            streams.replace_unwritable()
            show.begin()
            code, messages = _ended(function, arguments, options)
            for message in messages:
                show.say(message)
            if messages and options.get("json"):
                show.json_error(name, code, messages)
            if code:
                raise Exit(code=code)

        body.__doc__ = str(verb_text(name))
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        # Plain text: Invoke copies what it is given, and a sentence is made of its id.
        again = {flag: f"; {Sentence('help.again')}" for flag in iterable}
        texts = {flag: f"{text_of(name, flag)}{again.get(flag, '')}" for flag in names}
        return task(klass=Verb, help=texts, iterable=iterable, auto_shortflags=False)(body)

    return decorate


def _ended(
    function: Callable[..., int], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[int, tuple[Message, ...]]:
    """A verb's exit code, and where it raised an error, what that says."""
    try:
        _refuse_a_folder_that_is_gone()
        with told_to_end.as_exit():
            return function(*arguments, **options), ()
    except BoxcarError as error:
        return 2 if error.exit_code == 2 else 1, error.messages
    except BrokenPipeError:
        streams.say_no_more()
        return 0, ()
    except OSError as error:
        return 1, (message_of(error),)
    except UnicodeEncodeError as error:
        # Python opens files by such names only where the locale has UTF-8.
        return 2, (Message(Sentence("mistakes.no_such_sign", text=repr(error.object))),)
    except KeyboardInterrupt:
        again = Message(Sentence("mistakes.interrupted"))
        return exit_codes.INTERRUPTED, (again,)


def _refuse_a_folder_that_is_gone() -> None:
    """A shell stays in it where a project was removed, or cloned anew under the same name."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError(Sentence("mistakes.folder_gone")) from None


@verb()
def demo(c: Context) -> int:
    from boxcar.laptop.verbs.demo import demo

    return demo()


@verb()
def init(c: Context, script: str = "", yes: bool = False, run_help: bool = False) -> int:
    from boxcar.laptop.verbs.init import init

    return init(Path.cwd(), named=script, yes=yes, with_help=run_help)


@verb()
def plan(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    from boxcar.laptop.verbs.plan import plan

    return plan(_project(c, profile, job), as_json=json)


@verb()
def push(
    c: Context, profile: str = "", job: str = "", mixed: bool = False, json: bool = False
) -> int:
    from boxcar.laptop.verbs.push import push

    return push(_project(c, profile, job), is_mixed=mixed, as_json=json)


@verb(iterable=("cell",))
def smoke(
    c: Context,
    profile: str = "",
    job: str = "",
    cell: Any = None,
    all: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.smoke import smoke

    return smoke(_project(c, profile, job), cells=cell or None, is_all=all, as_json=json)


@verb(iterable=("cell",))
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
    from boxcar.laptop.verbs.rehearse import rehearse

    return rehearse(
        _project(c, profile, job),
        cells=cell or None,
        kills=_number(kills, "--kills", int),
        seed=_number(seed, "--seed", int) if seed else None,
        tolerance=_number(tolerance, "--tolerance", float) if tolerance else None,
        as_json=json,
    )


@verb(iterable=("speed", "minutes"))
def split(
    c: Context,
    profile: str = "",
    job: str = "",
    speed: Any = None,
    minutes: Any = None,
    write: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.split import finish, split

    finish(Path(job or c.config.boxcar.job).parent.resolve())
    return split(
        _project(c, profile, job),
        speeds=speed or [],
        minutes=minutes or [],
        write=write,
        as_json=json,
    )


@verb(iterable=("set", "queue"))
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
    from boxcar.laptop.project.grids.asked_grid import Asked
    from boxcar.laptop.verbs.grid import grid
    from boxcar.laptop.verbs.split import finish

    number = _number(epochs, "--epochs", int) if epochs else None
    asked = Asked(cfg, task, number, tuple(set or ()), tuple(queue or ()), configs)
    finish(Path(job or c.config.boxcar.job).parent.resolve())
    project = _project(c, profile, job, despite_faults=True)  # queues may be empty yet
    return grid(project, asked, is_to_write=write, as_json=json)


@verb(iterable=("box",))
def audit(c: Context, profile: str = "", job: str = "", box: Any = None, json: bool = False) -> int:
    from boxcar.laptop.verbs.audit import audit

    return audit(_project(c, profile, job), boxes=box or None, as_json=json)


@verb(iterable=("box",))
def launch(
    c: Context,
    profile: str = "",
    job: str = "",
    box: Any = None,
    start_index: str = "",
    no_smoke: bool = False,
    beside: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.launch import launch

    first = _number(start_index, "--start-index", int) if start_index else None
    return launch(
        _project(c, profile, job),
        start_index=first,
        boxes=box,
        is_smoked=not no_smoke,
        is_beside=beside,
        as_json=json,
    )


@verb()
def status(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    from boxcar.laptop.verbs.status import status

    return status(_launched(c, profile, job), as_json=json)


@verb()
def watch(
    c: Context,
    profile: str = "",
    job: str = "",
    every: str = "",
    once_if_changed: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.watch import watch

    interval_s = _seconds(every, "--every") if every else None
    return watch(
        _launched(c, profile, job, is_quiet=once_if_changed),  # cron mails every word
        interval_s=interval_s,
        is_once=once_if_changed,
        as_json=json,
    )


@verb()
def board(
    c: Context,
    profile: str = "",
    job: str = "",
    serve: bool = False,
    port: str = "",
    to: str = "",
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.board import board

    project = _launched(c, profile, job)
    number = _number(port, "--port", int) if port else None
    return board(project, is_served=serve, port=number, to=to, as_json=json)


@verb()
def tb(c: Context, profile: str = "", job: str = "") -> int:
    from boxcar.laptop.verbs.tb import tb

    return tb(_launched(c, profile, job))


@verb()
def logs(
    c: Context,
    cell: str,
    profile: str = "",
    job: str = "",
    follow: bool = False,
    lines: str = "50",
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.logs import logs

    most = _number(lines, "--lines", int)
    return logs(_launched(c, profile, job), cell=cell, follow=follow, lines=most, as_json=json)


@verb()
def runs(c: Context, json: bool = False) -> int:
    from boxcar.laptop.verbs.runs import runs

    return runs(as_json=json)


@verb(iterable=("cell",))
def pull(c: Context, profile: str = "", job: str = "", cell: Any = None, json: bool = False) -> int:
    from boxcar.laptop.verbs.pull import pull

    return pull(_launched(c, profile, job), cells=cell or None, as_json=json)


@verb(iterable=("allow_pickle",))
def verify(
    c: Context, profile: str = "", job: str = "", allow_pickle: Any = None, json: bool = False
) -> int:
    from boxcar.laptop.verbs.verify import verify

    return verify(_launched(c, profile, job), allow_pickle=allow_pickle or [], as_json=json)


@verb(iterable=("metric", "run"))
def report(
    c: Context,
    profile: str = "",
    job: str = "",
    to: str = "",
    metric: Any = None,
    baseline: str = "",
    run: Any = None,
    incomplete: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.report import asked_of, report
    from boxcar.laptop.view.report.run_report import Asked

    project = _launched(c, profile, job)
    given = Asked((), tuple(metric or ()), baseline, is_incomplete_shown=incomplete)
    return report(project, asked_of(project, run or (), given), to=to, as_json=json)


@verb(iterable=("run",))
def export(
    c: Context,
    profile: str = "",
    job: str = "",
    to: str = "",
    out: str = "",
    run: Any = None,
    incomplete: bool = False,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.export import export
    from boxcar.laptop.verbs.report import asked_of
    from boxcar.laptop.view.report.run_report import Asked

    project = _launched(c, profile, job)
    asked = asked_of(project, run or (), Asked((), is_incomplete_shown=incomplete))
    return export(project, asked, to=to, out=out, as_json=json)


@verb(iterable=("abandon", "gone", "because", "rotated"))
def down(
    c: Context,
    profile: str = "",
    job: str = "",
    abandon: Any = None,
    gone: Any = None,
    because: Any = None,
    approve: str = "",
    rotated: Any = None,
    json: bool = False,
) -> int:
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
    from boxcar.laptop.verbs.drain import drain

    return drain(_launched(c, profile, job), queues=queue or None, boxes=box or None)


@verb(iterable=("queue", "box"))
def stop(c: Context, profile: str = "", job: str = "", queue: Any = None, box: Any = None) -> int:
    from boxcar.laptop.verbs.stop import stop

    return stop(_launched(c, profile, job), queues=queue or None, boxes=box or None)


@verb(iterable=("gone",))
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
    from boxcar.laptop.verbs.move import move

    return move(
        _launched(c, profile, job),
        cell=cell,
        queue=queue,
        gone=gone or (),
        because=because or None,
        as_json=json,
    )


@verb()
def repair(
    c: Context, profile: str = "", job: str = "", put_back: bool = False, json: bool = False
) -> int:
    from boxcar.laptop.verbs.repair import repair

    return repair(_launched(c, profile, job), is_to_write=put_back, as_json=json)


@verb(iterable=("only",))
def notify(
    c: Context,
    profile: str = "",
    job: str = "",
    test: bool = False,
    from_: str = "",
    only: Any = None,
    json: bool = False,
) -> int:
    from boxcar.laptop.verbs.notify import notify

    project = _project(c, profile, job, despite_faults=True)
    return notify(project, is_test=test, box=from_, only=only or (), as_json=json)


@verb(iterable=("through",))
def listen(c: Context, port: str = "8765", through: Any = None) -> int:
    from boxcar.laptop.verbs.listen import listen

    number = _number(port, "--port", int)
    if number > 65535:
        raise InputError(Sentence("mistakes.no_port", found=number))
    secret = os.environ.get("BOXCAR_WEBHOOK_SECRET", "")
    return listen(number, secret, through=through or ())


@verb()
def explain(
    c: Context, profile: str = "", job: str = "", cell: str = "", lang: str = "", json: bool = False
) -> int:
    from boxcar.laptop.common import show
    from boxcar.laptop.project.profiles.profile import load_profile
    from boxcar.laptop.verbs import explain

    if cell:
        show.speak(lang)
        return explain.explain(_launched(c, profile, job), cell=cell, as_json=json)
    # A platform can be read about before there is a job.
    name = profile or c.config.boxcar.profile or "local"
    root = Path(job or c.config.boxcar.job).parent.resolve()
    return explain.explain_platform(load_profile(name, root), language=lang, as_json=json)


@verb()
def triage(
    c: Context, log: str, rc: str = "", add: bool = False, job: str = "", json: bool = False
) -> int:
    from boxcar.laptop.verbs.triage import triage

    root = Path(job or c.config.boxcar.job).parent.resolve()
    return triage(log, rc=_exit_code(rc), add=add, as_json=json, root=root)


@verb()
def check_profiles(c: Context, json: bool = False) -> int:
    from boxcar.laptop.verbs.check_profiles import check_profiles

    return check_profiles(Path.cwd(), as_json=json)


def _number(text: str, flag: str, kind: Callable[[str], Any]) -> Any:
    """Taken as text, because Invoke itself answers anything else with a traceback."""
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1_000_000:
        raise InputError(Sentence("mistakes.no_number", flag=flag, text=text))
    return number


def _exit_code(text: str) -> int | None:
    """`137` or `-9`; None for none."""
    if not text:
        return None
    return -_number(text[1:], "--rc", int) if text[0] == "-" else int(_number(text, "--rc", int))


def _seconds(text: str, flag: str) -> float:
    """`90`, `90s`, `30m` or `2h` as seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1] in units else (text, 1.0)
    try:
        return float(_number(number, flag, float)) * unit
    except InputError as error:
        raise InputError(Sentence("mistakes.no_time", flag=flag, text=text)) from error


def _launched(c: Context, profile: str, job: str, *, is_quiet: bool = False) -> Project:
    """For verbs that run nothing new: what is wrong with the local files is said and stops none."""
    from boxcar.laptop.common import show

    project = _project(c, profile, job, despite_faults=True, is_quiet=is_quiet)
    if problems := (*project.doubts, *project.faults):
        which = "local_files_more" if len(problems) > 1 else "local_files"
        about = {"problem": problems[0].text, "n": len(problems) - 1}
        show.say(Sentence(f"mistakes.{which}", **about))
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
    from boxcar.laptop.places.open_site import SITES
    from boxcar.laptop.project.project import open_project

    show.remember_flags(profile, job)
    settings = c.config.boxcar
    try:
        project = open_project(
            Path(job or settings.job),
            profile,
            default=settings.profile,
            kinds=SITES,
            despite_faults=despite_faults,
        )
    except InputError as error:
        if any(message.command for message in error.messages):
            raise
        fixed = Message(Sentence("mistakes.fix"), Command("plan"))
        raise InputError([*error.messages, fixed]) from error
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
    board,
    tb,
    runs,
    logs,
    pull,
    verify,
    report,
    export,
    down,
    drain,
    stop,
    move,
    repair,
    notify,
    listen,
    explain,
    triage,
    check_profiles,
)
namespace.configure({"boxcar": {"profile": "", "job": "job.yaml"}})

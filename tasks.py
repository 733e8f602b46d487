"""The door: `invoke --list` is the map, one task for each verb.

Each task calls one function of boxcar.laptop, whose file has the verb's name. Settings may also
stand in invoke.yaml (`boxcar: {profile: ..., job: ...}`) or the environment, by Invoke's own rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke import Collection, Context, Exit, task

from boxcar.formats.errors import BoxcarError, InputError

if TYPE_CHECKING:
    from boxcar.laptop.project import Project

HELP = {
    "profile": "the platform, a name from profiles/ (default: local)",
    "job": "the job file (default: job.yaml)",
    "box": "only this box; may be given again",
    "queue": "only this queue; may be given again",
    "cell": "only this cell; may be given again",
    "json": "one JSON document on stdout",
}


def verb(
    help: dict[str, str] | None = None, iterable: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Any]:
    """An Invoke task whose return value is its exit code, and whose errors are sentences."""

    def decorate(function: Callable[..., int]) -> Any:
        @functools.wraps(function)
        def body(*arguments: Any, **options: Any) -> None:
            from boxcar.laptop import show

            try:
                code = function(*arguments, **options)
            except BoxcarError as error:
                show.say(str(error))
                code = 2 if error.exit_code == 2 else 1
            except OSError as error:
                show.say(f"{error.filename}: {error.strerror}")
                code = 1
            except KeyboardInterrupt:
                code = 130
            if code:
                raise Exit(code=code)

        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        texts = {name: text for name, text in (HELP | (help or {})).items() if name in names}
        return task(help=texts, iterable=iterable, auto_shortflags=False)(body)

    return decorate


@verb()
def demo(c: Context) -> int:
    """The whole life of a run on this machine, on real data, in two minutes."""
    from boxcar.laptop.demo import demo

    return demo()


@verb()
def plan(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    """Resolve job, profile and queues, and show what would run. Spends nothing."""
    from boxcar.laptop.plan import plan

    return plan(_project(c, profile, job), as_json=json)


@verb()
def push(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    """Build the release, put it on the durable tier, append new queue lines."""
    from boxcar.laptop.push import push

    return push(_project(c, profile, job), as_json=json)


@verb(
    help={"start_index": "pass over so many cells of each queue"},
    iterable=("box",),
)
def launch(
    c: Context,
    profile: str = "",
    job: str = "",
    box: Any = None,
    start_index: str = "0",
    json: bool = False,
) -> int:
    """Push, start the agent of each queue, and see that its first cell runs. Harmless again."""
    from boxcar.laptop.launch import launch

    first = _number(start_index, "--start-index", int)
    return launch(_project(c, profile, job), start_index=first, boxes=box, as_json=json)


@verb()
def status(c: Context, profile: str = "", job: str = "", json: bool = False) -> int:
    """Where everything stands, once."""
    from boxcar.laptop.status import status

    return status(_project(c, profile, job), as_json=json)


@verb(help={"interval": "seconds between two looks"})
def watch(
    c: Context, profile: str = "", job: str = "", interval: str = "2", json: bool = False
) -> int:
    """Where everything stands, live, until the queues have ended."""
    from boxcar.laptop.watch import watch

    interval_s = _number(interval, "--interval", float)
    return watch(_project(c, profile, job), interval_s=interval_s, as_json=json)


@verb(help={"cell": "the cell", "follow": "go on until the cell ends", "lines": "of the end"})
def logs(
    c: Context,
    cell: str,
    profile: str = "",
    job: str = "",
    follow: bool = False,
    lines: str = "50",
) -> int:
    """One cell's log."""
    from boxcar.laptop.logs import logs

    most = _number(lines, "--lines", int)
    return logs(_project(c, profile, job), cell=cell, follow=follow, lines=most)


@verb(iterable=("cell",))
def pull(c: Context, profile: str = "", job: str = "", cell: Any = None, json: bool = False) -> int:
    """Published results to this machine, each checked against its manifest. Harmless again."""
    from boxcar.laptop.pull import pull

    return pull(_project(c, profile, job), cells=cell or None, as_json=json)


@verb(
    help={"allow_pickle": "load this file although it may run code; may be given again"},
    iterable=("allow_pickle",),
)
def verify(
    c: Context, profile: str = "", job: str = "", allow_pickle: Any = None, json: bool = False
) -> int:
    """Roster against results: load every artifact, write the receipt."""
    from boxcar.laptop.verify import verify

    return verify(_project(c, profile, job), allow_pickle=allow_pickle or [], as_json=json)


@verb(
    help={
        "abandon": "give this cell up, by name; may be given again; needs --because",
        "because": "why; it is recorded",
        "approve": "the receipt's digest, instead of typing the run's name",
    },
    iterable=("abandon",),
)
def down(
    c: Context,
    profile: str = "",
    job: str = "",
    abandon: Any = None,
    because: str = "",
    approve: str = "",
    json: bool = False,
) -> int:
    """The teardown gate: opens when every result is here, loads, and you say yes."""
    from boxcar.laptop.down import down

    return down(
        _project(c, profile, job),
        abandon=abandon or [],
        because=because or None,
        approve=approve or None,
        as_json=json,
    )


@verb(iterable=("queue",))
def drain(c: Context, profile: str = "", job: str = "", queue: Any = None) -> int:
    """Let each queue finish its running cell and then end."""
    from boxcar.laptop.drain import drain

    return drain(_project(c, profile, job), queues=queue or None)


@verb(iterable=("queue",))
def stop(c: Context, profile: str = "", job: str = "", queue: Any = None) -> int:
    """Let each queue checkpoint and end now."""
    from boxcar.laptop.stop import stop

    return stop(_project(c, profile, job), queues=queue or None)


@verb(help={"port": "0 takes a free one"})
def listen(c: Context, port: str = "8765", json: bool = False) -> int:
    """A small webhook receiver: verifies signatures, prints what arrives. Ctrl-C ends it."""
    import os

    from boxcar.laptop.listen import listen

    number = _number(port, "--port", int)
    return listen(number, os.environ.get("BOXCAR_WEBHOOK_SECRET", ""), as_json=json)


@verb(help={"cell": "why this cell is where it is; without it: the platform's habits and clocks"})
def explain(
    c: Context, profile: str = "", job: str = "", cell: str = "", json: bool = False
) -> int:
    """A platform's conveniences and danger clocks, or why a cell is where it is."""
    from boxcar.laptop.explain import explain

    return explain(_project(c, profile, job), cell=cell or None, as_json=json)


def _number(text: str, flag: str, kind: Callable[[str], Any]) -> Any:
    """Taken as text, because Invoke itself answers what is no number with a traceback."""
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1_000_000:
        raise InputError(f"{flag}: expected a number from 0, found {text!r}")
    return number


def _project(c: Context, profile: str, job: str) -> Project:
    from boxcar.laptop.project import open_project

    settings = c.config.boxcar
    return open_project(Path(job or settings.job), profile or settings.profile)


namespace = Collection(
    demo, plan, push, launch, status, watch, logs, pull, verify, down, drain, stop, listen, explain
)
namespace.configure({"boxcar": {"profile": "local", "job": "job.yaml"}})

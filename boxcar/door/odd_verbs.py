"""Verbs that want more than a project and their flags. Each has the name of its verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from boxcar.door.run_verb import Where, launched_project, typed_project
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import queue_line


def split(where: Where, **flags: Any) -> int:
    from boxcar.laptop.verbs.split import finish, split

    finish(where.folder)
    return split(typed_project(where), **flags)


def grid(where: Where, *, is_to_write: bool = False, as_json: bool = False, **asked: Any) -> int:
    from boxcar.laptop.project.grids.grid_lines import Asked
    from boxcar.laptop.verbs.grid import grid
    from boxcar.laptop.verbs.split import finish

    finish(where.folder)
    project = typed_project(where, despite_faults=True)  # queues may be empty yet
    return grid(project, Asked(**asked), is_to_write=is_to_write, as_json=as_json)


def watch(where: Where, *, is_once: bool = False, **flags: Any) -> int:
    from boxcar.laptop.verbs.watch import watch

    project = launched_project(where, is_quiet=is_once)  # cron mails every word
    return watch(project, is_once=is_once, **flags)


def explain(
    where: Where,
    *,
    about: str = "",
    cell: str = "",
    box: str = "",
    lang: str = "",
    as_json: bool = False,
) -> int:
    from boxcar.laptop.common import show
    from boxcar.laptop.project.profiles import profile
    from boxcar.laptop.verbs import explain, explain_box, explain_word

    show.speak(lang)
    if box:
        return explain_box.tell_of_box(launched_project(where), box, as_json=as_json)
    if cell or _has_cell(where, about):
        return explain.explain(launched_project(where), cell=cell or about, as_json=as_json)
    profiles = profile.known(where.folder)
    if about and about not in profiles:
        return explain_word.tell_about(about, profiles, language=lang, as_json=as_json)
    # A platform can be read about before there is a job.
    name = about or where.profile or where.settings.profile or "local"
    found = profile.load_profile(name, where.folder)
    return explain.explain_platform(found, language=lang, as_json=as_json)


def _has_cell(where: Where, name: str) -> bool:
    """Whether this folder's run has it, be its line commented out; where that cannot be told, it is
    something else.
    """
    if not name:
        return False
    try:
        project = typed_project(where, despite_faults=True, is_quiet=True)
        lines = [queue_line.what_counts(path) for path in project.queue_files.values()]
    except (BoxcarError, OSError):
        return False
    out = {line.name for some in lines for line in queue_line.commented_out(some)}
    return name in out | {cell.name for cell in project.plan.cells}


def report(
    where: Where, *, runs: Sequence[str] = (), to: str = "", as_json: bool = False, **asked: Any
) -> int:
    from boxcar.laptop.verbs.report import asked_of, report
    from boxcar.laptop.view.report.run_report import Asked

    project = launched_project(where)
    return report(project, asked_of(project, runs, Asked((), **asked)), to=to, as_json=as_json)


def export(
    where: Where, *, runs: Sequence[str] = (), to: str = "", is_incomplete_shown: bool = False,
    **flags: Any,
) -> int:  # fmt: skip
    from boxcar.laptop.verbs.export import export
    from boxcar.laptop.verbs.report import asked_of
    from boxcar.laptop.view.report.run_report import Asked

    project = launched_project(where)
    asked = asked_of(project, runs, Asked((), is_incomplete_shown=is_incomplete_shown))
    return export(project, asked, to=to, **flags)


def skill(where: Where) -> int:
    from boxcar.door.skill import skill_text

    sys.stdout.write(skill_text())
    return 0

"""What does not go with the job's `links`: each is a name below {out} for a folder of the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boxcar.laptop.project.job import Job
from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import IN_OUT, LOG, Plan
from boxcar.shared.sentence import _


def faults(root: Path, job: Job, plan: Plan) -> Iterator[str]:
    for text in _faults(root / job.code, plan):
        yield _("{at}{text}", at=f"{job.at('links')}: ", text=text)


def _faults(code: Path, plan: Plan) -> Iterator[str]:
    if plan.links and plan.workdir != IN_OUT:
        yield _(
            "links lie in {{out}}, and the command starts in the code folder, which has them: "
            "write workdir: out, or leave links out"
        )
    for folder in plan.links.values():
        if not (code / folder).is_dir() and code.is_dir():
            yield _("there is no folder {name!r} in the code folder {code}", name=folder, code=code)
    for key, path in _named(plan):
        name = resume_match.parts(path)[0]
        if name in plan.links:
            yield _(
                "{name!r} is a link to the code, and {key} looks for {path!r} there: what is "
                "written into a cell's result is not a link",
                name=name,
                key=key,
                path=path,
            )


def _named(plan: Plan) -> Iterator[tuple[str, str]]:
    """What the job looks for below {out}, by the key that names it, each once."""
    found = dict[tuple[str, str], None]()
    for held in terms.terms_that_differ(plan, (cell.name for cell in plan.cells)):
        found |= {("artifacts", item.path): None for item in held.artifacts}
        found |= {("resume", held.resume): None} if held.resume else {}
    found |= {("collect", path): None for path in plan.collect}
    found |= {("scratch", path): None for path in plan.scratch}
    found |= {("metrics", one.of): None for one in plan.metrics if one.source != LOG}
    yield from found

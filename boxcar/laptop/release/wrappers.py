"""The wrappers of a run, from Jinja2 templates: every value is shell-quoted unless marked as shell.

Written by the laptop into the release, run on the box by bash 4.2 and newer. A project may put a
template of the same name into its own `templates/`. The profile's hook is an operator's own shell
text and goes in as it is; nothing else does.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxcar.laptop.common import home
from boxcar.laptop.project.profiles.profile import INTERPRETERS
from boxcar.laptop.release import batch_jobs
from boxcar.laptop.release.batch_jobs import BatchJob
from boxcar.shared.errors import InputError
from boxcar.shared.files import attempt_spec
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.release import RUN_ONE, RUN_QUEUE, RUN_SLURM
from boxcar.shared.sentence import _, quotation
from boxcar.shared.slurm import job_comment

if TYPE_CHECKING:
    import jinja2


class ShellText(str):
    """Text that is shell already, and is not quoted. What is made from it is plain text again."""


def render_run_queue(plan: Plan, hook: str, onbox_name: str, templates: Path | None = None) -> str:
    """`run_queue.sh`. `templates` is the project's own folder of templates; it need not be there.

    Raises InputError that names the template and what is wrong with it.
    """
    values = {"plan": plan, "hook": _hook(hook), "onbox": onbox_name, "on_box": on_box}
    values["agent_pythons"] = [on_box(path) for path in INTERPRETERS]
    return _render(f"{RUN_QUEUE}.j2", values, templates)


def render_run_one(plan: Plan, hook: str, templates: Path | None = None) -> str:
    """`run_one.sh`; otherwise as `render_run_queue`."""
    name = f"{RUN_ONE}.j2"
    text = _render(name, {"plan": plan, "hook": _hook(hook), "on_box": on_box}, templates)
    if attempt_spec.NAME not in text:
        raise InputError(
            _(
                "{templates}/{name}: written for another version of Boxcar, with other arguments "
                "for run_one.sh. Start over from Boxcar's own {name}, which takes a {document}",
                templates=templates,
                name=name,
                document=attempt_spec.NAME,
            )
        )
    return text


def render_run_slurm(
    plan: Plan,
    job: BatchJob,
    container: Sequence[str] = (),
    templates: Path | None = None,
) -> str:
    """The batch script of one array; otherwise as `render_run_queue`."""
    signal_s = batch_jobs.signal_s(plan.grace_s, job.options.time_s)
    head = [
        f"--job-name={job_comment.job_name(plan.run)}",
        *job.options.lines(),
        *(() if (job.options.nodes or 1) > 1 else ("--nodes=1", "--ntasks=1")),
        *("--requeue", "--open-mode=append"),
        f"--signal=B:USR1@{signal_s}",
    ]
    values = {
        "plan": plan,
        "queues": job.queues,
        "is_per_cell": job.options.is_per_cell,
        "container": list(container),
        "script": job.script,
        "job_name": job_comment.job_name(plan.run),
        # Plain words, as slurm_options.py has checked them; sbatch has quotes of its own.
        "options": [ShellText(option) for option in head],
    }
    return _render(f"{RUN_SLURM}.j2", values, templates)


def quote(text: str) -> str:
    """`text` as one word of a shell, always in quotes: a bare `esac` would end its case."""
    if "\0" in text:
        raise InputError(_("{text!r} has a NUL, which no shell can pass on", text=text))
    quoted = shlex.quote(text)
    return quoted if quoted.startswith("'") else f"'{quoted}'"


def on_box(path: str) -> ShellText:
    """A path of the plan for the box's shell: what begins with `~/` lies in the box's own home."""
    home, _, rest = path.partition("~/")
    if home or not rest:
        return ShellText(quote(path))
    return ShellText(f'"$HOME"/{quote(rest)}')


def _hook(text: str) -> ShellText:
    return ShellText(text.replace("\r\n", "\n").strip("\n"))


def _render(name: str, values: dict[str, Any], templates: Path | None) -> str:
    # Late, here and below: verbs that make no release must not wait for it.
    import jinja2

    own = [templates] if templates else []
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*own, home.assets_root() / "templates"]),
        undefined=jinja2.StrictUndefined,
        finalize=_shell,
        trim_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )
    try:
        return environment.get_template(name).render(values)
    except jinja2.TemplateError as error:
        raise InputError(
            _(
                "{head}: {text}",
                head=_where(error, name),
                text=quotation(error.message or str(error)),
            )
        ) from error


def _shell(value: object) -> str:
    import jinja2

    if isinstance(value, ShellText):
        return value
    if isinstance(value, (list, tuple)):
        return " ".join(_shell(item) for item in value)
    text = str(value)  # raises where the variable is undefined
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise jinja2.TemplateRuntimeError(
            _("expected a text, found a {name}", name=type(value).__name__)
        )
    return quote(text)


def _where(error: jinja2.TemplateError, name: str) -> str:
    import jinja2

    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.filename or name}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.endswith(".j2")]
    return f"{inside[-1].filename}, line {inside[-1].lineno}" if inside else name

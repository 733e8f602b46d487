"""What is run for a cell: its words, environment, launcher and place. One function says it.

The plan, a smoke, a rehearsal and the agent all ask it, so that they cannot run different things.
Pure: it looks at no disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePath

from boxcar.shared import timestamp
from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import placeholders, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import NO_CONFIG
from boxcar.shared.cell.placeholders import MORE
from boxcar.shared.disk import atomic, digest
from boxcar.shared.files.plan import IN_OUT, Cell, Plan
from boxcar.shared.record import dataclass

PYTHON_PATH = "PYTHONPATH"


@dataclass(frozen=True)
class Places:
    """Where a cell runs. `resume` is what {resume} stands for; `has_checkpoint`: it is there.

    `after`: the published folder of each cell that this one comes after. `data`: the folder of
    links to the job's data.
    """

    out: str
    code: str
    resume: str = ""
    has_checkpoint: bool = False
    after: Mapping[str, str] = field(default_factory=dict)
    data: str = "{data}"


@dataclass(frozen=True)
class SaidCell:
    """What is run. `words` come after the launcher's own; `env` comes over that of the box.

    `nproc` None: as many ranks as GPUs, else 1; on each of `nodes`. `time_s` None: as long as it
    takes. `python_path`: where the code is found beside the working folder. `resume`: where its
    checkpoint is, and `has_checkpoint`: it is there.
    """

    words: tuple[str, ...]
    env: dict[str, str]
    launcher: str
    nproc: int | None
    time_s: int | None
    workdir: str
    resume: str = ""
    python_path: tuple[str, ...] = ()
    nodes: int = 1
    has_checkpoint: bool = False


def say_cell(
    plan: Plan, line: CellLine | Cell, places: Places, added: Sequence[str] = ()
) -> SaidCell:
    """`added` are words for the end, with placeholders: those of a smoke or a rehearsal."""
    found = terms.terms_of_cell(plan, line.name, line.own)
    values = _values(plan, line, places)
    is_in_out = plan.workdir == IN_OUT
    command = _from(places.code, found.command) if is_in_out else found.command
    resume_args = plan.resume_args if places.has_checkpoint else ()
    job_env = {name: placeholders.fill_env(text, values) for name, text in found.env.items()}
    return SaidCell(
        words=(
            *_with_overrides(command, line.overrides, values),
            *placeholders.fill((*resume_args, *added), values),
        ),
        env=_with_paths(plan.env | job_env | dict(line.own.env), places.code),
        launcher=found.launcher,
        nproc=found.nproc,
        time_s=found.time_s,
        workdir=places.out if is_in_out else places.code,
        resume=places.resume,
        python_path=(places.code,) if is_in_out else (),
        nodes=found.nodes,
        has_checkpoint=places.has_checkpoint,
    )


def epochs(plan: Plan, line: CellLine | Cell) -> int:
    """Of the line, else the job's default; a line without either is not run where it needs them."""
    return line.epochs or plan.epochs or 0


def epochs_asked(plan: Plan, line: CellLine | Cell) -> int:
    """0 where nobody asked for any: a job whose commands take none has 1 for who counts them."""
    found = epochs(plan, line)
    is_asked = placeholders.takes(terms.terms_of_cell(plan, line.name).command, "epochs")
    return found if found > 1 or is_asked else 0


def import_paths(plan: Plan, cell: str, code: str) -> tuple[str, ...]:
    """Where its script finds the cell's own modules: beside the script, in the code, and where the
    job's PYTHONPATH leads.
    """
    found = terms.terms_of_cell(plan, cell)
    scripts = [str(PurePath(code, word).parent) for word in found.command if is_script(word)]
    env = _with_paths(plan.env | found.env, code)
    parts = (*scripts[:1], code, *env.get(PYTHON_PATH, "").split(os.pathsep))
    return tuple(dict.fromkeys(filter(None, parts)))


def resume_place(out: str, resume: str | None) -> str:
    """The path of a plain `resume`; '' for a pattern, whose match nobody knows before."""
    if not resume or resume_match.is_pattern(resume):
        return ""
    return "/".join([out, *resume_match.parts(resume)])


def _values(plan: Plan, line: CellLine | Cell, places: Places) -> dict[str, str]:
    is_from_code = plan.workdir == IN_OUT and line.cfg != NO_CONFIG
    # Who only looks at a command has no folders: then the placeholders stay.
    after = {cell: places.after.get(cell, f"{{after:{cell}}}") for cell in line.own.after}
    return {
        "cfg": f"{places.code}/{line.cfg}" if is_from_code else line.cfg,
        "task": line.task,
        "epochs": str(epochs(plan, line)),
        "name": line.name,
        "run": plan.run,
        "out": places.out,
        "resume": places.resume,
        "code": places.code,
        "data": places.data,
        "after": next(iter(after.values()), ""),
        **{f"after:{cell}": folder for cell, folder in after.items()},
    }


def _from(code: str, command: Sequence[str]) -> tuple[str, ...]:
    """The command with its script by its whole path: it is started elsewhere."""
    at = next((at for at, word in enumerate(command) if is_script(word)), None)
    if at is None or command[at].startswith("/"):
        return tuple(command)
    # Twice, because the command is filled after that.
    whole = f"{code}/".replace("{", "{{").replace("}", "}}") + command[at]
    return (*command[:at], whole, *command[at + 1 :])


def is_script(word: str) -> bool:
    """Whether a word of a command is a file that has to be there: not tasks/{task}.py."""
    return word.endswith(".py") and not word.startswith("-") and "{" not in word


def _with_overrides(
    command: Sequence[str], overrides: Sequence[str], values: Mapping[str, str]
) -> Iterator[str]:
    """The overrides are literal: they are put in after the rest was filled."""
    if MORE not in command:
        command = (*command, MORE)
    for word in command:
        if word == MORE:
            yield from overrides
        else:
            yield from placeholders.fill([word], values)


def _with_paths(env: dict[str, str], code: str) -> dict[str, str]:
    """PYTHONPATH's relative parts are of the code folder, wherever the command starts."""
    if PYTHON_PATH not in env:
        return env
    parts = (str(PurePath(code, part)) for part in env[PYTHON_PATH].split(os.pathsep) if part)
    return env | {PYTHON_PATH: os.pathsep.join(parts)}


# The saying of a cell: the digest of what its line asks for, so that a name means one thing.
#
# It stands in the claim, the event `cell.started`, the pointer to the live checkpoint and the
# manifest. What was begun under another saying is neither resumed nor taken for this cell.


def saying_of(plan: Plan, line: CellLine | Cell, config_sha256: str | None) -> str:
    """Config, task, epochs, overrides and own variables; not where or with how many ranks it runs.

    `config_sha256` is of the config's bytes; None where there is no config.
    """
    return digest.of_json(
        {
            "cfg": line.cfg,
            "config_sha256": config_sha256,
            "task": line.task,
            "epochs": epochs(plan, line),
            "overrides": list(line.overrides),
            "env": dict(line.own.env),
        }
    )


def sayings_differ(one: str | None, other: str | None) -> bool:
    """Whether both are known, and not the same: what is older has none, and is taken."""
    return bool(one and other and one != other)


# The job's `links`: names below {out} that lead to folders of the code.
#
# So a script that reads ./data and writes ./checkpoints runs unchanged under workdir: out. They are
# no part of a result: who looks through {out} leaves them out by their names, and any other link
# that leads out of it is refused as ever.


def place(out: Path, code: Path, links: Mapping[str, str], aside: Path) -> list[Path]:
    """Make them; those of an earlier release lead to `code` from now on. What an attempt left in
    the place of one is moved into `aside`, and returned. Raises OSError.
    """
    moved = []
    for name, folder in links.items():
        link, target = out / name, code / folder
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            atomic.make_folder(aside)
            moved.append(aside / f"{name}-{timestamp.utc_now().replace(':', '')}")
            link.rename(moved[-1])
        link.symlink_to(target, target_is_directory=True)
    return moved

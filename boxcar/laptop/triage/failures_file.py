"""failures.yaml beside job.yaml: a person's own signatures, which come before all others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import OwnSignature
from boxcar.shared.sentence import LANGUAGES, Sentence, _
from boxcar.shared.triage.course_words import FOLLOWS, WHAT_TO_DO
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.ladders import LADDERS
from boxcar.shared.triage.signature import Signature
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN, OwnFailure
from boxcar.shared.triage.signatures.all_rows import BY_ID, TOPICS

# docs/failures.md, made from the rows: one row each, both languages, with the ladders.


_HEAD = """# Failures

What a failure is, what follows from it, and what to do: the rows by which Boxcar names the end of
a training. This page is made from them
(`BOXCAR_GOLDEN=write .venv/bin/pytest tests/laptop/triage/test_failures_page.py`);
search it for the id that
`status`, `explain` and news show, or for the words of your log. `boxcar triage LOG` does that for
any log, and `boxcar explain --cell NAME` for a cell. A row counts only where it explains the end:
what the platform and the driver say comes first, then memory counters, GPUs, the last traceback of
the rank that failed first, the rest of the log, the exit code; a warning that the script survived
never outranks its traceback. Batch, epochs, seeds and config are never changed.
A signal, 137 too, is a failure unless its end was proven: the last of the epochs was reported, and
the artifacts were written after that (docs/decisions/0003-what-a-success-is.md).

本页由特征数据生成：故障是什么、之后会怎样、该怎么办。
信号（包括 137）都算失败，除非能证明训练已经结束：报告过最后一个 epoch，且产物写于其后。
"""


def page() -> str:
    parts = [_HEAD, *_classes(), *_ladders()]
    for title, rows in TOPICS:
        parts += [f"\n## {_both(title, ' / ')}\n", *_table(rows)]
    parts += ["\n## What the agent says by itself / agent 自己得出的\n", *_table(AGENTS_OWN)]
    return "\n".join(parts) + "\n"


def _classes() -> Iterator[str]:
    yield "\n## Classes / 类别\n"
    yield "| class | what follows | 之后 |\n| --- | --- | --- |"
    yield "\n".join(_row(f"`{one.value}`", *_in_each(FOLLOWS[one])) for one in Course)


def _ladders() -> Iterator[str]:
    yield "\n## What to try, in this order / 按此顺序尝试"
    for title, steps in LADDERS.values():
        yield f"\n### {_both(title, ' / ')}\n"
        yield "\n".join(f"{n}. {_both(step)}" for n, step in enumerate(steps, 1))


def _table(rows: Sequence[Signature] | Sequence[OwnFailure]) -> Iterator[str]:
    yield "| id | class | what it is | what to do |\n| --- | --- | --- | --- |"
    for row in rows:
        todo = row.todo or WHAT_TO_DO[row.course]
        yield _row(
            f'<a id="{row.id}"></a>{row.id}', f"`{row.course.value}`", _both(row.words), _both(todo)
        )


def _row(*fields: str) -> str:
    return "| " + " | ".join(field.replace("|", "\\|") for field in fields) + " |"


def _both(template: str, between: str = "<br>") -> str:
    return between.join(_in_each(template))


def _in_each(template: str) -> list[str]:
    return [Sentence(template).said(language) for language in LANGUAGES]


NAME = "failures.yaml"
MOST = 50
_LONGEST = 400
_ID = re.compile(r"[A-Z][A-Z0-9_-]{1,31}")
_TAKEN = {*BY_ID, *(own.id for own in AGENTS_OWN)}
# What a person's row may ask for; that a box is given up or a training is over is not said by one.
Follows = Literal[
    "RESUME_SAME",
    "WAIT_NETWORK",
    "OTHER_BOX",
    "FREE_SPACE",
    "FIX_CONFIG",
    "FIX_CODE",
    "FIX_DATA",
    "OUT_OF_MEMORY",
    "STOP_QUEUE",
    "ASK",
]
_WAITS_S = {Course.RESUME_SAME: (30.0, 300.0), Course.WAIT_NETWORK: (60.0, 300.0, 900.0)}


def _id(text: str) -> str:
    if not _ID.fullmatch(text) or text.startswith("EXIT"):
        raise ValueError(
            _(
                "invalid id {text!r}: use capital letters, digits, _ and -, such as STORE-LOCKED",
                text=text,
            )
        )
    if text in _TAKEN:
        raise ValueError(_("{text!r} is one of Boxcar's own ids: choose another one", text=text))
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(
            _("{text!r} is not a regular expression: {error}", text=text, error=error)
        ) from None
    if not text or len(text) > _LONGEST:
        raise ValueError(
            _("expected 1 to {longest} characters, found {n}", longest=_LONGEST, n=len(text))
        )
    return text


class OwnRow(Model):
    id: Annotated[str, AfterValidator(_id)]
    follows: Follows
    pattern: Annotated[str, AfterValidator(_expression)]
    words: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    todo: Annotated[str, Field(max_length=_LONGEST)] = ""

    def planned(self) -> OwnSignature:
        waits_s = _WAITS_S.get(Course(self.follows), ())
        return OwnSignature(self.id, self.follows, self.pattern, self.words, self.todo, waits_s)


class FailuresFile(Model):
    signatures: Annotated[tuple[OwnRow, ...], Field(max_length=MOST)] = ()


def read_failures_file(root: Path) -> tuple[OwnSignature, ...]:
    """Those of the project, in their order; none where there is no such file. Raises InputError."""
    path = root / NAME
    if not path.exists():
        return ()
    return _checked(yaml_models.load(path, FailuresFile), str(path))


def parse(data: bytes, where: str) -> tuple[OwnSignature, ...]:
    return _checked(yaml_models.parse(data, where, FailuresFile), where)


def _checked(found: FailuresFile, where: str) -> tuple[OwnSignature, ...]:
    ids = [row.id for row in found.signatures]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    if twice:
        raise InputError(
            _(
                "{where}: the id {twice} is used twice: rename one of them",
                where=where,
                twice=twice[0],
            )
        )
    return tuple(row.planned() for row in found.signatures)

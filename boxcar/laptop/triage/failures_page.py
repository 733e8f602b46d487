"""docs/failures.md, made from the rows: one row each, both languages, with the ladders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxcar.shared.catalogue.sentence import Said
from boxcar.shared.catalogue.triage import FOLLOWS, WHAT_TO_DO
from boxcar.shared.triage.course import Course
from boxcar.shared.triage.ladders import LADDERS
from boxcar.shared.triage.signature import Signature
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN, OwnFailure
from boxcar.shared.triage.signatures.all_rows import TOPICS

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
        parts += [f"\n## {title.en} / {title.zh}\n", *_table(rows)]
    parts += ["\n## What the agent says by itself / agent 自己得出的\n", *_table(AGENTS_OWN)]
    return "\n".join(parts) + "\n"


def _classes() -> Iterator[str]:
    yield "\n## Classes / 类别\n"
    yield "| class | what follows | 之后 |\n| --- | --- | --- |"
    yield "\n".join(_row(f"`{one.value}`", *FOLLOWS[one]) for one in Course)


def _ladders() -> Iterator[str]:
    yield "\n## What to try, in this order / 按此顺序尝试"
    for title, steps in LADDERS.values():
        yield f"\n### {title.en} / {title.zh}\n"
        yield "\n".join(f"{n}. {step.en}<br>{step.zh}" for n, step in enumerate(steps, 1))


def _table(rows: Sequence[Signature] | Sequence[OwnFailure]) -> Iterator[str]:
    yield "| id | class | what it is | what to do |\n| --- | --- | --- | --- |"
    for row in rows:
        todo = row.todo or WHAT_TO_DO[row.course]
        yield _row(
            f'<a id="{row.id}"></a>{row.id}', f"`{row.course.value}`", _both(row.words), _both(todo)
        )


def _row(*fields: str) -> str:
    return "| " + " | ".join(field.replace("|", "\\|") for field in fields) + " |"


def _both(said: Said) -> str:
    return f"{said.en}<br>{said.zh}"

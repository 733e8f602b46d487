"""What makes a run short: `smoke:` and `rehearse:` of job.yaml, as words or as three keys.

Which cell has which is in `cell_faults.py`.

`add` comes after the command. `replace` swaps what stands in it, for scripts that take positions
and for overrides: a placeholder in braces, or a whole word. `skip` leaves cells out, with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project import job_values
from boxcar.shared.cell import cell_line, placeholders, said, terms
from boxcar.shared.cell.placeholders import Placeholder
from boxcar.shared.cell.said import Places, SaidCell
from boxcar.shared.files.plan import Cell, Plan
from boxcar.shared.sentence import _

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise ValueError(_("expected one string"))
    words = tuple(cell_line.split_words(value))
    job_values.check_command(words)
    return words


def _key(text: str) -> str:
    if match := _PLACEHOLDER.fullmatch(text):
        job_values.check_command([text])
        if match[1] not in placeholders.KNOWN:
            raise ValueError(
                _("{text} cannot be replaced. Write the words to put in its place", text=text)
            )
    return text


def _reason(text: str) -> str:
    if not text.strip():
        raise ValueError(_("expected a reason, which is recorded with each launch"))
    return text


class ShortRun(Model):
    """`replace`: placeholder or word -> what it becomes, literally; `skip`: cells -> the reason."""

    add: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    replace: dict[Annotated[str, AfterValidator(_key)], str] = Field(default_factory=dict)
    skip: dict[str, Annotated[str, AfterValidator(_reason)]] = Field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether it says how a run becomes short."""
        return bool(self.add or self.replace)

    def why_skipped(self, cell: str) -> str | None:
        """The reason to leave the cell out; an exact name counts before a pattern."""
        names = sorted(self.skip, key=terms.is_pattern)
        return next((self.skip[name] for name in names if terms.rule_fits(name, cell)), None)


def of_text(value: object) -> object:
    """Words alone are added. Raises ValueError for what is neither words nor keys."""
    if not isinstance(value, (str, Mapping, ShortRun)):
        raise ValueError(_("expected one string, or the keys add, replace and skip"))
    return {"add": value} if isinstance(value, str) else value


def describe_short_run(plan: Plan, cell: Cell, places: Places, short: ShortRun) -> SaidCell:
    """What is run for the cell's short run: what is added comes last, so that it wins."""
    values = {key[1:-1]: text for key, text in short.replace.items() if _PLACEHOLDER.fullmatch(key)}
    added = _put_in(short.add, values)
    whole = said.say_cell(_preset(plan, values), cell, places, added)
    count = len(whole.words) - len(added)
    words = (short.replace.get(word, word) for word in whole.words[:count])
    return replace(whole, words=(*words, *whole.words[count:]))


def faults(plan: Plan, cells: Sequence[Cell], short: ShortRun, at: str) -> Iterator[str]:
    """What of it speaks of nothing that is there. `at` is where it stands, such as `smoke`."""
    words = _words_of(plan, cells) if short.replace else frozenset()
    for key in short.replace:
        if not (_is_taken(plan, key) if _PLACEHOLDER.fullmatch(key) else key in words):
            yield _(
                "{at}.replace: no cell's command has {key!r}{near}",
                at=at,
                key=key,
                near=did_you_mean(key, words),
            )
    names = [cell.name for cell in cells]
    for name in short.skip:
        if not terms.is_pattern(name) and not any(terms.rule_fits(name, cell) for cell in names):
            yield _(
                "{at}.skip: no queue has a cell named {name!r}{near}",
                at=at,
                name=name,
                near=did_you_mean(name, names),
            )


def _words_of(plan: Plan, cells: Sequence[Cell]) -> frozenset[str]:
    places = Places("{out}", "{code}", resume="{resume}")
    return frozenset(word for cell in cells for word in said.say_cell(plan, cell, places).words)


def _is_taken(plan: Plan, key: str) -> bool:
    commands = (plan.command, plan.resume_args, *(rule.command or () for rule in plan.rules))
    values = (*plan.job_env.values(), *(text for r in plan.rules for text in r.env.values()))
    name = key[1:-1]
    return any(placeholders.takes(words, name) for words in commands) or any(
        key in text for text in values
    )


# --- a placeholder's value, before the rest is filled


def _preset(plan: Plan, values: Mapping[str, str]) -> Plan:
    """The plan with these placeholders filled, in every command and variable."""
    return replace(
        plan,
        command=_put_in(plan.command, values),
        resume_args=_put_in(plan.resume_args, values),
        job_env=_put_into_env(plan.job_env, values),
        rules=tuple(
            replace(
                rule,
                command=None if rule.command is None else _put_in(rule.command, values),
                env=_put_into_env(rule.env, values),
            )
            for rule in plan.rules
        ),
    )


def _put_in(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(word if word == placeholders.MORE else _spelled(word, values) for word in words)


def _spelled(word: str, values: Mapping[str, str]) -> str:
    """The word as job.yaml would have it, with the values literally in it."""
    return "".join(_part(part, values) for part in placeholders.parse_word(word))


def _part(part: str | Placeholder, values: Mapping[str, str]) -> str:
    if isinstance(part, Placeholder) and part.name not in values:
        return f"{{{part.name}}}"
    text = values[part.name] if isinstance(part, Placeholder) else part
    return text.replace("{", "{{").replace("}", "}}")


def _put_into_env(env: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    return {name: _put_into_text(text, values) for name, text in env.items()}


def _put_into_text(text: str, values: Mapping[str, str]) -> str:
    """`{{epochs}}` stays, as it means `{epochs}` itself."""
    if not values:
        return text
    names = "|".join(map(re.escape, values))
    one = re.compile(rf"(?<!\{{)\{{({names})\}}(?!\}})")
    return one.sub(lambda match: values[match[1]], text)

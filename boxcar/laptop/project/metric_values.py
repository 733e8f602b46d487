"""`metrics` of job.yaml: numbers to be shown, each out of the log, a CSV or a JSON file. What is
wrong raises ValueError.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.job_values import MetricFile
from boxcar.shared.files import plan
from boxcar.shared.files.plan import CSV, JSON, LOG
from boxcar.shared.sentence import _, chained, mark

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./@%+-]{0,63}")
# They have columns of their own, from what the script reports.
_TAKEN = ("step", "epoch", "at")
_SOURCES = (LOG, CSV, JSON)
_BEGINS = re.compile(r"\((?!\?)|\(\?P<\w+>")
_GREEDY = re.compile(r"(?<!\\)(?:\.|\\[Sw])[*+]$")
_OF_NUMBERS = ("9.5e-05", "-0.5")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            _(
                "the name {text!r} may have letters, digits and _./@%+-, with a letter first",
                text=text,
            )
        )
    if text in _TAKEN:
        raise ValueError(
            _("{text!r} is the name of another column. Give the number another name", text=text)
        )
    return text


def _expression(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(
            _("{text!r} is not a regular expression: {error}", text=text, error=error)
        ) from None
    if groups != 1:
        raise ValueError(
            _(
                "{text!r} has {groups} groups, expected one, around the number, such as 'val loss "
                "(\\S+)'. Write other groups as (?:...)",
                text=text,
                groups=groups,
            )
        )
    return text


class Metric(Model):
    """One number, from exactly one of `log`, `csv` and `json`."""

    log: Annotated[str, AfterValidator(_expression)] | None = None
    csv: MetricFile | None = None
    json_: MetricFile | None = None
    column: str | None = None
    key: str | None = None
    best: Literal["min", "max"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_yaml(cls, value: object) -> object:
        # pydantic's own models have a method of this name.
        if isinstance(value, dict) and "json" in value:
            return {("json_" if name == "json" else name): each for name, each in value.items()}
        return value

    @model_validator(mode="after")
    def _fits(self) -> Metric:
        given = [name for name in _SOURCES if self._of(name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or _("none of them")
            raise ValueError(_("expected one of log, csv and json, found {found}", found=found))
        _refuse_other_keys(given[0], column=self.column, key=self.key)
        return self

    def _of(self, source: str) -> str | None:
        return {LOG: self.log, CSV: self.csv, JSON: self.json_}[source]

    def planned(self, name: str) -> plan.Metric:
        source = next(each for each in _SOURCES if self._of(each) is not None)
        return plan.Metric(name, source, str(self._of(source)), self.column or self.key, self.best)


def cutting_pattern(metrics: Mapping[str, Metric]) -> Iterator[tuple[str, str]]:
    """The numbers whose expression takes a part of some numbers, each with what it is."""
    for name, metric in metrics.items():
        before, taken = _group(metric.log) if metric.log else ("", None)
        if taken is None:
            continue
        if (greedy := _GREEDY.search(before)) and taken.fullmatch("5"):
            but = _("{greedy}? matches all of it", greedy=greedy[0])
            yield (
                name,
                _(
                    "{greedy} before ({pattern}) leaves only the number's last digit to it; {but}",
                    greedy=greedy[0],
                    pattern=taken.pattern,
                    but=but,
                ),
            )
            continue
        no = [number for number in _OF_NUMBERS if not taken.fullmatch(number)]
        if no and taken.fullmatch("9.5"):
            text = _(
                "({pattern}) does not match all of {no}. Boxcar still reads numbers to their end; "
                "(\\S+) matches every number",
                pattern=taken.pattern,
                no=chained(mark("{first} and {second}"), no),
            )
            yield name, text


def _group(pattern: str) -> tuple[str, re.Pattern[str] | None]:
    """What stands before its one group and in it: from a bracket to the first one with which it is
    whole.
    """
    for begin in _BEGINS.finditer(pattern):
        for end in re.finditer(r"\)", pattern[begin.end() :]):
            with contextlib.suppress(re.error, RecursionError, OverflowError):
                found = re.compile(pattern[begin.end() :][: end.start()])
                if not found.groups:
                    return pattern[: begin.start()], found
    return pattern, None


def _refuse_other_keys(source: str, *, column: str | None, key: str | None) -> None:
    if source == CSV and not column:
        raise ValueError(_("csv: needs the column: {{csv: summary.csv, column: eval_top1}}"))
    if source == JSON and not key:
        raise ValueError(_("json: needs the key: {{json: metrics.json, key: dice}}"))
    if source != CSV and column is not None:
        raise ValueError(_("column: is for csv, and this is {source}", source=source))
    if source != JSON and key is not None:
        raise ValueError(_("key: is for json, and this is {source}", source=source))


MetricName = Annotated[str, AfterValidator(_name)]
Metrics = dict[MetricName, Metric]

"""A report in sentences, the most important first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boxcar.shared.errors import counted
from boxcar.training.rehearse import curve, verdict
from boxcar.training.rehearse.compare import Compared, Difference
from boxcar.training.rehearse.rehearsal import Report

_SHOWN = 6
_MEANING = {
    verdict.BIT_EQUAL: "bit-equal: the killed run ended as if it had never been killed",
    verdict.WITHIN: "within tolerance: the killed run ended nearly as the uninterrupted one",
    verdict.DIFFERS: "differs: the killed run did not end as the uninterrupted one",
    verdict.NOT_PROVEN: "not proven: the resume could not be judged",
    verdict.FAILED: "failed: a run did not end well",
}


def report_lines(report: Report) -> list[str]:
    """All that a person should read."""
    return [
        _MEANING[report.word],
        *([f"  {report.failure}"] if report.failure else []),
        *(f"  probably not restored: {one.state} ({one.why})" for one in report.suspects),
        *(f"  {note}" for note in report.notes),
        *_compared(report),
        *_outside(report),
        *([f"  both runs and their logs are kept in {report.kept}"] if report.kept else []),
        *_log(report),
    ]


def _compared(report: Report) -> list[str]:
    if not report.kills:
        return []
    return [*_files(report.files), *_curve(report), _order(report)]


def _files(files: Mapping[str, Compared]) -> list[str]:
    found = []
    for name, compared in files.items():
        beyond = [item for item in compared.differences if not item.is_within]
        if not compared.differences:
            found.append(f"  {name}: {compared.values} values, all bit-equal")
        elif not beyond:
            most = max(item.relative or 0.0 for item in compared.differences)
            off = len(compared.differences)
            found.append(
                f"  {name}: {off} of {compared.values} values differ, by {most:.1e} at most"
            )
        else:
            found.append(f"  {name}: {len(beyond)} of {compared.values} values differ")
            found += _by_kind(beyond)
        if own := compared.of_one_run:
            found.append(f"    not compared, as each run has its own: {_list(own)}")
    return found


def _by_kind(differences: Iterable[Difference]) -> list[str]:
    groups: dict[str, list[Difference]] = {}
    for item in differences:
        groups.setdefault(item.kind, []).append(item)
    return [
        f"    {kind}: {len(items)}, such as {_spelled(items[0])}" for kind, items in groups.items()
    ]


def _spelled(item: Difference) -> str:
    if item.whole == item.killed and item.relative is not None:
        return f"{item.path} ({item.whole}, relative difference {item.relative:.1e})"
    if item.whole == item.killed:
        return f"{item.path} ({item.whole})"
    return f"{item.path}: uninterrupted {item.whole}, killed {item.killed}"


def _curve(report: Report) -> list[str]:
    curve, kills = report.curve, report.kills
    if not curve.lines and not curve.surplus:
        return ["  loss curve: not measured, because the script reports no progress"]
    found = []
    if first := curve.first:
        when = kills[first.start - 1].after_step if 0 < first.start <= len(kills) else None
        after = f"; the kill was after step {when}" if when is not None else ""
        values = f"{first.name} {first.whole}, in the killed run {first.killed}"
        found.append(f"  loss curve: first difference at step {first.step}{after} ({values})")
    else:
        most = f"the same but for {curve.largest:.1e} at most" if curve.largest else "all equal"
        found.append(f"  loss curve: {counted(curve.lines, 'line')}, {most}")
    if curve.missing:
        found.append(f"    steps that the killed run never reported: {_list(curve.missing)}")
    if curve.surplus:
        found.append(f"    steps that only the killed run reported: {_list(curve.surplus)}")
    return found


def _order(report: Report) -> str:
    if report.order is None:
        return f"  {curve.NOT_MEASURED}"
    if report.order.problem:
        return f"  data order: {report.order.problem}"
    return f"  data order: the same in all {counted(report.order.batches, 'batch', 'batches')}"


def _outside(report: Report) -> list[str]:
    real = [item for item in report.outside if not item.harmless]
    harmless = [item for item in report.outside if item.harmless]
    if not real:
        found = ["  outside of {out}: nothing was written"]
    else:
        changed = counted(len(real), "path was", "paths were")
        found = [f"  outside of {{out}}: {changed} changed; other cells may see them"]
    for item in real[:_SHOWN]:
        found.append(f"    {item.path} ({item.what}{f' by {item.by}' if item.by else ''})")
    if len(real) > _SHOWN:
        found.append(f"    and {len(real) - _SHOWN} more")
    reasons: dict[str, int] = {}
    for item in harmless:
        reasons[item.harmless] = reasons.get(item.harmless, 0) + 1
    if reasons:
        numbers = ", ".join(f"{reason}: {number}" for reason, number in reasons.items())
        found.append(f"    harmless, and not counted: {numbers}")
    return found


def _log(report: Report) -> list[str]:
    if not report.log:
        return []
    return [f"the end of {report.log}:", *(f"  {line}" for line in report.log_end)]


def _list(values: Iterable[object]) -> str:
    listed = [str(value) for value in values]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more

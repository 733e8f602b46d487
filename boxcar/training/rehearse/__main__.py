"""Rehearse a resume: run a command on the CPU, run it again with a SIGKILL, and compare.

    python -m boxcar.training.rehearse [flags] -- train.py --config c.yaml --out {out}

{out} stands for the folder that the command must write to; BOXCAR_OUT names it too. A first word
that ends in .py is started by this Python; put `torchrun ...` before it for ranks. Notes go to
stderr, the result to stdout; report.json in the work folder has all of it. Exit code: 0 bit-equal
or within tolerance, 1 anything else, 2 the command line is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, counted
from boxcar.shared.files import codec
from boxcar.shared.process import exit_codes, told_to_end
from boxcar.training.rehearse import curve, rehearsal, two_runs, verdict
from boxcar.training.rehearse.compare import Compared, Difference
from boxcar.training.rehearse.rehearsal import Report
from boxcar.training.rehearse.two_runs import OUT, Request

FORMAT = "boxcar.rehearsal/1"


def main(arguments: Sequence[str]) -> int:
    request, as_json = _request(arguments)
    try:
        with told_to_end.as_exit():
            report = rehearsal.rehearse(request, _say)
        document = _document(report)
        atomic.write_whole(request.work / rehearsal.REPORT, document)
    except BoxcarError as error:
        _say(str(error))
        return 2 if error.exit_code == 2 else 1
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted; nothing of the cell is left running")
        return exit_codes.INTERRUPTED
    print(document.decode() if as_json else "\n".join(report_lines(report)), flush=True)
    return 0 if report.is_good else 1


def _request(arguments: Sequence[str]) -> tuple[Request, bool]:
    """argparse itself exits with 2 where the line is wrong."""
    given = list(arguments)
    words = given[given.index("--") + 1 :] if "--" in given else []
    flags = given[: given.index("--")] if "--" in given else given
    parser = _parser()
    asked = parser.parse_args(flags)
    if not words:
        parser.error("expected a command after --, such as: -- train.py --out {out}")
    if words[0].endswith(".py"):
        words = [sys.executable, "-u", *words]
    if OUT not in str(asked.cwd) and not asked.cwd.is_dir():
        parser.error(f"--cwd {asked.cwd}: there is no such folder")
    chosen: dict[str, Any] = {} if asked.seed is None else {"seed": asked.seed}
    return Request(
        words=tuple(words),
        work=asked.work,
        cwd=asked.cwd,
        resume=asked.resume,
        artifacts=tuple(asked.artifact),
        resumed=tuple(asked.resumed),
        links=dict(asked.link),
        kills=asked.kills,
        tolerance=asked.tolerance,
        **chosen,
    ), asked.json


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m boxcar.training.rehearse",
        usage="%(prog)s [flags] -- train.py --out {out}",
        description="Run a command on the CPU, run it again with a SIGKILL, and compare.",
    )
    add = parser.add_argument
    add(
        "--resume",
        default="latest.pth",
        help="what to resume from in {out}: a path, or a pattern such as step_*.pt (latest.pth)",
    )
    add(
        "--resumed",
        action="append",
        default=[],
        help="a word of the command of a start that finds a checkpoint, {resume}; again for each",
    )
    add("--artifact", action="append", default=[], help="in {out}, compared too; again for more")
    add(
        "--link",
        action="append",
        default=[],
        type=_link,
        help="NAME=FOLDER, a link below {out} for each start; again for more",
    )
    add("--kills", type=_count, default=1, help="how often the second run is killed (1)")
    add("--seed", type=int, help="of the moments of the kills (default: a random one, printed)")
    add("--tolerance", type=_fraction, default=two_runs.TOLERANCE, help="relative (1e-6)")
    add("--work", type=Path, default=Path(".boxcar/rehearse"), help="a folder of its own")
    add("--cwd", type=Path, default=Path(), help="where the command runs (here); may be {out}")
    add("--json", action="store_true", help="print the whole report as JSON")
    return parser


def _link(text: str) -> tuple[str, str]:
    name, _, folder = text.partition("=")
    if not (name and Path(folder).is_dir()):
        raise argparse.ArgumentTypeError(f"expected NAME=FOLDER, found {text}")
    return name, str(Path(folder).resolve())


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 100, found {text}")
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to below 1, found {text}")
    return number


def _document(report: Report) -> bytes:
    value = {"format": FORMAT, "is_good": report.is_good, "lines": report_lines(report)}
    plain = codec.finite(codec.encode(_bounded(report)))
    return json.dumps(value | plain, indent=1, default=sorted).encode() + b"\n"


def _bounded(report: Report) -> Any:
    """A report may name every tensor and every file of a large project; nobody reads these."""
    encoded = codec.encode(report)
    encoded["outside"] = encoded["outside"][:1000]
    for compared in encoded["files"].values():
        compared["differences"] = compared["differences"][:1000]
    return encoded


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the report in sentences, the most important first


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
    found = [
        f"    {kind}: {len(items)}, such as {_spelled(items[0])}" for kind, items in groups.items()
    ]
    more = [f"    and in {len(found) - _SHOWN} more parts"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

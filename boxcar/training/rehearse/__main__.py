"""Rehearse a resume: run a command on the CPU, run it again with a SIGKILL, and compare.

    python -m boxcar.training.rehearse [flags] -- train.py --config c.yaml --out {out}

{out} stands for the folder that the command must write to; BOXCAR_OUT names it too. A first word
that ends in .py is started by this Python; put `torchrun ...` before it for ranks. Notes go to
stderr, the result to stdout; report.json in the work folder has all of it, in English, and its
sentences as templates for who reads another language. Exit code: 0 bit-equal or within tolerance,
1 anything else, 2 the command line is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, reason_of, some
from boxcar.shared.event_words import SENTENCES, sentences_in
from boxcar.shared.files import codec
from boxcar.shared.process import exit_codes, told_to_end
from boxcar.shared.sentence import Sentence, _, known_word, mark, said_by
from boxcar.training.rehearse import curve, outside_writes, rehearsal, two_runs, verdict
from boxcar.training.rehearse.compare import Compared, Difference
from boxcar.training.rehearse.curve import Parting
from boxcar.training.rehearse.rehearsal import Report
from boxcar.training.rehearse.two_runs import OUT, Request

FORMAT = "boxcar.rehearsal/1"


def main(arguments: Sequence[str]) -> int:
    request, asked = _request(arguments)

    def say(text: str) -> None:
        said = {"text": text, SENTENCES: sentences_in(text)}
        print(json.dumps(said) if asked.notes else text, file=sys.stderr, flush=True)

    try:
        with told_to_end.as_exit():
            report = rehearsal.rehearse(request, say)
        document = _document(report)
        atomic.write_whole(request.work / rehearsal.REPORT, document)
    except BoxcarError as error:
        say(said_by(error))
        return 2 if error.exit_code == 2 else 1
    except OSError as error:
        say(_("{file}: {error}", file=error.filename, error=reason_of(error)))
        return 1
    except KeyboardInterrupt:
        say(_("interrupted; nothing of the cell is left running"))
        return exit_codes.INTERRUPTED
    print(document.decode() if asked.json else "\n".join(report_lines(report)), flush=True)
    return 0 if report.is_good else 1


def _request(arguments: Sequence[str]) -> tuple[Request, argparse.Namespace]:
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
    ), asked


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
    add("--notes", action="store_true", help="each note as JSON, for who reads another language")
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
    lines = report_lines(report)
    value = {"format": FORMAT, "is_good": report.is_good, "lines": lines}
    plain = codec.finite(codec.encode(_bounded(report)))
    value |= plain | {SENTENCES: sentences_in([lines, *(one.state for one in report.suspects)])}
    return json.dumps(value, indent=1, default=sorted).encode() + b"\n"


def _bounded(report: Report) -> Any:
    """A report may name every tensor and every file of a large project; nobody reads these."""
    encoded = codec.encode(report)
    encoded["outside"] = encoded["outside"][:1000]
    for compared in encoded["files"].values():
        compared["differences"] = compared["differences"][:1000]
    return encoded


# --- the report in sentences, the most important first


_SHOWN = 6
_MEANING = {
    verdict.BIT_EQUAL: mark("bit-equal: the killed run ended as if it had never been killed"),
    verdict.WITHIN: mark("within tolerance: the killed run ended nearly as the uninterrupted one"),
    verdict.DIFFERS: mark("differs: the killed run did not end as the uninterrupted one"),
    verdict.NOT_PROVEN: mark("not proven: the resume could not be judged"),
    verdict.FAILED: mark("failed: a run did not end well"),
}


def report_lines(report: Report) -> list[str]:
    """All that a person should read."""
    return [
        Sentence(_MEANING[report.word]),
        *([_("  {text}", text=report.failure)] if report.failure else []),
        *(
            _("  probably not restored: {state} ({why})", state=one.state, why=one.why)
            for one in report.suspects
        ),
        *(_("  {text}", text=note) for note in report.notes),
        *_compared(report),
        *_outside(report),
        *(
            [_("  both runs and their logs are kept in {folder}", folder=report.kept)]
            if report.kept
            else []
        ),
        *_log(report),
    ]


def _compared(report: Report) -> list[str]:
    if not report.kills:
        return []
    return [*_files(report.files), *_curve(report), _order(report)]


def _files(files: Mapping[str, Compared]) -> list[str]:
    found: list[str] = []
    for name, compared in files.items():
        beyond = [item for item in compared.differences if not item.is_within]
        if not compared.differences:
            found.append(
                _("  {file}: {n} {n:value|values}, all bit-equal", file=name, n=compared.values)
            )
        elif not beyond:
            most = max(item.relative or 0.0 for item in compared.differences)
            off = len(compared.differences)
            found.append(
                _(
                    "  {file}: {n} of {of} values differ, by {most:.1e} at most",
                    file=name,
                    n=off,
                    of=compared.values,
                    most=most,
                )
            )
        else:
            differ = {"file": name, "n": len(beyond), "of": compared.values}
            found.append(_("  {file}: {n} of {of} values differ", **differ))
            found += _by_kind(beyond)
        if own := compared.of_one_run:
            found.append(_("    not compared, as each run has its own: {list}", list=_list(own)))
    return found


def _by_kind(differences: Iterable[Difference]) -> list[str]:
    groups: dict[str, list[Difference]] = {}
    for item in differences:
        groups.setdefault(item.kind, []).append(item)
    found: list[str] = [
        _("    {part}: {n}, such as {one}", part=kind, n=len(items), one=_spelled(items[0]))
        for kind, items in groups.items()
    ]
    left = len(found) - _SHOWN
    more = [_("    and in {n} more {n:part|parts}", n=left)] if left > 0 else []
    return [*found[:_SHOWN], *more]


def _spelled(item: Difference) -> str:
    if item.whole == item.killed and item.relative is not None:
        words = {"path": item.path, "value": item.whole, "by": item.relative}
        return _("{path} ({value}, relative difference {by:.1e})", **words)
    if item.whole == item.killed:
        return _("{path} ({value})", path=item.path, value=item.whole)
    words = {"path": item.path, "whole": item.whole, "killed": item.killed}
    return _("{path}: uninterrupted {whole}, killed {killed}", **words)


def _curve(report: Report) -> list[str]:
    curve, kills = report.curve, report.kills
    if not curve.lines and not curve.surplus:
        return [_("  loss curve: not measured, because the script reports no progress")]
    found: list[str] = []
    if first := curve.first:
        when = kills[first.start - 1].after_step if 0 < first.start <= len(kills) else None
        found.append(_parting(first, when))
    elif curve.largest:
        words = {"n": curve.lines, "most": curve.largest}
        found.append(
            _("  loss curve: {n:,} {n:line|lines}, the same but for {most:.1e} at most", **words)
        )
    else:
        found.append(_("  loss curve: {n:,} {n:line|lines}, all equal", n=curve.lines))
    if curve.missing:
        steps = _list(curve.missing)
        found.append(_("    steps that the killed run never reported: {list}", list=steps))
    if curve.surplus:
        steps = _list(curve.surplus)
        found.append(_("    steps that only the killed run reported: {list}", list=steps))
    return found


def _parting(first: Parting, killed_after: int | None) -> str:
    words = {
        "step": first.step,
        "name": first.name,
        "whole": first.whole,
        "killed": first.killed,
    }
    if killed_after is None:
        return _(
            "  loss curve: first difference at step {step} ({name} {whole}, in the killed run "
            "{killed})",
            **words,
        )
    return _(
        "  loss curve: first difference at step {step}; the kill was after step {when} ({name} "
        "{whole}, in the killed run {killed})",
        when=killed_after,
        **words,
    )


def _order(report: Report) -> str:
    if report.order is None:
        return _("  {text}", text=Sentence(curve.NOT_MEASURED))
    if report.order.problem:
        return _("  data order: {problem}", problem=report.order.problem)
    return _("  data order: the same in all {n:,} {n:batch|batches}", n=report.order.batches)


def _outside(report: Report) -> list[str]:
    real = [item for item in report.outside if not item.harmless]
    harmless = [item for item in report.outside if item.harmless]
    found: list[str] = [_("  outside of {{out}}: nothing was written")]
    if real:
        found = [
            _(
                "  outside of {{out}}: {n:,} {n:path was|paths were} changed; other cells may see "
                "{n:it|them}",
                n=len(real),
            )
        ]
    for item in real[:_SHOWN]:
        words = {"path": item.path, "what": known_word(item.what, outside_writes.WHAT)}
        found.append(
            _("    {path} ({what} by {by})", by=item.by, **words)
            if item.by
            else _("    {path} ({what})", **words)
        )
    if len(real) > _SHOWN:
        found.append(_("    and {n:,} more", n=len(real) - _SHOWN))
    reasons: dict[str, int] = {}
    for item in harmless:
        reasons[item.harmless] = reasons.get(item.harmless, 0) + 1
    for reason, number in reasons.items():
        why = Sentence(reason)
        found.append(_("    {n:,} harmless, and not counted: {reason}", n=number, reason=why))
    return found


def _log(report: Report) -> list[str]:
    if not report.log:
        return []
    return [_("the end of {file}:", file=report.log), *(f"  {line}" for line in report.log_end)]


def _list(values: Iterable[object]) -> str:
    return some(map(str, values), _SHOWN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

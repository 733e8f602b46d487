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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import codec
from boxcar.shared.process import exit_codes, told_to_end
from boxcar.training.rehearse import rehearsal, two_runs, wording
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
    print(document.decode() if as_json else "\n".join(wording.report_lines(report)), flush=True)
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
    value = {"format": FORMAT, "is_good": report.is_good, "lines": wording.report_lines(report)}
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command line of boxcar.training.fetch; its module's text says what it is for.

    python -m boxcar.training.fetch data.json [--check]
    python -m boxcar.training.fetch --to data --task burgers1d --split train --optional val \\
        --pattern 's3://bucket/full/{task}/{task}_{split}.h5'

Exit codes: 0 all there; 1 a required file is nowhere, or came damaged; 2 the spec is wrong;
3 no room; 75 a source does not answer (the same command resumes).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from boxcar.shared.errors import BoxcarError, InputError
from boxcar.shared.safe_url import shown
from boxcar.training.fetch import data_spec, staging
from boxcar.training.fetch.lookup import Outcome
from boxcar.training.reporting.say import size_text


def main(words: list[str] | None = None) -> int:
    flags = parser().parse_args(words)
    try:
        spec = data_spec.parse(document(flags), str(flags.spec or "the command line"))
        if flags.check:
            outcomes = staging.check(spec, workers=flags.workers)
            print("\n".join([*map(line, outcomes), total(outcomes)]))
        else:
            for (task, split), path in staging.fetch(spec, workers=flags.workers).items():
                print(f"{task} {split}: {path}")
    except BoxcarError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"fetch: {error.filename or spec.to}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    said = argparse.ArgumentParser(
        prog="python -m boxcar.training.fetch",
        description="Fetch every split of every task, checked. Flags replace what data.json says.",
        allow_abbrev=False,
    )
    add = said.add_argument
    add("spec", nargs="?", type=Path, metavar="data.json")
    add("--check", action="store_true", help="look only; exit 1 and the list where one is missing")
    add("--to", metavar="FOLDER", help="the folder that gets the files")
    add("--task", action="append", metavar="NAME", help="only these (may be given several times)")
    add("--split", action="append", default=[], metavar="NAME", help="a required split")
    add("--optional", action="append", default=[], metavar="NAME", help="an optional split")
    add("--pattern", action="append", metavar="URL", help="with {task} and {split}; in this order")
    add("--sha256", action="append", default=[], metavar="FILE=DIGEST", help="of a file below --to")
    add("--workers", type=workers, default=staging.WORKERS, metavar="N", help="default %(default)s")
    return said


def workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"expected 1 to 64, found {text!r}")
    return int(text)


def document(flags: argparse.Namespace) -> Any:
    """What data.json says, with the flags instead where they are given."""
    value = staging.read_json(flags.spec) if flags.spec else {}
    if not isinstance(value, dict):
        return value
    splits = dict.fromkeys(flags.split, "required") | dict.fromkeys(flags.optional, "optional")
    sums = dict(text.partition("=")[::2] for text in flags.sha256)
    said = {"to": flags.to, "splits": splits, "patterns": flags.pattern}
    value = value | {key: given for key, given in said.items() if given}
    if sums:
        value["sha256"] = value.get("sha256", {}) | sums
    if flags.task:
        value["tasks"] = chosen(value.get("tasks"), flags.task)
    return value


def chosen(tasks: Any, names: list[str]) -> Any:
    """The named ones of the file's tasks; without such a list, those names."""
    if not isinstance(tasks, (dict, list)):
        return names
    if unknown := [name for name in names if name not in tasks]:
        raise InputError(f"no task {', '.join(unknown)}: the file has {', '.join(tasks)}")
    return {name: tasks[name] for name in names} if isinstance(tasks, dict) else names


def line(outcome: Outcome) -> str:
    name = f"{outcome.file.task} {outcome.file.split}"
    if outcome.here:
        return f"here      {name}  {outcome.here}"
    if outcome.source:
        known = (
            "size unknown"
            if outcome.source.size_bytes is None
            else size_text(outcome.source.size_bytes)
        )
        return f"found     {name}  {known}  {shown(outcome.source.url)}"
    return "\n".join([f"optional  {name}  not there; tried:", *outcome.reasons])


def total(outcomes: list[Outcome]) -> str:
    size_bytes = sum(o.source.size_bytes or 0 for o in outcomes if o.source)
    return f"nothing required is missing; {size_text(size_bytes)} to fetch"


if __name__ == "__main__":
    sys.exit(main())

"""Is this machine fit to train on several ranks? And why did that run hang?

    python -m boxcar.training.doctor [--ranks N] [--json]
    python -m boxcar.training.doctor hang FOLDER [--json]

The first looks at the machine (doctor_box.py) and runs real ranks on it (doctor_ranks.py): one line
per check, exit code 0, or 1 where one is bad. The second reads the dumps that ranks have left in
{out}/hang, here or on a laptop, and prints the diagnosis; 2 where there are none.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from boxcar.training.doctor import doctor_box, doctor_ranks
from boxcar.training.doctor.doctor_box import BAD, Row
from boxcar.training.hang import diagnosis, rank_dump


def main(words: Sequence[str] | None = None) -> int:
    """The exit code."""
    args = _arguments(words)
    if args.verb == "hang":
        return hang(args.folder, as_json=args.json)
    return machine(args.ranks, as_json=args.json)


def machine(ranks: int | None, *, as_json: bool) -> int:
    """Check this machine with `ranks` ranks; None: one for each GPU, at least two."""
    import torch

    gpus = torch.cuda.device_count()
    world = ranks or max(2, gpus)
    rows: list[Row] = []
    parts = (partial(doctor_box.rows, world), partial(doctor_ranks.rows, world, gpus))
    for part in parts:
        found = part()
        rows += found
        if not as_json:
            print("\n".join(map(line, found)), flush=True)
    is_fit = all(row.verdict != BAD for row in rows)
    if as_json:
        print(json.dumps({"is_fit": is_fit, "checks": [dataclasses.asdict(row) for row in rows]}))
    return 0 if is_fit else 1


def hang(folder: Path, *, as_json: bool) -> int:
    """The diagnosis of the dumps in `folder`, or in the hang/ below it."""
    folder = folder / "hang" if (folder / "hang").is_dir() else folder
    dumps = rank_dump.read_all(folder)
    if not dumps:
        print(f"{folder}: expected rank_00000.json and the like, found none", file=sys.stderr)
        return 2
    found = diagnosis.diagnose(dumps)
    if as_json:
        print(json.dumps({**dataclasses.asdict(found), "advice": found.advice}))
    else:
        print(diagnosis.report(found, dumps, folder))
    return 0


def line(row: Row) -> str:
    """One check for a person."""
    advice = f": {row.advice}" if row.advice else ""
    return f"{row.verdict:<4}  {row.name:<24}{row.time_s:6.2f} s  {row.what}{advice}"


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m boxcar.training.doctor", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("verb", nargs="?", choices=["hang"], help="read the dumps of a hang")
    parser.add_argument("folder", nargs="?", type=Path, help="{out}/hang, or {out}")
    parser.add_argument("--ranks", type=int, help="default: one for each GPU, at least two")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    args = parser.parse_args(words)
    if (args.verb is None) != (args.folder is None):
        parser.error("hang needs the folder with the dumps")
    if args.ranks is not None and args.ranks < 1:
        parser.error(f"--ranks should be 1 or more, found {args.ranks}")
    return args


if __name__ == "__main__":
    sys.exit(main())

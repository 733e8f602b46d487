"""`lr=0.1` in a line of a script that takes `--lr`: argparse would refuse it, on a rented box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.init.script import Script, read_script
from boxcar.laptop.project.checks.tracker_logins import own_script
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.terms import terms_of_cell
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Plan
from boxcar.shared.sentence import _

# They take key=value, though argparse may read the rest; parse_known_args leaves words to others.
_TAKE_PAIRS = frozenset({"hydra", "omegaconf"})
_LEAVE_WORDS = frozenset({"parse_known_args", "merge_from_list", "from_cli"})


def notes(code: Path, plan: Plan, lines: Sequence[CellLine], before: str = "") -> list[str]:
    """One sentence for each key of each script. `before` stands before what has to be typed."""
    scripts: dict[str, Script | None] = {}
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        command = terms_of_cell(plan, line.name, line.own).command
        for word in _bare([*command, *line.overrides[: line.judged]], len(command)):
            path = own_script(code, command)
            if path not in scripts:
                scripts[path] = _of_argparse(code, path) if path else None
            key = word.partition("=")[0]
            if flag := _flag(scripts[path], key):
                about = {"script": path, "flag": flag, "word": word}
                value = word.partition("=")[2]
                text = _(
                    "{script} takes {flag} and would refuse {word}: write {before}{flag}={value}",
                    **about,
                    before=before,
                    value=value,
                )
                found.setdefault((path, key), text)
    return list(found.values())


def _bare(words: Sequence[str], first: int) -> Iterator[str]:
    """The words `key=value` from `first`, but those behind `--opts`, which may take them."""
    is_taken = False
    for number, word in enumerate(words):
        is_pair = "=" in word and not word.startswith("-")
        if not is_pair:
            is_taken = word.startswith("-") and "=" not in word
        elif number >= first and not is_taken:
            yield word


def _of_argparse(code: Path, path: str) -> Script | None:
    """None where something else than its flags may take a word."""
    try:
        script = read_script(code, code / path)
    except InputError:
        return None
    if script is None or "argparse" not in script.reaches_imports:
        return None
    is_open = bool(_TAKE_PAIRS & script.reaches_imports or _LEAVE_WORDS & script.reaches)
    is_open |= script.is_hydra or script.reads_words or bool(script.settings)
    return None if is_open or any(flag.is_positional for flag in script.flags) else script


def _flag(script: Script | None, key: str) -> str | None:
    """How the key is typed, where it is a flag with a value."""
    names = {key, key.replace("_", "-"), key.replace("-", "_")}
    words = (flag.word for flag in script.flags if not flag.is_switch) if script else ()
    return next((word for word in words if word.startswith("--") and word[2:] in names), None)

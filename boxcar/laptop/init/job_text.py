"""A draft as the files that people read and correct: job.yaml and the first queue."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.common.home import SCHEMA_COMMENT
from boxcar.laptop.init.draft import Draft
from boxcar.laptop.init.frameworks import Kept
from boxcar.shared.files.plan import ALL, SAFE
from boxcar.shared.sentence import _, in_language, mark

# The .boxcarignore of a project: what git ignores, but for data that the script may need.


# What trainings leave beside the code.
_USUAL = ("wandb/", "runs/", "outputs/", "multirun/", "lightning_logs/", "mlruns/", "logs/")
_DATA = ("data", "dataset", "datasets", "inputs")
_MOST_BYTES, _MOST_FILES = 50_000_000, 10_000
_HEAD = mark("What is not sent to the boxes, in git's syntax. This file replaces .gitignore.")
_SENT = mark("sent, because your script may need it: {line}")


def text(root: Path, of_git: Sequence[str], language: str = "en") -> str:
    """`of_git` are the lines of .gitignore. A small folder of data is shipped whole, whatever other
    lines would keep, such as *.jpg.
    """
    names = [re.sub(r"(/\*+)?/?$", "", line.strip().lstrip("/")) for line in of_git]
    small = [name for name in _DATA if name in names and _is_small(root / name)]
    lines = [
        _comment(_(_SENT, line=line), language) if name in small else line
        for name, line in zip(names, of_git, strict=True)
    ]
    lines += [each for each in _USUAL if each[:-1] not in names and (root / each).is_dir()]
    return (
        "\n".join([_comment(_(_HEAD), language), *lines, *(f"!{name}/**" for name in small)]) + "\n"
    )


def _comment(sentence: str, language: str) -> str:
    """What a person reads in a file is in their language, line by line."""
    said = str(in_language(sentence, language))
    return "\n".join(f"# {line}" for line in said.splitlines())


def _is_small(folder: Path) -> bool:
    files = list(itertools.islice((path for path in folder.rglob("*")), _MOST_FILES))
    size_bytes = sum(path.lstat().st_size for path in files if path.is_file())
    return len(files) < _MOST_FILES and 0 < size_bytes <= _MOST_BYTES


QUEUE = "queues/queue_1.txt"
BOX = "box-a"
_PLAIN = re.compile(r"[A-Za-z0-9./_][A-Za-z0-9 ./_{}=+-]*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "~")
KEYS = (
    *("command", "workdir", "links", "launcher", "epochs", "artifacts", "collect", "metrics"),
    *("resume", "resume_args", "smoke", "env", "secrets"),
)


def job(draft: Draft, aliases: Sequence[str], language: str = "en") -> str:
    """job.yaml. `aliases` are the boxes that the person's ssh knows."""
    blocks = [
        f"{SCHEMA_COMMENT}\n{_comment(_how(draft), language)}",
        f"name: {_scalar(draft.name)}",
    ]
    for key in KEYS:
        lines = [f"# TODO: {in_language(open_, language)}" for open_ in draft.open.get(key, ())]
        if text := _value(draft, key):
            why = draft.why.get(key, "")
            lines += [_comment(why, language)] * bool(why) + [text]
        blocks += ["\n".join(lines)] * bool(lines)
    if not draft.smoke:
        why = _(
            "{script} has no known flag for a short run. If it has one, add it:",
            script=draft.script.path,
        )
        blocks.append(f"{_comment(why, language)}\n# smoke: --epochs 1")
    blocks.append("\n".join(_queues(aliases, language)))
    return "\n\n".join(blocks) + "\n"


def _how(draft: Draft) -> str:
    """A script, or the config of a program."""
    is_helped = any(not flag.line for flag in draft.script.flags)
    return _(
        mark(
            "Made by `boxcar init` from {script}, which was read; its --help was run.\n"
            "Correct what is wrong, then type: boxcar plan"
        )
        if is_helped
        else mark(
            "Made by `boxcar init` from {script}, which was read and not run.\n"
            "Correct what is wrong, then type: boxcar plan"
        ),
        script=draft.script.path,
    )


def queue(draft: Draft, language: str = "en") -> str:
    """The first queue file."""
    head = _(
        "One cell a line: <config> <task> [epochs] [words for the script]; - means no config.\n"
        "To make many: boxcar grid"
    )
    return "\n".join([_comment(head, language), *draft.lines, ""])


def values(draft: Draft) -> list[tuple[str, str]]:
    """The keys that the draft says something of, and what, each in one line."""
    found = [(key, _value(draft, key).partition(":")[2]) for key in KEYS]
    return [(key, re.sub(r"\n  (- )?", ", ", text).strip(" ,")) for key, text in found if text]


def _value(draft: Draft, key: str) -> str:
    """`key: value` as YAML; '' where the draft says nothing of it."""
    if key == "command":
        return f"command: {_scalar(' '.join(draft.words))}"
    if key == "artifacts" and not draft.artifacts:
        return "artifacts: []"
    if key == "artifacts":
        return "artifacts:\n" + "\n".join(f"  - {_artifact(kept)}" for kept in draft.artifacts)
    if key == "metrics":
        lines = [f"  {one.yaml}" for one in draft.metrics]
        return "\n".join(["metrics:", *lines]) if lines else ""
    if key == "env":
        lines = [f"  {name}: {_quoted(value)}" for name, value in draft.env]
        return "\n".join(["env:", *lines]) if lines else ""
    value = getattr(draft, key, None)
    if isinstance(value, tuple):
        return f"{key}: [{', '.join(map(_scalar, value))}]" if value else ""
    if value in (None, "") or (key, value) == ("workdir", "code"):
        return ""
    return f"{key}: {_scalar(value) if isinstance(value, str) else value}"


def _artifact(kept: Kept) -> str:
    more = [f"take: {kept.take}"] if kept.take != ALL else []
    more += [f"load: {kept.load}"] if kept.load != SAFE else []
    whole = ", ".join([f"path: {_quoted(kept.path)}", *more])
    return f"{{{whole}}}" if more else _scalar(kept.path)


def _queues(aliases: Sequence[str], language: str) -> Iterator[str]:
    what = _(
        "Each queue file runs on one box. With --profile local a box is a folder of this\n"
        "machine, else the name of a rented one in ~/.ssh/config (--profile ssh, autodl, ...)."
    )
    yield _comment(what, language)
    if aliases:
        yield _comment(_("Yours: {names}", names=", ".join(aliases[:10])), language)
    yield "queues:"
    yield f"  {QUEUE}: {BOX}"


def _scalar(text: str) -> str:
    """Plain where nobody could read it as something else."""
    is_plain = bool(_PLAIN.fullmatch(text)) and text.lower() not in _WORDS and text[-1] != " "
    return text if is_plain and not _is_number(text) else _quoted(text)


def _quoted(text: str) -> str:
    # JSON's strings are YAML's as well.
    return json.dumps(text, ensure_ascii=False)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+0-9._eExX]+", text))

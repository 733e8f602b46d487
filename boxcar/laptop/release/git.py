"""What git says of a folder: its files, its commit, and how it differs from that.

Reads only. A folder that git does not look after (no git, no repository, or ignored there) is none
of git's business; any other failure of git is said, with its own words.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _

# A git hook that calls Boxcar hands these on, and git would look at its repository only.
_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
# A patch that `git apply` takes, whatever the user's own git is set to.
_PLAIN = ("--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
_SETTINGS = ("diff.relative=false", "diff.noprefix=false", "diff.mnemonicPrefix=false")
# A command line has an upper limit.
_NAMES_PER_CALL = 1000


def looks_after(folder: Path) -> bool:
    """Whether `folder` lies in a work tree that does not ignore it."""
    try:
        answer = _run(folder, "rev-parse", "--is-inside-work-tree")
    except FileNotFoundError:
        return False  # no git on this machine
    if answer.returncode and b"not a git repository" not in answer.stderr:
        raise _failed(folder, answer)
    if answer.stdout.strip() != b"true":
        return False
    return _run(folder, "check-ignore", "--quiet", ".").returncode != 0


def files(folder: Path, is_left_out: Callable[[str], bool]) -> dict[str, bool]:
    """Every file below `folder` that is there and not ignored -> whether git tracks it.

    Nested repositories and submodules are entered, but for those that are left out, by `name/`.
    Raises InputError.
    """
    others = _names(folder, "ls-files", "-z", "--others", "--exclude-standard")
    tracked = set(_names(folder, "ls-files", "-z", "--cached"))
    found: dict[str, bool] = {}
    for name in (*others, *sorted(tracked)):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            if not is_left_out(inner := f"{name.rstrip('/')}/"):
                found |= _nested(path, inner, is_left_out, is_tracked=name in tracked)
        elif os.path.lexists(path):
            found[name] = name in tracked
    return found


def commit(folder: Path) -> str | None:
    """The commit that is checked out; None before the first one."""
    head = _run(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    return head.stdout.decode().strip() or None


def changed(folder: Path) -> list[str]:
    """The tracked files below `folder` that differ from the commit, deleted ones too."""
    return _names(folder, "diff", "--name-only", "-z", "--relative", *_PLAIN, "HEAD")


def patch(folder: Path, names: Sequence[str]) -> bytes:
    """How these files differ from the commit, as `git apply` takes it."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = (*settings, "--literal-pathspecs", "diff", *_PLAIN, "HEAD", "--")
    return b"".join(
        _output(folder, *command, *names[start : start + _NAMES_PER_CALL])
        for start in range(0, len(names), _NAMES_PER_CALL)
    )


def ignored_by(folder: Path, name: str) -> str:
    """The rule by which git ignores a file or folder, as `.gitignore:3 (*.bin)`; '' for none."""
    answer = _run(folder, "check-ignore", "--verbose", "--", name)
    rule = os.fsdecode(answer.stdout).partition("\t")[0]
    source, _, rest = rule.partition(":")
    line, _, pattern = rest.partition(":")
    return f"{source}:{line} ({pattern})" if pattern else ""


def _nested(
    path: Path, inner: str, is_left_out: Callable[[str], bool], *, is_tracked: bool
) -> dict[str, bool]:
    if not (path / ".git").exists():
        raise InputError(
            _(
                "{path}: the git submodule is not checked out. Type: git submodule update --init, "
                "or add it to .boxcarignore (it replaces .gitignore)",
                path=path,
            )
        )
    found = files(path, lambda name: is_left_out(inner + name))
    return {inner + name: is_tracked and its for name, its in found.items()}


def _names(folder: Path, *words: str) -> list[str]:
    return [os.fsdecode(name) for name in _output(folder, *words).split(b"\0") if name]


def _output(folder: Path, *words: str) -> bytes:
    done = _run(folder, *words)
    if done.returncode:
        raise _failed(folder, done)
    return done.stdout


def _failed(folder: Path, done: subprocess.CompletedProcess[bytes]) -> InputError:
    return InputError(
        _(
            "{folder}: git, which is asked which files are code, says: {said}. To try it yourself, "
            "type: git -C {quoted} status",
            folder=folder,
            quoted=shlex.quote(str(folder)),
            said=done.stderr.decode(errors="replace").strip(),
        )
    )


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: text for name, text in os.environ.items() if name not in _PLACES}
    return subprocess.run(
        ["git", *words],
        cwd=folder,
        env=environment | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )

"""Which files of the user's code travel, and where they came from.

With a `.boxcarignore` (gitignore syntax) all that it does not name; else in a git repository what
git does not ignore; else all that a `.gitignore` does not name. Repositories, caches, Boxcar's own
folders and `.env` never travel. More than code ever is gets refused, and the largest parts named.
Not covered: empty folders are not shipped, and without git a `.gitignore` in a subfolder is not
read.
"""

from __future__ import annotations

import itertools
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.common import home
from boxcar.laptop.common.units import size
from boxcar.laptop.project import data_of_job
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import git
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import InputError, reason_of
from boxcar.shared.files.release import Code
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, said_by

if TYPE_CHECKING:
    import pathspec


# Whether what would be shipped is still code, or a data set that nobody meant to send. Pure.
#
# Every release is a whole copy: sent, read back and compared on the durable tier, and staged on
# each box. On rented tiers inodes run out first (200,000 are usual), and ten releases of a run are
# nothing rare.


MOST_BYTES = 200 * 10**6
MOST_FILES = 20_000
# So many names are enough to say where they lie; a million are never looked at one by one.
MOST_LOOKED_AT = 2 * MOST_FILES
_NAMED = 3


def size_problem(sizes_bytes: Sequence[tuple[str, int]]) -> str:
    """Why these files, by name and size, are too much, with the largest parts; '' where not."""
    count, total_bytes = len(sizes_bytes), sum(size_bytes for _, size_bytes in sizes_bytes)
    if count <= MOST_FILES and total_bytes <= MOST_BYTES:
        return ""
    if count > MOST_FILES:
        many = (
            _("{most_looked_at} files or more", most_looked_at=MOST_LOOKED_AT)
            if count >= MOST_LOOKED_AT
            else f"{count} files"
        )
        parts = _folders([(name, 1) for name, _ in sizes_bytes])
        named = ", ".join(f"{name} ({files} files)" for name, files in parts)
        return _(
            "{many} would be sent as code; the limit is {most_files}: {named}",
            many=many,
            most_files=MOST_FILES,
            named=named,
        )
    parts = [*_folders(sizes_bytes), *Counter(dict(sizes_bytes)).most_common(_NAMED)]
    named = ", ".join(f"{name} ({size(size_bytes)})" for name, size_bytes in dict(parts).items())
    return _(
        "{size} would be sent as code; the limit is {limit}. The largest folders and files: "
        "{named}",
        size=size(total_bytes),
        limit=size(MOST_BYTES),
        named=named,
    )


def _folders(amounts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The folders, two levels deep, that hold the most. What lies at the top is in none."""
    totals: Counter[str] = Counter()
    for name, amount in amounts:
        folders = name.split("/")[:-1][:2]
        totals["/".join([*folders, ""]) if folders else "./"] += amount
    return totals.most_common(_NAMED)


DIFF = "code.diff"
BOXCARIGNORE = ".boxcarignore"
SECRETS = ".env"
NEVER = frozenset(
    {".git", ".hg", ".svn", home.FOLDER, ".venv", SECRETS, ".DS_Store", "__pycache__"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
)
_LEAVE_IT_OUT = _(
    "to leave it out, add it to {boxcarignore} (it replaces .gitignore)",
    boxcarignore=BOXCARIGNORE,
)


@dataclass(frozen=True)
class CodeFile:
    """`path` is the name below the code folder; `source` is a regular file, never a link."""

    path: str
    source: Path

    @property
    def is_executable(self) -> bool:
        return bool(self.source.stat().st_mode & 0o100)


@dataclass(frozen=True)
class Snapshot:
    """`diff` is the content of the file that `code.diff` names; `withheld` are the `.env` files."""

    files: tuple[CodeFile, ...]
    code: Code
    diff: bytes | None
    withheld: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [file.path for file in self.files]


@dataclass(frozen=True)
class _Rules:
    """What is left out of a folder: by the ignore file, and by Boxcar."""

    folder: Path
    ignored: pathspec.GitIgnoreSpec

    def leave_out(self, path: str) -> bool:
        return self.never(path) or self.ignored.match_file(path)

    def never(self, path: str) -> bool:
        parts = path.rstrip("/").split("/")
        if not NEVER.isdisjoint(parts) or path.endswith(".pyc"):
            return True
        # `results` is Boxcar's own at the top, and beside the .boxcar of a project further down.
        return any(
            part == "results" and (depth == 0 or self._is_project(parts[:depth]))
            for depth, part in enumerate(parts)
        )

    def _is_project(self, parts: list[str]) -> bool:
        return self.folder.joinpath(*parts, home.FOLDER).is_dir()


def take_snapshot(code_dir: Path, data: Collection[str] = ()) -> Snapshot:
    """Find the files to ship. `data` are folders below it that travel as data, and not as code.

    Raises InputError that lists every file that cannot be shipped.
    """
    folder = Path(os.path.realpath(code_dir))
    if not folder.is_dir():
        raise InputError(_("{code_dir}: no such code folder", code_dir=code_dir))
    is_in_git, has_own = git.looks_after(folder), (folder / BOXCARIGNORE).exists()
    rules = _rules(folder, is_in_git=is_in_git)
    in_git = git.files(folder, rules.leave_out) if is_in_git else None
    listed = list(_walk(rules) if in_git is None or has_own else in_git)
    heads = tuple(f"{one}/" for one in data)
    listed = [name for name in listed if not name.startswith(heads)]
    names = _names(rules, listed)
    files = _code_files(rules, names)
    _refuse_too_much(rules, [(file.path, file.source.stat().st_size) for file in files])
    if not files:
        raise InputError(
            _(
                "{code_dir}: no file of the code folder would be sent. Check {boxcarignore}; "
                "without one, git or .gitignore decides",
                code_dir=code_dir,
                boxcarignore=BOXCARIGNORE,
            )
        )
    code, diff = _provenance(rules, names, in_git)
    return Snapshot(files, code, diff, _withheld(rules, listed))


def snapshot_of(project: Project) -> Snapshot:
    """The code of a project. Raises as `take_snapshot` does."""
    data = data_of_job.in_code(project.root, project.job)
    return take_snapshot(project.root / project.job.code, data)


def never_shipped(folder: Path) -> Callable[[str], bool]:
    """Whether Boxcar itself leaves a file or folder below it out, whatever the rules say."""
    return _Rules(folder, _patterns([])).never


def left_out_by(code_dir: Path, path: str) -> str:
    """What keeps a file or folder below the code folder from being shipped: `.gitignore:3 (*.bin)`.

    '' where nothing does. Raises InputError.
    """
    folder = Path(os.path.realpath(code_dir))
    own = folder / BOXCARIGNORE
    file = own if own.exists() else folder / ".gitignore"
    patterns = _read_patterns(file)
    if _Rules(folder, patterns).never(path):
        return "Boxcar itself"
    if git.looks_after(folder) and not own.exists():
        return git.ignored_by(folder, path)
    found = patterns.check_file(f"{path}/" if (folder / path).is_dir() else path)
    if not found.include or found.index is None:
        return ""
    # pathspec counts no empty lines.
    lines = text_of(file).split("\n")
    number, line = [(at, line) for at, line in enumerate(lines, 1) if line][found.index]
    return f"{file.name}:{number} ({line.strip()})"


def _rules(folder: Path, *, is_in_git: bool) -> _Rules:
    own = folder / BOXCARIGNORE
    if is_in_git and not own.exists():
        return _Rules(folder, _patterns([]))  # git has applied its own
    return _Rules(folder, _read_patterns(own if own.exists() else folder / ".gitignore"))


def _names(rules: _Rules, listed: Sequence[str]) -> list[str]:
    """What is shipped by the rules."""
    kept = (name for name in listed if not rules.leave_out(name))
    names = sorted(itertools.islice(kept, MOST_LOOKED_AT))
    _refuse_too_much(rules, [(name, 0) for name in names])
    return names


def _refuse_too_much(rules: _Rules, sizes_bytes: Sequence[tuple[str, int]]) -> None:
    if problem := size_problem(sizes_bytes):
        raise InputError(
            _(
                "{folder}: {problem}. Every release is a full copy; put data and checkpoints on "
                "the box's own disk. {leave_it_out} (start from a copy of it)",
                folder=rules.folder,
                problem=problem,
                leave_it_out=_LEAVE_IT_OUT.capitalize(),
            )
        )


def text_of(ignore_file: Path) -> str:
    """'' where it is not there. Raises InputError for what cannot be read."""
    try:
        with regular_file.open_followed(ignore_file) as file:
            return file.read().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else said_by(error)
        raise InputError(_("{head}: {text}", head=ignore_file, text=why)) from error


def _read_patterns(ignore_file: Path) -> pathspec.GitIgnoreSpec:
    try:
        return _patterns(text_of(ignore_file).split("\n"))
    except ValueError as error:
        raise InputError(_("{head}: {text}", head=ignore_file, text=error)) from error


def _patterns(lines: Sequence[str]) -> pathspec.GitIgnoreSpec:
    # Late: verbs that make no release must not wait for it.
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(lines)


def _walk(rules: _Rules) -> Iterator[str]:
    """Every file and link below the folder, without looking into what is left out."""
    for at, folders, names in os.walk(rules.folder, onerror=_refuse):
        here = Path(at).relative_to(rules.folder)
        kept = [name for name in folders if not rules.leave_out(f"{(here / name).as_posix()}/")]
        links = [name for name in kept if (Path(at) / name).is_symlink()]
        folders[:] = [name for name in kept if name not in links]
        yield from ((here / name).as_posix() for name in (*links, *names))


def _refuse(error: OSError) -> None:
    raise InputError(
        _(
            "{path}: {why}; {leave_it_out}",
            path=error.filename,
            why=reason_of(error),
            leave_it_out=_LEAVE_IT_OUT,
        )
    ) from error


def _withheld(rules: _Rules, listed: Sequence[str]) -> tuple[str, ...]:
    """The `.env` files that no rule of the user's leaves out: somebody may miss them on the box."""
    named = (name for name in listed if name.rpartition("/")[2] == SECRETS)
    return tuple(sorted(name for name in named if not rules.ignored.match_file(name)))


def _code_files(rules: _Rules, names: Sequence[str]) -> tuple[CodeFile, ...]:
    sources: dict[str, Path] = {}
    linked_folders: dict[str, Path] = {}
    problems: list[str] = []
    for name in names:
        try:
            source = _source(rules, name)
        except ValueError as error:
            problems.append(
                _("{folder}: {name!r} {why}", folder=rules.folder, name=name, why=error)
            )
        else:
            (linked_folders if source.is_dir() else sources)[name] = source
    problems += _nested_links(rules, linked_folders)
    if problems:
        raise InputError(problems)
    for link, target in linked_folders.items():
        head = _inside(rules, target)
        sources |= {
            f"{link}/{name.removeprefix(head)}": source
            for name, source in sources.items()
            if name.startswith(head)
        }
    return tuple(CodeFile(name, sources[name]) for name in sorted(sources))


def _source(rules: _Rules, name: str) -> Path:
    """The file that `name` is, or the file or folder that it links to. Raises ValueError."""
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise ValueError(_("is not UTF-8 or has a control character; rename it"))
    path = rules.folder / name
    source = Path(os.path.realpath(path))
    if path.is_symlink():
        _check_target(rules, source)
    if not source.is_file() and not source.is_dir():
        raise ValueError(_("is not a regular file; {leave_it_out}", leave_it_out=_LEAVE_IT_OUT))
    if not os.access(source, os.R_OK):
        raise ValueError(_("cannot be read; {leave_it_out}", leave_it_out=_LEAVE_IT_OUT))
    return source


def _check_target(rules: _Rules, target: Path) -> None:
    if not target.is_relative_to(rules.folder):
        raise ValueError(
            _(
                "links to {target}, outside the code folder; {leave_it_out}",
                target=target,
                leave_it_out=_LEAVE_IT_OUT,
            )
        )
    if not target.exists():
        raise ValueError(
            _(
                "links to {target}, which does not exist; {leave_it_out}",
                target=target,
                leave_it_out=_LEAVE_IT_OUT,
            )
        )
    if rules.never(target.relative_to(rules.folder).as_posix()):
        raise ValueError(
            _(
                "links to {target}, which is never sent; {leave_it_out}",
                target=target,
                leave_it_out=_LEAVE_IT_OUT,
            )
        )


def _nested_links(rules: _Rules, linked_folders: dict[str, Path]) -> Iterator[str]:
    """A link inside what another one points to could go round in a circle."""
    for link, target in linked_folders.items():
        for other in linked_folders:
            if other.startswith(_inside(rules, target)):
                yield (
                    _(
                        "{folder}: {link!r} links to a folder that holds {other!r}, another link "
                        "to a folder; {leave_it_out}",
                        folder=rules.folder,
                        link=link,
                        other=other,
                        leave_it_out=_LEAVE_IT_OUT,
                    )
                )


def _inside(rules: _Rules, target: Path) -> str:
    """How the names of files in `target` begin."""
    return "" if target == rules.folder else f"{target.relative_to(rules.folder).as_posix()}/"


def _provenance(
    rules: _Rules, names: Sequence[str], in_git: dict[str, bool] | None
) -> tuple[Code, bytes | None]:
    """The commit, and how what is shipped differs from it, for people to read."""
    if in_git is None:
        return Code(None, is_dirty=False), None
    commit = git.commit(rules.folder)
    if commit is None:
        return Code(None, is_dirty=True), None
    # A file that is left out must not travel as a patch either.
    changed = [name for name in git.changed(rules.folder) if not rules.leave_out(name)]
    untracked = [name for name in names if not in_git.get(name)]
    if not changed and not untracked:
        return Code(commit, is_dirty=False), None
    lines = [f"# what was shipped, against commit {commit}"]
    lines += [f"# shipped, and not in git: {name}" for name in untracked]
    diff = "\n".join([*lines, ""]).encode() + git.patch(rules.folder, changed)
    return Code(commit, is_dirty=True, diff=DIFF), diff

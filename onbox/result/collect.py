"""What the job's `collect` brings along of a cell: a tracker's offline logs, and what is left out.

Nothing here fails a cell. A link is followed only where it ends inside {out}, and what it leads to
is taken once. What may hold a secret is left out, and so is what is over the bounds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.artifacts import resume_match
from boxcar.shared.disk import regular_file
from boxcar.shared.disk.digest import BLOCK_BYTES
from boxcar.shared.disk.proven_folder import shown
from boxcar.shared.errors import DamagedError, reason_of, some
from boxcar.shared.process import strays
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from onbox.result import beside, left, left_artifacts

MOST_BYTES = 1024**3
# Each is a line of the manifest, and two writes to the tier.
MOST_FILES = 10_000
SECRET = _("may hold a secret")
NOT_OURS = _("not a file of this cell")
TOO_MUCH = _("over the bound of 1 GiB a cell")
TOO_MANY = _("over the bound of {n:,} files a cell", n=MOST_FILES)
_MOST_NAMED = 10


@dataclass(frozen=True)
class Collected:
    """`files` are where the bytes are, by the name below {out}; `left_out` are names, by why."""

    files: dict[str, Path] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, why: str, name: str) -> None:
        self.left_out.setdefault(why, []).append(name)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was left out, for the manifest."""
        return tuple(
            _("{head}: {text}", head=why, text=some(map(shown, names), _MOST_NAMED))
            for why, names in self.left_out.items()
        )


def is_loss(sentence: str) -> bool:
    """Whether a person may miss what was left out: of a secret they are glad, and wandb itself has
    a link into its cache.
    """
    return not sentence.startswith((SECRET, NOT_OURS))


def look(
    out: Path,
    wanted: Sequence[str],
    published: Collection[str],
    *,
    cell: str = "",
    links: Collection[str] = (),
    secrets: Iterable[str] = (),
    most_bytes: int = MOST_BYTES,
    most_files: int = MOST_FILES,
) -> Collected:
    """What is there of these below `out` of the cell. `published` are names that are taken
    already, `links` those that the job has put there, `secrets` values that may stand in no file.
    """
    found, values = Collected(), long_enough(secrets)
    if left.is_elsewhere(out):
        found.leave_out(NOT_OURS, _("{{out}} is a link by now"))
        return found
    size_bytes = 0
    # Its log is published, and one of that name in {out} is another file.
    taken = set(published) - {f"{cell}.log"}
    for name, path in _files(out, wanted, taken, found, links):
        is_ours = paths.is_own_name(name, cell)
        why = paths.OWN_NAME if is_ours else _refusal(name, path, values)
        own_bytes = _size_bytes(path)
        if not why and len(found.files) >= most_files:
            why = TOO_MANY
        if not why and size_bytes + own_bytes > most_bytes:
            why = TOO_MUCH
        if why:
            found.leave_out(why, name)
        else:
            found.files[name] = path
            size_bytes += own_bytes
    return found


def _files(
    out: Path, wanted: Sequence[str], taken: set[str], found: Collected, links: Collection[str]
) -> Iterator[tuple[str, Path]]:
    """Each file once, in the order of `wanted` and then of the names."""
    real_out = Path(os.path.realpath(out))
    for files in _by_wanted(out, wanted, found, links):
        for name, path in sorted(files.items()):
            real = path.relative_to(real_out).as_posix()
            is_a_link_to_another = real != name and (real in files or real in taken)
            if name not in taken and not is_a_link_to_another:
                taken.add(name)
                yield name, path


def _by_wanted(
    out: Path, wanted: Sequence[str], found: Collected, links: Collection[str]
) -> Iterator[dict[str, Path]]:
    for one in wanted:
        is_pattern = resume_match.is_pattern(one)
        names = left_artifacts.of_pattern(out, one, links) if is_pattern else (one.rstrip("/"),)
        files: dict[str, Path] = {}
        for name in names:
            there = left.look_at_all(out, name)
            files |= there.files
            for sentence in (*there.problems, *there.left_out):
                found.leave_out(NOT_OURS, sentence.replace(os.path.realpath(out), "{out}"))
        yield files


def _refusal(name: str, path: Path, values: Sequence[bytes]) -> str:
    if is_secret_by_name(name):
        return SECRET
    try:
        paths.inside(Path(), name)
        return SECRET if holds_any(path, values) else ""
    except (OSError, DamagedError) as error:
        is_named = isinstance(error, DamagedError)
        why = _("a name of no file") if is_named else reason_of(error)
        return _("cannot be read ({why})", why=why)


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- What the job collects and a tracker wrote beside the code: moved into {out}, after each
# attempt. Most trackers write into the folder in which the script was started. There the next
# attempt would not find it, and `collect` would bring home that of the last one alone.


def move(code: Path, added: Sequence[str], wanted: Sequence[str], out: Path) -> bool:
    """Of what was `added` below `code` all that is wanted, to the same place below `out`; whether
    there was any. Nothing in `out` is overwritten. May be done again. Raises OSError.
    """
    names = [name for one in added for name in _wanted_of(code, one.rstrip("/"), wanted)]
    # A link that a script put in the way would lead the move out of {out}.
    names = [name for name in names if not paths.has_symlink(out, str(Path(name).parent))]
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        _merge(code / name, out / name)
    return bool(names)


def _wanted_of(code: Path, added: str, wanted: Sequence[str]) -> list[str]:
    """The whole of what was added, or what is wanted in it."""
    if strays.is_of(added, wanted):
        return [added]
    names = [name for one in wanted for name in _there(code, one)]
    return [name for name in dict.fromkeys(names) if name.startswith(f"{added}/")]


def _there(code: Path, wanted: str) -> Sequence[str]:
    if resume_match.is_pattern(wanted):
        return left_artifacts.of_pattern(code, wanted)
    name = wanted.rstrip("/")
    return [name] if (code / name).exists() and not paths.has_symlink(code, name) else []


def _merge(source: Path, target: Path) -> None:
    if not (_is_folder(source) and _is_folder(target)):
        beside.rename(source, beside.free(target))
        return
    for path in list(source.iterdir()):
        _merge(path, target / path.name)
    with contextlib.suppress(OSError):
        source.rmdir()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


# --- Files that may hold a secret: by their names, or because a secret of this run stands in them.
# Trackers leave settings, and scripts dump their environment, beside logs that somebody will show.

# In the spelling of fnmatch, in lower case; with its folder where a name alone says too little.
_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", "env.txt", "env.json", "environ", "environ.*"),
    *("environment.txt", "environment.json", "printenv*", "*.netrc", "_netrc", ".git-credentials"),
    *("credentials", "credentials.*", "secrets", "secrets.*", "*.pem", "*.key"),
    *("id_rsa", "id_ecdsa", "id_ed25519", ".pypirc", ".huggingface_token", "wandb/settings"),
)
# A shorter value is found in files that have nothing to do with it.
SHORTEST_BYTES = 8


def is_secret_by_name(path: str) -> bool:
    """Whether a file of this path is one of those in which secrets are kept."""
    whole = f"/{path.casefold()}"
    return any(fnmatchcase(whole, f"*/{name}") for name in _NAMES)


def long_enough(values: Iterable[str]) -> list[bytes]:
    """Those that are looked for in files."""
    return [data for value in values if len(data := value.encode()) >= SHORTEST_BYTES]


def holds_any(path: Path, values: Sequence[bytes]) -> bool:
    """Whether one of these stands in the file. Raises OSError."""
    overlap = max(map(len, values), default=1) - 1
    if not values:
        return False
    with regular_file.open_at(path) as file:
        end = b""
        while block := file.read(BLOCK_BYTES):
            if any(value in end + block for value in values):
                return True
            end = (end + block)[-overlap:] if overlap else b""
    return False

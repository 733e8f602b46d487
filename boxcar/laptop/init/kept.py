"""What a finished cell of a script leaves: what the script saves, or what it reaches does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from boxcar.laptop.init import command
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.frameworks import Framework, Kept
from boxcar.laptop.init.paths import ANY
from boxcar.laptop.init.saves import Saved
from boxcar.laptop.init.script import Script
from boxcar.shared.files.plan import ALL, NEWEST, SAFE, TRUSTED
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_PICKLES = (".pkl", ".pickle", ".joblib")
_MOST = 6
# What is mostly written beside a training, or by another run of the script.
_ASIDE = re.compile(r"(?i)(^|/)(eval|test|predict|sample|debug)")


@dataclass(frozen=True)
class Found:
    """`saved` is what the project's own code saves;
    `open` says of what nobody saw where it lies.
    """

    saved: tuple[Saved, ...]
    artifacts: tuple[Kept, ...]
    why: str
    open: tuple[str, ...] = ()


def kept_files(script: Script, known: Framework, place: Flag | None) -> Found:
    """`place` is the flag that says where to write."""
    saved = _below(script.saves, place)
    if known.artifacts:
        return Found(saved, known.artifacts, known.artifacts_why)
    if place and (name := command.file_of(place)):
        return Found(
            saved,
            (Kept(name),),
            _("the file named by {word} ({at})", word=place.word, at=place.where),
        )
    if saved:
        at = ", ".join(dict.fromkeys(f"{each.file}:{each.line}" for each in saved))
        unsure = [each for each in saved if not _is_sure(each, place)]
        said = [
            _(
                "is {name} directly in the cell's folder? The start of its path is not in the "
                "source ({at}). smoke shows it",
                name=each.name,
                at=f"{each.file}, line {each.line}",
            )
            for each in unsure
        ]
        open_ = (*said, *_unseen(script, saved))
        return Found(saved, tuple(map(_kept, saved)), _("saved at {at}", at=at), open_)
    named = (
        _(
            "under which name is the model saved ({at})? It is not in the source. smoke shows it",
            at=script.unnamed[0],
        )
        if script.unnamed
        else ""
    )
    unknown = named or _(
        "what does {script} save? Its source does not say. smoke shows it; write the name here",
        script=script.path,
    )
    return Found((), (Kept(ANY),), "", (unknown,))


def _below(saved: tuple[Saved, ...], place: Flag | None) -> tuple[Saved, ...]:
    """Where a script is told to write, what it is seen to save there; else all, those first that
    the script names in whole.
    """
    told = tuple(each for each in saved if place and each.root == place.key.rpartition(".")[2])
    is_told = any(each.is_checkpoint for each in told)
    found = told if is_told else tuple(each for each in saved if each.name != ANY)
    found = tuple(each for each in found if not _ASIDE.search(each.name)) or found
    return tuple(sorted(found, key=lambda each: not each.is_checkpoint))[:_MOST]


def _unseen(script: Script, saved: Sequence[Saved]) -> Iterator[str]:
    """Where more is saved than was seen: under another name, or by what is imported by a name."""
    if any(each.is_torchs for each in saved):
        return
    if script.unnamed:
        yield _(
            "under which name is the model saved ({at})? It is not in the source. smoke shows it",
            at=script.unnamed[0],
        )
    elif "import_module" in script.reaches or script.is_cut:
        yield _(
            "what does {script} save? Its source does not say. smoke shows it; write the name here",
            script=script.path,
        )


def _is_sure(saved: Saved, place: Flag | None) -> bool:
    if saved.name.startswith(("*.", "*/*.")) and saved.root:
        return False
    return saved.is_in_cwd or (place is not None and saved.root == place.key.rpartition(".")[2])


def _kept(saved: Saved) -> Kept:
    # Estimators and the like are objects of a library: only code that is trusted loads them.
    load = TRUSTED if saved.name.lower().endswith(_PICKLES) else SAFE
    if ANY not in saved.name:
        return Kept(saved.name.rstrip("/"), load=load)
    return Kept(saved.name, NEWEST if saved.is_checkpoint else ALL, load)

"""`boxcar --help` and `boxcar VERB --help`, in the person's language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from boxcar.door.examples import EXAMPLES, FREE_WORDS
from boxcar.door.flags import Flag
from boxcar.laptop.common.text_layout import wrap_text
from boxcar.shared.catalogue.sentence import Sentence

# In the order of a run. A verb that stands in none is among the others.
GROUPS = {
    "begin": ("init", "demo", "plan", "smoke", "rehearse", "grid", "split"),
    "run": ("push", "launch", "move", "drain", "stop"),
    "look": (
        "status",
        "watch",
        "board",
        "tb",
        "logs",
        "explain",
        "triage",
        "runs",
        "audit",
        "notify",
        "listen",
    ),
    "home": ("pull", "verify", "report", "export", "repair"),
    "end": ("down",),
}
NOTES = ("where", "more", "tab")
_LEAST_TEXT = 30  # columns; below it a terminal is too narrow for names and texts side by side
_GAP = 2


def of_all(verbs: Collection[str], language: str, width: int) -> str:
    """All verbs by what they are for, each in a line of 80 columns."""
    grouped = {verb for names in GROUPS.values() for verb in names}
    parts = GROUPS | {"other": tuple(sorted(verb for verb in verbs if verb not in grouped))}
    lines = [_said("usage", language)]
    for group, names in parts.items():
        rows = [(verb, _said(f"line.{verb}", language)) for verb in names if verb in verbs]
        if rows:
            lines += ["", _said(group, language), *_side_by_side(rows, verbs, width)]
    notes = [line for note in NOTES for line in wrap_text(_said(note, language), width)]
    return "\n".join([*lines, "", *notes])


def of_verb(verb: str, flags: Sequence[Flag], language: str, width: int) -> str:
    """What it does, its flags, and commands to copy."""
    usage = Sentence("help.one_verb", verb=f"{verb} {FREE_WORDS.get(verb, '')}".rstrip())
    lines = [usage.said(language), "", *wrap_text(verb_text(verb).said(language), width)]
    if flags:
        rows = [(flag.spelled, _flag_text(flag, language)) for flag in flags]
        names = [name for name, _ in rows]
        lines += ["", _said("flags", language), *_side_by_side(rows, names, width)]
    lines += ["", _said("examples", language)]
    return "\n".join([*lines, *(f"  boxcar {words}" for words in EXAMPLES[verb])])


def verb_text(verb: str) -> Sentence:
    """What a verb does. Raises KeyError for one that the catalogue does not know."""
    return Sentence(f"help.verb.{verb}")


def _side_by_side(
    rows: Iterable[tuple[str, str]], names: Collection[str], width: int
) -> Iterator[str]:
    """Each name with its text behind it; below it where there is no room behind."""
    indent = max(map(len, names)) + 2 * _GAP
    if width - indent < _LEAST_TEXT:
        indent = 2 * _GAP
    for name, text in rows:
        first, *more = wrap_text(text, width - indent)
        if len(name) + 2 * _GAP > indent:
            yield f"{'':{_GAP}}{name}"
            yield f"{'':{indent}}{first}"
        else:
            yield f"{'':{_GAP}}{name:<{indent - _GAP}}{first}"
        yield from (f"{'':{indent}}{line}" for line in more)


def _flag_text(flag: Flag, language: str) -> str:
    text = flag.text.said(language)
    joint = {"en": "; ", "zh": "；"}[language]
    return f"{text}{joint}{_said('again', language)}" if flag.is_repeatable else text


def _said(name: str, language: str) -> str:
    return Sentence(f"help.{name}").said(language)

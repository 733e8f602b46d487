"""`boxcar --help` and `boxcar VERB --help`, in the person's language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from boxcar.door import help_texts
from boxcar.door.verb_table import (
    EVERYDAY,
    FIRST,
    GROUPS,
    JOB,
    JSON,
    MANY,
    OPTIONAL,
    PROFILE,
    REST,
    VERBS,
    Flag,
    Verb,
)
from boxcar.laptop.common.text_layout import wrap_text
from boxcar.shared.sentence import Sentence, _, in_language, mark
from boxcar.shared.text_width import width_in_cells

NOTES = (
    mark("New here? Try boxcar demo, then boxcar init in your code's folder."),
    mark("Flags and examples of a verb: boxcar VERB --help"),
    mark("Tab completion: boxcar --print-completion-script=bash (or zsh, fish)"),
)
_LEAST_TEXT = 30  # columns; below it a terminal is too narrow for names and texts side by side
_GAP = 2
_JOINT = {"en": "; ", "zh": "；"}


def help_of_all(language: str, width: int) -> str:
    """The verbs of every day with what they do, the others by name: a screen of 24 lines."""
    texts = {v: Sentence(help_texts.SHORTER.get(v, help_texts.VERBS[v])) for v in EVERYDAY}
    everyday = [(verb, in_language(text, language)) for verb, text in texts.items()]
    lines = [
        _("usage: boxcar VERB [flags]").said(language),
        "",
        *_side_by_side(everyday, EVERYDAY, width),
        "",
    ]
    titles = {group: Sentence(help_texts.GROUPS[group]).said(language) for group in GROUPS}
    widest = max(map(width_in_cells, titles.values()))
    for group, title in titles.items():
        names = [v.name for v in VERBS.values() if v.group == group and v.name not in EVERYDAY]
        indent = widest + 2 * _GAP
        first, *more = wrap_text(", ".join(names), max(width - indent, _LEAST_TEXT)) or [""]
        if names:
            lines.append(f"{'':{_GAP}}{title}{'':{indent - _GAP - width_in_cells(title)}}{first}")
            lines += [f"{'':{indent}}{line}" for line in more]
    notes = [line for note in NOTES for line in wrap_text(Sentence(note).said(language), width)]
    return "\n".join([*lines, "", *notes])


def help_of_verb(verb: Verb, language: str, width: int) -> str:
    """What it does, its flags, and commands to copy."""
    words = [flag.name.upper() for flag in verb.placed(FIRST)]
    words += [f"[{flag.takes}]" for flag in verb.placed(OPTIONAL)]
    words += [f"{flag.takes} ..." for flag in verb.placed(REST)]
    usage = _("usage: boxcar {verb} [flags]", verb=" ".join([verb.name, *words]))
    text = verb_text(verb).said(language)
    lines = [usage.said(language), "", *wrap_text(text, width)]
    if verb.flags:
        of_most = (PROFILE, JOB, JSON)
        listed = sorted(verb.flags, key=lambda flag: (flag in of_most, flag.name))
        rows = [(_spelled(flag), flag_text(verb, flag, language)) for flag in listed]
        names = [name for name, _ in rows]
        lines += ["", _("flags").said(language), *_side_by_side(rows, names, width)]
    lines += ["", _("examples").said(language)]
    return "\n".join([*lines, *(f"  boxcar {words}" for words in verb.examples)])


def verb_text(verb: Verb) -> Sentence:
    """What a verb does. Raises KeyError for one that has no text."""
    return Sentence(help_texts.VERBS[verb.name])


def flag_text(verb: Verb, flag: Flag, language: str) -> str:
    """Raises KeyError for a flag that has no text."""
    texts = help_texts.FLAGS
    text = Sentence(texts.get(f"{verb.name}.{flag.name}") or texts[flag.name]).said(language)
    again = (
        f"{_JOINT[language]}{_('may be given again').said(language)}" if flag.kind == MANY else ""
    )
    return text + again


def _spelled(flag: Flag) -> str:
    spelled = ", ".join(reversed(flag.spellings))
    return f"{spelled} {flag.takes}" if flag.takes_value else spelled


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

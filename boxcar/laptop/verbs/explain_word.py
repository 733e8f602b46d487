"""`boxcar explain WORD`, where the word is no cell and no platform: a failure's id, or a page of
the documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from boxcar.laptop.common import home, show
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.triage import advice
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _


def tell_about(
    word: str, profiles: Iterable[str], *, language: str = "", as_json: bool = False
) -> int:
    """Raises InputError for a word that is neither, or that several failures have in what is said
    of them; `profiles` are what else could be meant.
    """
    pages = pages_in(language_of(language, os.environ))
    known = advice.known_id(word)
    ids = [known] if known else []
    ids = ids or ([] if word in pages else advice.ids_of_words(word))
    if len(ids) > 1:
        raise InputError([_leads_to(id) for id in ids])
    if ids:
        found = advice.advice_of(ids[0])
        if as_json:
            show.json_document("explain", advice.verdict_document(found, ()))
            return 0
        for line in (*advice.verdict_lines(found, ()), *advice.types_line(found)):
            show.line(line)
        return 0
    if word not in pages:
        raise InputError(
            _(
                "{word!r} is not a cell of this run, a failure's id, a profile or a page{near}; "
                "pages: {pages}. To see the cells, type: boxcar status",
                word=word,
                near=did_you_mean(word, [*advice.all_ids(), *profiles, *pages]),
                pages=", ".join(pages),
            )
        )
    text = pages[word].read_text("utf-8")
    if as_json:
        show.json_document("explain", {"page": word, "text": text})
    else:
        show.page(text)
    return 0


def _leads_to(id: str) -> Message:
    return Message(
        _("{head}: {text}", head=id, text=advice.advice_of(id).words), Command("explain", (id,))
    )


def pages_in(language: str) -> dict[str, Path]:
    """Each by its name; in that language where somebody has written it so."""
    folder = home.assets_root() / "docs"
    pages = {path.stem: path for path in sorted(folder.glob("*.md")) if "." not in path.stem}
    own = {name: path.with_suffix(f".{language}.md") for name, path in pages.items()}
    return {name: own[name] if own[name].exists() else path for name, path in pages.items()}

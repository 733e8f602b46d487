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
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _


def tell_about(
    word: str, profiles: Iterable[str], *, language: str = "", as_json: bool = False
) -> int:
    """Raises InputError for a word that is neither; `profiles` are what else could be meant."""
    if id := advice.known_id(word):
        found = advice.advice_of(id)
        if as_json:
            show.json_document("explain", advice.verdict_document(found, ()))
        for line in () if as_json else advice.verdict_lines(found, ()):
            show.line(line)
        return 0
    pages = pages_in(language_of(language, os.environ))
    if word not in pages:
        raise InputError(
            _(
                "{word!r} is not a cell of this run, a failure's id, a profile or a page{near}; "
                "pages: {pages}",
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


def pages_in(language: str) -> dict[str, Path]:
    """Each by its name; in that language where somebody has written it so."""
    folder = home.assets_root() / "docs"
    pages = {path.stem: path for path in sorted(folder.glob("*.md")) if "." not in path.stem}
    own = {name: path.with_suffix(f".{language}.md") for name, path in pages.items()}
    return {name: own[name] if own[name].exists() else path for name, path in pages.items()}

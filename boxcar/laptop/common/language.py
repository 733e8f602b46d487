"""The language that the person reads, by their locale."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.errors import InputError
from boxcar.shared.sentence import LANGUAGES, _


def language_of(given: str, environ: Mapping[str, str]) -> str:
    """`en` or `zh`: as asked for, else as the locale says. Raises InputError for another one."""
    if given:
        if given not in LANGUAGES:
            raise InputError(
                _(
                    "--lang: expected {languages}, found {given!r}",
                    languages=" or ".join(LANGUAGES),
                    given=given,
                )
            )
        return given
    locale = next((environ[n] for n in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(n)), "")
    return "zh" if locale.lower().startswith("zh") else "en"

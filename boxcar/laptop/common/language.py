"""The language that the person reads, by their locale."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.shared.errors import InputError
from boxcar.shared.sentence import LANGUAGES, _


def language_of(given: str, environ: Mapping[str, str]) -> str:
    """`en` or `zh`: as asked for, else by the variables that gettext reads, LANGUAGE first. Raises
    InputError for another one.
    """
    if given:
        if given not in LANGUAGES:
            raise InputError(_("--lang: expected en or zh, found {given!r}", given=given))
        return given
    locale = next((environ[n] for n in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(n)), "")
    if locale in ("C", "POSIX"):  # somebody wants what a script can read, whatever LANGUAGE says
        return "en"
    wanted = [*environ.get("LANGUAGE", "").split(":"), locale]
    return next((one[:2].lower() for one in wanted if one[:2].lower() in LANGUAGES), "en")

"""The words of a command as a person typed them: a placeholder that is unknown gets a hint."""

from __future__ import annotations

from collections.abc import Iterable

from boxcar.laptop.common.near import did_you_mean
from boxcar.shared.cell import placeholders
from boxcar.shared.cell.placeholders import KNOWN, MORE, UnknownPlaceholderError


def check_command(words: Iterable[str]) -> None:
    """Raises ValueError for a word that cannot be filled."""
    known = [*(f"{{{name}}}" for name in KNOWN), MORE]
    try:
        for word in words:
            if word != MORE:
                placeholders.parse_word(word)
    except UnknownPlaceholderError as error:
        hint = did_you_mean(f"{{{error.name}}}", known)
        raise UnknownPlaceholderError(error.name, hint) from None

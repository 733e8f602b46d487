"""Which language a person reads."""

from __future__ import annotations

import pytest

from boxcar.laptop.common import show
from boxcar.laptop.common.language import language_of
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _


@pytest.mark.parametrize(
    ("given", "environ", "language"),
    [
        ("", {}, "en"),
        ("", {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("", {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        ("zh", {"LANG": "de_DE.UTF-8"}, "zh"),
        ("", {"LC_ALL": "", "LANG": "zh_TW"}, "zh"),
        ("", {"LC_MESSAGES": "zh_CN", "LANG": "en_US.UTF-8"}, "zh"),
        ("", {"LANGUAGE": "zh"}, "zh"),
        ("", {"LANGUAGE": "zh_CN:en", "LC_ALL": "en_US.UTF-8"}, "zh"),
        ("", {"LANGUAGE": "de:zh_CN:en", "LANG": "de_DE.UTF-8"}, "zh"),
        ("", {"LANGUAGE": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ("", {"LANGUAGE": "zh_CN", "LC_ALL": "C"}, "en"),
        ("", {"LANGUAGE": "zh_CN", "LC_ALL": "C.UTF-8"}, "zh"),
        ("", {"LANGUAGE": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_the_language_is_asked_for_or_the_locales(
    given: str, environ: dict[str, str], language: str
) -> None:
    assert language_of(given, environ) == language


def test_another_language_is_refused() -> None:
    with pytest.raises(InputError, match="--lang: expected en or zh, found 'fr'"):
        language_of("fr", {})


def test_what_is_shown_is_in_the_readers_language_and_its_command_is_not_translated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = Message(_("{n} {n:cell|cells} failed", n=2), Command("pull", or_else=Command("down")))
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert show.typed(message).startswith("2 个 cell 失败：invoke pull，或 invoke down")
    assert show.typed("words of a script") == "words of a script"
    assert str(message).startswith("2 cells failed: invoke pull, or invoke down")

"""What an agent's event says, shown in the language of who reads it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared import event_words
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.sentence import _, in_language

ROOT = Path(__file__).resolve().parents[2]
# Where an event gets its sentence.
SAYING = ("StopQueue", "warn", "_warn", "_warn_once", "warn_once", "refuse")
# f-strings and plain texts of the agent there. May only get shorter.
ENGLISH_ALONE = 2


def written(**data: Any) -> dict[str, Any]:
    """As a journal gives it back."""
    return dict(json.loads(json.dumps(event_words.beside(data))))


def test_a_reason_is_shown_in_the_readers_language() -> None:
    inner = _("it was asked to stop")
    data = written(reason=_("{what}, and saved a checkpoint", what=inner))
    heard = event_words.heard(data)
    assert heard == data["reason"] == "it was asked to stop, and saved a checkpoint"
    assert in_language(heard, "zh") == "有人要求它停止，并保存了 checkpoint"


def test_fields_are_what_json_has() -> None:
    data = written(
        text=_("{log} was not a file; what was there is now {aside}", log=Path("/a"), aside="b")
    )
    assert data["said"]["fields"] == {"log": "/a", "aside": "b"}


@pytest.mark.parametrize(
    "of_said",
    [
        None,
        "a text",
        {"text": "of a newer version: {x}", "fields": {"x": 1}},
        {"text": "exit code {rc}", "fields": {}},
        {"text": "exit code {rc}", "fields": 3},
        {"text": 3, "fields": {"rc": 1}},
    ],
)
def test_what_this_version_does_not_know_is_shown_as_it_is(of_said: Any) -> None:
    heard = event_words.heard({"reason": "exit code 1", "said": of_said})
    assert in_language(heard, "zh") == in_language(heard, "en") == "exit code 1"


def test_an_event_without_a_sentence_says_nothing() -> None:
    assert event_words.heard({"seconds": 3}) is None
    assert written(text="its own words") == {"text": "its own words"}


def test_secrets_are_left_out_of_its_fields() -> None:
    data = event_words.beside({"reason": _("a program was not found: {error}", error="hunter22")})
    assert "hunter22" not in json.dumps(KnownSecrets(["hunter22"]).left_out_of(data))


def test_the_agent_says_nothing_in_english_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "onbox").rglob("*.py"))
        for line in english_alone(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= ENGLISH_ALONE, found


def test_english_alone_is_found() -> None:
    source = 'reason = f"{a} fell"\nself.warn("w", "it fell")\nsay(reason="it fell")\n'
    assert english_alone(source) == [1, 2, 3]
    assert english_alone('reason = _("it fell")\nwarn("w", _("it fell"))\n') == []


def english_alone(source: str) -> list[int]:
    """The lines where a literal text becomes what an event says."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in (
            "reason",
            "text",
            "why",
        ):
            found += [node.value]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            found += node.args if name in SAYING else []
            found += [each.value for each in node.keywords if each.arg in event_words.KEYS]
    return sorted({one.lineno for one in found if _is_text(one)})


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr):
        words = "".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
        return any(word.isalpha() for word in words.split())
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value

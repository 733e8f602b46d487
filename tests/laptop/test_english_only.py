"""How many sentences of the verbs are still said in English alone. The number may only fall: a new
sentence goes into the catalogue.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from boxcar.laptop import verbs

VERBS = Path(verbs.__path__[0])
MOST = 2
# What shows its first word to a person.
SAYS = ("show.say", "show.line", "show.waiting", "show.progress", "show.ask", "Message")


def english_only(source: str) -> set[int]:
    """The lines that say a literal: a text, or an f-string with words of its own."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    said = [call.args[0] for call in calls if ast.unparse(call.func) in SAYS and call.args]
    ids = {call.args[0] for call in calls if ast.unparse(call.func) == "Sentence" and call.args}
    words = [node for word in said for node in ast.walk(word) if node not in ids]
    return {node.lineno for node in words if _is_literal(node)}


def _is_literal(node: ast.AST) -> bool:
    """Words, and not a key: those stand within an inner call such as Sentence("gate.type")."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip()
    )


def test_the_sentences_that_are_english_only_become_fewer() -> None:
    found = [
        f"{path.name}:{line}"
        for path in sorted(VERBS.glob("*.py"))
        for line in sorted(english_only(path.read_text(encoding="utf-8")))
    ]
    assert len(found) <= MOST, found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("show.say('all is well')", 1),
        ("show.say(f'{cell}: dropped')", 1),
        ("show.say(Message('Next one', Command('down')))", 1),
        ("Message(f'{x} is gone')", 1),
        ("show.say(Sentence('gate.refused', n=2))", 0),
        ("show.say(Sentence(f'gate.{which}', n=2))", 0),
        ("show.say(Sentence('gate.refused', n=f'{n} cells'))", 1),
        ("show.say(message)", 0),
    ],
)
def test_a_planted_sentence_is_counted(source: str, lines: int) -> None:
    assert len(list(english_only(source))) == lines

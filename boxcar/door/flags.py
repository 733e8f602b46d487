"""What a verb's flags are called and take, and what the catalogue says of them."""

from __future__ import annotations

from collections.abc import Sequence

from invoke import Argument

from boxcar.shared.catalogue import flags
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

# One letter, which Invoke would read as one of its own flags.
LETTERS = {"follow": "f", "profile": "p"}
# What stands behind a flag, where that is not a NAME; `VERB.FLAG` where it means another thing.
VALUES = {
    "allow-pickle": "FILE",
    "approve": "DIGEST",
    "board.to": "FILE",
    "because": "TEXT",
    "cfg": "PATH",
    "configs": "FOLDER",
    "epochs": "N",
    "every": "TIME",
    "from": "BOX",
    "job": "PATH",
    "kills": "N",
    "lang": "en|zh",
    "lines": "N",
    "minutes": "NAME=MINUTES",
    "port": "N",
    "script": "FILE",
    "seed": "N",
    "set": "KEY=VALUES",
    "speed": "BOX=FACTOR",
    "start-index": "N",
    "to": "KIND",
    "tolerance": "NUMBER",
}
_OF_MOST_VERBS = ("profile", "job", "json")


@dataclass(frozen=True)
class Flag:
    """One flag of a verb: `name` without dashes, what it takes ('' for a switch), what it does."""

    name: str
    takes: str
    text: Sentence
    is_repeatable: bool

    @property
    def spelled(self) -> str:
        letter = f"-{LETTERS[self.name]}, " if self.name in LETTERS else ""
        return f"{letter}--{self.name} {self.takes}".rstrip()


def of_verb(verb: str, arguments: Sequence[Argument]) -> list[Flag]:
    """By name, but for those that most verbs have, which come last."""
    found = [_flag(verb, argument) for argument in arguments]
    return sorted(found, key=lambda flag: (flag.name in _OF_MOST_VERBS, flag.name))


def text_of(verb: str, flag: str) -> Sentence:
    """Raises KeyError for a flag that the catalogue does not know."""
    name = flag.strip("_").replace("-", "_")
    own = f"{verb}.{name}"
    return Sentence(f"flags.{own if own in flags.SENTENCES else name}")


def _flag(verb: str, argument: Argument) -> Flag:
    name = str(argument.name).strip("_").replace("_", "-")
    value = VALUES.get(f"{verb}.{name}", VALUES.get(name, "NAME"))
    takes = value if argument.takes_value else ""
    return Flag(name, takes, text_of(verb, name), is_repeatable=argument.kind is list)

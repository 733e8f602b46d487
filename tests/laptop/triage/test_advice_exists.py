"""What triage advises can be typed: each key is one of job.yaml, each verb and flag is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from boxcar.door.verb_table import VERBS
from boxcar.laptop.project.job import Job
from boxcar.laptop.triage import advice
from boxcar.shared.sentence import LANGUAGES, Sentence
from boxcar.shared.triage.ladders import LADDERS

# A word before a colon. In Chinese only a key has the narrow one; in English a clause ends with it,
# too, so there it counts before a value and before what a sentence goes on with.
KEYS = {
    "zh": re.compile(r"(?<![\w./-])([a-z_]+):(?!\w)"),
    "en": re.compile(r"(?<![\w./-])([a-z_]+):(?= ?(?:[{\['\"]|in job|(?:to|or|and|of) )|[,;.)]|$)"),
}
OTHERS_KEYS = {"attn_implementation"}  # of transformers
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
TYPED = re.compile(r"(?:boxcar|invoke) ([a-z]+)((?: --?[a-z-]+(?: [A-Za-z_./-]+)?)*)")
OTHERS_FLAGS = {"shm-size"}  # of docker run
FLAGS = {name: {flag.name for flag in verb.flags} for name, verb in VERBS.items()}


def advised() -> Iterator[tuple[str, str, str]]:
    """Who says it, in which language, and what."""
    for id in advice.all_ids():
        one = advice.advice_of(id)
        for language in LANGUAGES:
            for said in (one.words, one.todo, *one.ladder):
                yield id, language, said.said(language)
    for name, (_, steps) in LADDERS.items():
        for language in LANGUAGES:
            yield from ((name, language, Sentence(step).said(language)) for step in steps)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_key_that_is_advised_is_one_of_job_yaml(language) -> None:
    said = [(id, text) for id, said_in, text in advised() if said_in == language]
    found = {(word, id) for id, text in said for word in KEYS[language].findall(text)}
    assert {"env", "secrets", "requirements"} <= {word for word, _ in found}
    assert not [one for one in found if one[0] not in {*Job.model_fields, *OTHERS_KEYS}]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_verb_and_flag_that_is_advised_is_there(language) -> None:
    odd = set()
    for id, said_in, text in advised():
        typed = TYPED.findall(text) if said_in == language else ()
        odd |= {(id, verb, text) for verb, _ in typed if verb not in FLAGS}
        known = {flag for verb, _ in typed for flag in FLAGS.get(verb, ())} | OTHERS_FLAGS
        odd |= {
            (id, flag, text)
            for flag in FLAG.findall(text if said_in == language else "")
            if flag not in known
        }
    assert not odd


@pytest.mark.parametrize("id", advice.all_ids())
def test_what_is_to_be_typed_is_a_command_of_this_program(id) -> None:
    words = shlex.split(str(advice.advice_of(id, cell="a").types))
    assert words[1] in FLAGS
    assert {word[2:] for word in words if word.startswith("--")} <= FLAGS[words[1]]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "list it under datas: in job.yaml"),
        ("en", "name them: datas: {pde: ./data}"),
        ("en", "correct datas: or setup: and launch"),
        ("zh", "把它写进 job.yaml 的 datas: 里"),
    ],
)
def test_a_key_that_is_not_there_would_be_seen(language, text) -> None:
    assert "datas" in KEYS[language].findall(text)

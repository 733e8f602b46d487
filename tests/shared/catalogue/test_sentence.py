"""What a sentence of the catalogue says, in each language."""

from __future__ import annotations

import importlib
import json
import pkgutil
import string

import pytest

from boxcar.shared import catalogue
from boxcar.shared.catalogue import sentence
from boxcar.shared.catalogue.sentence import Said, Sentence, in_language

# By name; those of single verbs stand in a folder of their own.
TOPICS = {
    module.name.rpartition(".")[2]: module.name
    for module in pkgutil.walk_packages(catalogue.__path__, f"{catalogue.__name__}.")
    if not module.ispkg and module.name != sentence.__name__
}


def sentences() -> list[tuple[str, Said]]:
    return [
        (f"{topic}.{name}", said)
        for topic, module in TOPICS.items()
        for name, said in importlib.import_module(module).SENTENCES.items()
    ]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_a_noun_goes_with_its_number():
    assert Sentence("next_step.failed", n=1) == "1 cell failed"
    assert Sentence("next_step.failed", n=2) == "2 cells failed"


def test_a_sentence_within_a_sentence_is_said_in_the_same_language():
    because = Sentence("next_step.at_work")
    step = Sentence("next_step.nothing", because=because)
    assert step == "next: agents are at work; there is nothing to do"
    assert step.said("zh") == "下一步：agent 正在工作，无需操作"


def test_words_that_are_no_sentence_pass_as_they_are():
    assert in_language("CUDA out of memory", "zh") == "CUDA out of memory"


def test_json_takes_the_english():
    assert json.dumps(Sentence("next_step.failed", n=1)) == '"1 cell failed"'


@pytest.mark.parametrize("id", ["next_step.nobody_wrote_this", "no_such_topic.at_all"])
def test_an_id_that_does_not_exist_is_an_error(id):
    with pytest.raises((KeyError, ModuleNotFoundError)):
        Sentence(id)


@pytest.mark.parametrize(("id", "said"), sentences())
def test_both_languages_name_the_same_fields_and_none_is_empty(id, said):
    assert said.en and said.zh
    assert fields(said.en) == fields(said.zh), id

"""docs/job.md says all keys, and each of its examples is one that Boxcar takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.job import CellException, Job
from boxcar.shared.cell import cell_line, own_words, placeholders
from boxcar.shared.files import queue_line

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "job.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHINESE = (ROOT / "docs" / "job.zh.md").read_text(encoding="utf-8")
JOBS = [text for kind, text in BLOCK.findall(PAGE) if kind == "yaml"]
QUEUES = [text for kind, text in BLOCK.findall(PAGE) if text.startswith("# queues/")]
# What an example leaves out, because it is about something else.
NEEDED = {
    "name": "name: a-job",
    "command": "command: train.py --resume {resume}",
    "queues": "queues: {queues/queue_1.txt: box-a, queues/queue_2.txt: box-b}",
    "artifacts": "artifacts: [best.pth]",
}


def rows(head: str, page: str = PAGE) -> list[str]:
    """The first column of the table below that row."""
    part = page[page.index(head) :].partition("\n\n")[0]
    return [line.strip("| ").split(" |")[0] for line in part.splitlines()[2:]]


def named(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize("text", JOBS)
def test_each_job_of_the_page_is_taken(text):
    given = yaml.safe_load(text)
    said = {*given, *(["queues"] if "run" in given else [])}
    needed = [line for key, line in NEEDED.items() if key not in said]
    yaml_models.parse("\n".join([*needed, text]).encode(), "job.yaml", Job)


@pytest.mark.parametrize("text", QUEUES)
def test_each_queue_of_the_page_is_taken(text):
    read = queue_line.parse_queue(text.encode())
    assert read.cells and not read.bad


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "docs/formats.md"])
def test_each_line_of_a_queue_on_another_page_is_taken(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^configs/\S+ .*\n", text, re.MULTILINE)
    assert len(lines) >= 3 and not queue_line.parse_queue("".join(lines).encode()).bad


def test_cells_without_a_config_have_the_names_that_the_page_says():
    text = next(text for text in QUEUES if "\n- - " in text)
    names = [line.name for line in queue_line.parse_queue(text.encode()).cells]
    told = re.search(r"^`-` as the config.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert told and set(names) <= named(told[0]) and len(names) == 4


def test_the_first_line_of_the_page_is_a_config_a_task_and_epochs():
    first = queue_line.parse_queue(QUEUES[0].encode()).cells
    assert [cell_line.line_of(line) for line in first] == ["configs/recon.yaml reconstruction 60"]


def test_the_table_has_every_key_of_a_job_and_no_other():
    assert rows("| key | default |") == [f"`{key}`" for key in rows_of_model()]


def rows_of_model() -> list[str]:
    """In the table's own order, so that only what is missing or too much is told."""
    order = [row.strip("`") for row in rows("| key | default |")]
    return sorted(Job.model_fields, key=lambda key: order.index(key) if key in order else -1)


def test_every_key_has_an_example():
    given = {key for text in JOBS for key in yaml.safe_load(text)}
    assert set(Job.model_fields) - given == set()


def test_the_keys_of_cells_are_those_of_the_model_and_each_has_an_example():
    sentence = re.search(
        r"^Under a name or a pattern stand (.*?), written", PAGE, re.MULTILINE | re.DOTALL
    )
    assert sentence and named(sentence[1]) == set(CellException.model_fields)
    rules = [rule for text in JOBS for rule in yaml.safe_load(text).get("cells", {}).values()]
    assert {key for rule in rules for key in rule} == set(CellException.model_fields)


def test_the_table_has_every_placeholder():
    known = {f"{{{name}}}" for name in placeholders.KNOWN} | {placeholders.MORE}
    assert {name for row in rows("| placeholder |") for name in named(row)} == known | {
        "{after:CELL}"
    }


def test_the_table_of_a_line_has_every_own_word():
    found = {name.partition("=")[0] for row in rows("| field |") for name in named(row)}
    assert found == {"cfg", "task", "epochs", *own_words.OWN_KEYS, "env.NAME"}


@pytest.mark.parametrize(
    ("head", "chinese"),
    [
        ("| key | default |", "| 键 | 默认 |"),
        ("| placeholder |", "| 占位符 |"),
        ("| field |", "| 字段 |"),
    ],
)
def test_the_chinese_tables_have_the_rows_of_the_english_ones(head, chinese):
    english = [named(row) for row in rows(head)]
    assert [named(row) for row in rows(chinese, CHINESE)] == english

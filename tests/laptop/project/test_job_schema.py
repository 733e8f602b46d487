"""The schema of job.yaml takes what Boxcar takes, knows each key, and refuses what is mistyped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import json_schema
import pytest
import yaml
from test_job_page import JOBS, NEEDED, PAGE, named, rows

from boxcar.laptop.common.home import SCHEMA_COMMENT, Home
from boxcar.laptop.project.job_schema import job_schema, write_job_schema

ROOT = Path(__file__).parents[3]
SCHEMA = job_schema("en")
WRITTEN = [
    path for path in sorted(ROOT.rglob("job.yaml")) if ".venv" not in path.parts[len(ROOT.parts)]
]


def problems(given: Any) -> list[str]:
    return json_schema.problems(SCHEMA, given)


def filled(text: str) -> dict[str, Any]:
    given = yaml.safe_load(text)
    said = {*given, *(["queues"] if "run" in given else [])}
    needed = [line for key, line in NEEDED.items() if key not in said]
    return dict(yaml.safe_load("\n".join([*needed, text])))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_job_of_the_project_is_taken(path: Path) -> None:
    assert problems(yaml.safe_load(path.read_text("utf-8"))) == []


@pytest.mark.parametrize("text", JOBS)
def test_each_job_of_the_page_is_taken(text: str) -> None:
    assert problems(filled(text)) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_key_of_the_page_is_known_and_says_what_the_page_says(language: str) -> None:
    keys = {key for row in rows("| key | default | what it says |", PAGE) for key in named(row)}
    made = job_schema(language)["properties"]
    assert made.keys() == keys
    assert all(made[key]["description"] for key in keys)
    assert "](" not in json.dumps(made)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("epoch: 3", "'epoch'"),
        ("workdir: elsewhere", "'elsewhere'"),
        ("epochs: many", "$.epochs"),
        ("artifacts: [{path: a, lod: safe}]", "$.artifacts"),
        ("notify: [{feishu: {uri: x}}]", "$.notify"),
    ],
)
def test_what_is_mistyped_is_refused(line: str, wanted: str) -> None:
    [problem, *_more] = problems(filled(line))
    assert wanted in problem


def test_it_lies_where_the_comment_names_it(tmp_path: Path) -> None:
    write_job_schema(tmp_path, "en")
    path = Home(tmp_path).job_schema
    assert SCHEMA_COMMENT.partition("$schema=")[2] == str(path.relative_to(tmp_path))
    assert json.loads(path.read_text("utf-8")) == SCHEMA
    before = path.stat().st_ino
    write_job_schema(tmp_path, "zh")
    assert path.stat().st_ino == before, "it is this version's already"

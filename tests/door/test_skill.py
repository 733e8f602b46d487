"""What a coding agent reads: true of the program, short, and the same in AGENTS.md."""

from __future__ import annotations

import os
import re
from pathlib import Path

import yaml

from boxcar.door.command_line import parse_command
from boxcar.door.skill import PERSONS, skill_text
from boxcar.door.verb_table import VERBS

AGENTS = Path(__file__).parents[2] / "AGENTS.md"
OWN = """\
# For coding agents

To change Boxcar itself, read [CONTRIBUTING.md](CONTRIBUTING.md) first; `make test` is what CI
runs. To use it for somebody, read on. `boxcar skill` prints this as a skill file.

"""


def test_it_is_a_skill_file_of_fewer_than_300_lines() -> None:
    _empty, head, body = skill_text().split("---\n", 2)
    assert set(yaml.safe_load(head)) == {"name", "description"}
    assert body.startswith("\n# Boxcar\n")
    assert len(skill_text().splitlines()) < 300
    assert max(map(len, body.partition("## All verbs")[0].splitlines())) <= 120


def test_every_verb_stands_in_it_and_what_a_person_decides_is_one() -> None:
    rows = skill_text().partition("## All verbs")[2]
    assert all(f"`{verb.examples[0]}`" in rows for verb in VERBS.values())
    assert set(PERSONS) <= set(VERBS)


def test_every_command_in_it_is_one_that_the_program_takes() -> None:
    said = re.findall(r"`boxcar ([a-z][^`]*)`", skill_text())
    assert len(said) > 12
    for words in said:
        parse_command(words.split())


def test_agents_md_says_the_same() -> None:
    """Write it anew with BOXCAR_GOLDEN=write."""
    text = OWN + skill_text().split("---\n", 2)[2].lstrip("\n").partition("\n\n")[2]
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        AGENTS.write_text(text, encoding="utf-8")
    assert AGENTS.read_text(encoding="utf-8") == text

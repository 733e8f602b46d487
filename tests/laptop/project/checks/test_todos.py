"""What `init` could not know stands in job.yaml until a person has said it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.checks import todos
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.plan import plan
from boxcar.shared.errors import InputError

JOB = """\
# Made by `boxcar init` from train.py
name: run-1

# TO DO: --data has to be given (train.py, line 4)

command: train.py  # TODO: the flag for the output
# TODO: one rank or many? nothing in the script says it
# (a rank is a process)
launcher: python
queues: {queue.txt: box-a}
artifacts:
  - checkpoints/*.pt
  - "*.json"  # TODO: which of them?
# TODO: resume: does it go on at the epoch?
#
smoke: "--note '#TODO'"
env: {NOTE: "a #TODO of mine"}
# done: TODO nothing
"""


def job(root: Path, text: str = JOB) -> Path:
    (root / "train.py").write_text("print(1)\n")
    (root / "queue.txt").write_text("- a\n")
    (root / "job.yaml").write_text(text)
    return root / "job.yaml"


def test_each_has_its_line_and_the_key_that_it_is_about(tmp_path: Path) -> None:
    found = todos.of_job(job(tmp_path))
    assert [(one.at.rpartition(":")[2], one.key) for one in found] == [
        ("4", "command"), ("6", "command"), ("7", "launcher"), ("13", "artifacts"),
        ("14", "resume"),
    ]  # fmt: skip
    assert found[3].text == "which of them?"


def test_plan_names_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(open_project(job(tmp_path), "local"), as_json=False) == 0
    said = capsys.readouterr().err
    assert "job.yaml:4: an open TODO: --data has to be given (train.py, line 4)" in said
    assert "job.yaml:13: an open TODO: which of them?" in said


def test_what_costs_a_training_is_refused_with_its_line_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        todos.refuse_costly(job(tmp_path))
    assert raised.value.exit_code == 2
    assert [text.split(": an open TODO of ")[1][:8] for text in raised.value.problems] == [
        "launcher", "artifact", "resume: ",
    ]  # fmt: skip
    assert "job.yaml:7: " in raised.value.problems[0]
    assert "remove the comment, then: invoke launch" in raised.value.problems[0]


def test_others_are_refused_by_nobody(tmp_path: Path) -> None:
    lines = [line for line in JOB.splitlines() if not line.startswith("# TODO")]
    todos.refuse_costly(job(tmp_path, "\n".join(lines).replace("# TODO: which", "# which")))

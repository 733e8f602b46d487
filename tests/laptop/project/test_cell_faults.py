"""What of lines and job does not go together, over whole projects on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.laptop.project import cell_faults, queue_files
from boxcar.laptop.project.job import read_job
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.resolve import Resolved, resolve
from boxcar.shared.files.plan import EACH_BOX

JOB = """\
name: run-1
command: train.py {cfg} {out}
queues: {queues/q1.txt: box-a, queues/q2.txt: box-b}
artifacts: [best.pth]
"""


def resolved(root: Path, q1: str, more: str = "", q2: str = "", job: str = JOB) -> Resolved:
    for folder in ("queues", "data"):
        (root / folder).mkdir()
    for name in ("train.py", "a.json", "data/tiny"):
        (root / name).touch()
    (root / "queues/q1.txt").write_text(q1)
    (root / "queues/q2.txt").write_text(q2)
    (root / "job.yaml").write_text(job + more)
    return resolve(root, read_job(root / "job.yaml"), load_profile("local", root))


def faults(root: Path, q1: str, more: str = "", q2: str = "") -> list[str]:
    found = resolved(root, q1, more, q2)
    assert not found.doubts
    return [fault.text.replace(f"{root}/", "") for fault in found.faults]


def test_lines_and_rules_that_go_together_have_none(tmp_path: Path) -> None:
    more = "cells: {a: {time: 1h}, 'a_*': {nproc_per_node: 2, env: {A: '{name}'}}}\n"
    found = resolved(tmp_path, "a.json t\na.json t after=a lr=1\n", more, "- t name=z after=a\n")
    [fault] = found.faults
    assert "q2.txt:1: the command uses {cfg}, but the line has - there" in fault.text
    assert found.notes == ()


def test_a_name_that_no_line_has_is_a_fault_with_the_nearest(tmp_path: Path) -> None:
    [found] = faults(tmp_path, "a.json t lr=1\n", "cells: {a_lr2: {time: 1h}}\n")
    assert found == (
        "job.yaml:5: cells.a_lr2: no queue has a cell with this name (did you mean 'a_lr1'?)"
    )


def test_while_a_line_cannot_be_read_no_name_is_called_unknown(tmp_path: Path) -> None:
    found = resolved(tmp_path, "a.json t 6O\na.json t name=b\n", "cells: {a: {time: 1h}}\n")
    assert found.faults == () and len(found.doubts) == 1


def test_a_pattern_that_fits_no_cell_yet_is_a_note(tmp_path: Path) -> None:
    found = resolved(tmp_path, "a.json t\n", "cells: {'seg_*': {time: 1h}}\n")
    assert found.faults == ()
    [note] = found.notes
    assert note.endswith("job.yaml:5: cells['seg_*']: no cell's name matches this yet")


def test_two_patterns_that_quarrel_are_refused_once_with_both(tmp_path: Path) -> None:
    lines = "a.json t lr=1\na.json t lr=2\n"
    [found] = faults(tmp_path, lines, "cells: {'a*': {time: 1h}, '*_lr?': {time: 2h}}\n")
    assert "cells['*_lr?']: cells such as a_lr1 also match 'a*', which gives another time" in found


def test_naming_the_cell_ends_a_quarrel(tmp_path: Path) -> None:
    more = "cells: {'a*': {time: 1h}, '*a': {time: 2h}, a: {time: 3h}}\n"
    found = resolved(tmp_path, "a.json t\n", more)
    assert found.faults == ()


def test_a_secret_is_no_variable_of_a_line_or_a_rule(tmp_path: Path) -> None:
    more = "secrets: [KEY]\ncells: {a: {env: {KEY: x}}}\n"
    found = faults(tmp_path, "a.json t env.KEY=x\n", more)
    assert "queues/q1.txt:1: env.KEY= is in the line, but KEY is one of the secrets" in found
    assert "job.yaml:6: cells.a: env.KEY is also listed under secrets; remove one" in found


# --- after=


def test_a_cell_that_nobody_has_cannot_come_before(tmp_path: Path) -> None:
    [found] = faults(tmp_path, "a.json t\na.json t name=b after=aa\n")
    assert found == ("queues/q1.txt:2: after=aa: no queue has a cell with this name")


@pytest.mark.parametrize(
    ("q1", "q2", "circle"),
    [
        ("a.json t after=a\n", "", "a → a"),
        ("a.json t after=b\n", "a.json t name=b after=c\na.json t name=c after=a\n", ""),
    ],
)
def test_a_circle_over_all_queues_is_refused(tmp_path: Path, q1: str, q2: str, circle: str) -> None:
    [found] = faults(tmp_path, q1, q2=q2)
    assert found == f"after= is circular: {circle or 'a → b → c → a'}"


def test_two_ways_to_one_cell_are_no_circle(tmp_path: Path) -> None:
    lines = "a.json t\na.json t name=b after=a\na.json t name=c after=a\n"
    assert faults(tmp_path, lines + "a.json t name=d after=b,c\n") == []


def test_a_chain_as_long_as_a_queue_is_followed(tmp_path: Path) -> None:
    lines = [f"a.json t name=c{at} after=c{at + 1}\n" for at in range(3000)]
    assert faults(tmp_path, "".join(lines) + "a.json t name=c3000\n") == []


def test_a_cell_of_another_boxs_tier_cannot_be_waited_for(tmp_path: Path) -> None:
    plan = resolved(tmp_path, "a.json t\n", q2="a.json t name=b after=a\n").plan
    job = read_job(tmp_path / "job.yaml")
    files = [queue_files.read_queue_file(tmp_path, file, box) for file, box in job.queues.items()]
    assert list(cell_faults.faults_of_cells(job, plan, files)) == []
    [found] = cell_faults.faults_of_cells(job, replace(plan, durable_scope=EACH_BOX), files)
    assert "q2.txt:1: after=a: that cell runs on box-a, whose disk box-b cannot see" in found


# --- workdir: out


@pytest.mark.parametrize("word", ["data/tiny", "./data/tiny", "--data=data/tiny", "data"])
def test_a_word_that_lies_in_the_code_folder_is_told_under_workdir_out(
    tmp_path: Path, word: str
) -> None:
    job = JOB.replace("{out}", f"{{out}} {word}") + "workdir: out\n"
    [note] = resolved(tmp_path, "a.json t\n", job=job).notes
    path = word.removeprefix("--data=")
    assert note == (
        f"{path} is in the code folder, but with workdir: out the command starts in {{out}}: "
        f"if you mean that file, write {{code}}/{path}"
    )


def test_of_an_override_the_note_offers_no_placeholder_there(tmp_path: Path) -> None:
    [note] = resolved(tmp_path, "a.json t data=data/tiny\n", "workdir: out\n").notes
    assert note.endswith("if you mean that file, write {code}/data/tiny in command:")


def test_script_config_and_what_lies_elsewhere_are_not_told(tmp_path: Path) -> None:
    job = JOB.replace("{out}", "{out} {code}/data/tiny /data -v . x=1 data/none")
    assert resolved(tmp_path, "a.json t\n", "workdir: out\n", job=job).notes == ()


def test_in_the_code_folder_nothing_is_told(tmp_path: Path) -> None:
    job = JOB.replace("{out}", "{out} data/tiny")
    assert resolved(tmp_path, "a.json t data=data/tiny\n", job=job).notes == ()


def test_a_metric_that_takes_part_of_a_number_is_named_with_its_line(tmp_path: Path) -> None:
    given = "metrics:\n  a: {log: 'a (\\S+)'}\n  b: {log: 'b ([0-9.]+)'}\n"
    [note] = resolved(tmp_path, "a.json t\n", given).notes
    assert ("job.yaml:7: metrics.b: ([0-9.]+) does not match all of 9.5e-05 and -0.5") in note

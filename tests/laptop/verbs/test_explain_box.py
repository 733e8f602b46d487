from __future__ import annotations

import json
from dataclasses import replace

import pytest
from run_on_disk import RunOnDisk, make_run

from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.verbs.explain_box import tell_of_box
from boxcar.shared import timestamp
from boxcar.shared.errors import InputError


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    run = make_run(tmp_path)
    return RunOnDisk(replace(run.project, profile=load_profile("local", tmp_path)))


def write(run: RunOnDisk, lines: int) -> None:
    path = run.site.tier.gauges("queue_1")
    path.parent.mkdir()
    at = "2026-11-29T00:00:00.000Z"
    told = [{"at": timestamp.after(at, 60.0 * n), "scratch_free_bytes": n} for n in range(lines)]
    path.write_text("".join(json.dumps(one) + "\n" for one in told))


def test_the_course_of_a_box_is_drawn(run, capsys):
    write(run, 30)
    assert tell_of_box(run.project, "box-a") == 0
    said = capsys.readouterr().out
    assert "the last 29m" in said and "scratch free" in said and "29 B" in said


def test_the_same_as_a_document(run, capsys):
    write(run, 3)
    assert tell_of_box(run.project, "box-a", as_json=True) == 0
    [gauge] = json.loads(capsys.readouterr().out)["gauges"]
    assert (gauge["gauge"], gauge["values"]) == ("scratch free", [0.0, 1.0, 2.0])


def test_before_the_first_lines_that_is_said(run, capsys):
    assert tell_of_box(run.project, "box-a") == 0
    assert "has no gauges yet" in capsys.readouterr().err


def test_a_box_that_is_not_there_is_named_with_those_that_are(run):
    with pytest.raises(InputError, match="box-a"):
        tell_of_box(run.project, "box-z")

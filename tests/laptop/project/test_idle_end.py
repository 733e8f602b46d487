"""Which boxes may stop themselves: by a verb that can be undone, with results that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project import idle_end
from boxcar.laptop.project.job import Job, read_job
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.shared.files.plan import IdleEnd

JOB = """\
name: r
command: train.py {out}
queues: {q.txt: box-a}
artifacts: []
"""


def job(tmp_path: Path, more: str = "when_done: end\nafter_idle: 45m\n") -> Job:
    path = tmp_path / "job.yaml"
    path.write_text(JOB + more)
    return read_job(path)


def profile(name: str, tmp_path: Path) -> Profile:
    return load_profile(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("autodl", IdleEnd(2700, from_box="/usr/bin/shutdown")),
        ("vastai", IdleEnd(2700, own_key="vast")),
        ("runpod", IdleEnd(2700, own_key="runpod")),
        ("lambda", IdleEnd(2700)),  # by hand, or gone for good: only told
        ("featurize", IdleEnd(2700)),
        ("local", None),
        ("slurm", None),
        ("kubernetes", None),
    ],
)
def test_each_platform(tmp_path, name, asked):
    assert idle_end.of_job(job(tmp_path), profile(name, tmp_path)) == asked


@pytest.mark.parametrize("more", ["", "when_done: keep\n"])
def test_off_unless_it_is_typed(tmp_path, more):
    assert idle_end.of_job(job(tmp_path, more), profile("autodl", tmp_path)) is None
    assert idle_end.sentence_of_idle_end(job(tmp_path, more), profile("autodl", tmp_path)) is None


def test_where_the_results_would_go_with_the_box_it_only_tells(tmp_path):
    own = tmp_path / "profiles" / "mine.yaml"
    own.parent.mkdir()
    own.write_text("name: mine\nextends: vastai\nstorage: {tiers: {container: {stop: lose}}}\n")
    found = profile("mine", tmp_path)
    assert idle_end.of_job(job(tmp_path), found) == IdleEnd(2700)
    assert "does not survive" in str(idle_end.sentence_of_idle_end(job(tmp_path), found))


def test_plan_says_what_will_happen(tmp_path):
    said = str(idle_end.sentence_of_idle_end(job(tmp_path), profile("autodl", tmp_path)))
    assert said.startswith("after 45m idle and 10 min of notice each box stops itself: 关机 (rev")
    said = str(idle_end.sentence_of_idle_end(job(tmp_path), profile("lambda", tmp_path)))
    assert "only told: no box of lambda can stop itself" in said

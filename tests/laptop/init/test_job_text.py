from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import strange_sources
import yaml

from boxcar.laptop.init import job_text
from boxcar.laptop.init.draft import Draft
from boxcar.laptop.init.frameworks import Kept
from boxcar.laptop.project.job import read_job

SOURCES = [
    strange_sources.BESIDE,
    strange_sources.STEPS,
    strange_sources.SETTINGS,
    strange_sources.HYDRA,
    strange_sources.CLI,
    strange_sources.HF,
]
# Names that YAML would read as something else.
ODD = ["a: b.pt", "#1.pt", "yes", "*.pt", "模型.pt", "- x.pt", "'q'.pt", "1e3", "0x1", "a "]


def made(tmp_path: Path, source: str) -> Draft:
    found = strange_sources.project(tmp_path, train_py=source, configs__a_yaml="")
    return strange_sources.draft(found)


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_written_is_a_job_that_says_the_draft(tmp_path: Path, source: str) -> None:
    one = made(tmp_path, source)
    path = tmp_path / "job.yaml"
    path.write_text(job_text.job(one, ["gpu1"]), encoding="utf-8")
    job = read_job(path)
    assert (job.command, job.workdir, job.launcher) == (one.words, one.workdir, one.launcher)
    assert [(item.path, item.take) for item in job.artifacts] == [
        (kept.path, kept.take) for kept in one.artifacts
    ]
    assert (job.resume, " ".join(job.resume_args), job.epochs) == (
        one.resume, one.resume_args, one.epochs,
    )  # fmt: skip
    assert "# Yours: gpu1" in path.read_text()


@pytest.mark.parametrize("name", ODD)
def test_no_name_becomes_something_else_in_yaml(tmp_path: Path, name: str) -> None:
    one = replace(
        made(tmp_path, strange_sources.BESIDE), artifacts=(Kept(name), Kept(name, "newest"))
    )
    document = yaml.safe_load(job_text.job(one, []))
    assert document["artifacts"] == [name, {"path": name, "take": "newest"}]


def test_every_key_has_its_reason(tmp_path: Path) -> None:
    lines = job_text.job(made(tmp_path, strange_sources.STEPS), []).splitlines()
    at = [n for n, line in enumerate(lines) if line.partition(":")[0] in job_text.KEYS]
    assert len(at) == len(job_text.KEYS) - 7, "all but seven of them"
    assert all(lines[number - 1].startswith("# ") for number in at)

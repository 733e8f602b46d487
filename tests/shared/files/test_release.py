from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Code, Release, with_newest

FILES = {"plan.json": b"{}\n", "run_one.sh": b"#!/bin/bash\n", "code/train.py": b"print(1)\n"}


def of_files() -> Release:
    return Release(
        run="digits-ablation",
        onbox="onbox-1f2e.pyz",
        training="training-3d4c.zip",
        code=Code(commit="35c4340", is_dirty=True, diff="code.diff"),
        files=tuple(
            FileRecord(name, len(data), digest.of_bytes(data)) for name, data in FILES.items()
        ),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release as the laptop pushed it."""
    folder = tmp_path / of_files().digest
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / release.FILE).write_bytes(codec.to_document(of_files()))
    return folder


def test_a_release_reads_as_it_was_pushed(folder):
    assert release.read_release(folder) == of_files()
    assert release.check(folder) == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_changed_under_a_release_is_named(folder, name):
    (folder / name).write_bytes(FILES[name][:-1] + b" ")
    assert [found.path for found in release.check(folder)] == [name]


def test_a_release_under_another_name_is_refused_with_both(folder):
    other = folder.rename(folder.with_name("0" * 64))
    with pytest.raises(DamagedError, match=f"has digest {of_files().digest}, expected {'0' * 64}"):
        release.check(other)


def test_a_changed_list_is_another_release(folder):
    document = json.loads((folder / release.FILE).read_bytes())
    document["files"].pop()
    (folder / release.FILE).write_text(json.dumps(document))
    with pytest.raises(DamagedError, match="digest"):
        release.read_release(folder)


def test_the_digest_is_that_of_the_content_and_not_of_its_spelling(folder):
    document = json.loads((folder / release.FILE).read_bytes())
    (folder / release.FILE).write_text(json.dumps(dict(reversed(document.items()))))
    assert release.read_release(folder) == of_files()


@pytest.mark.parametrize(
    "changed",
    [
        {"run": "other"},
        {"onbox": "onbox-0000.pyz"},
        {"training": "training-0000.zip"},
        {"code": Code(commit="35c4340", is_dirty=False)},
        {"files": ()},
        {"files": of_files().files[::-1]},
        {"extra": {"new": 1}},
    ],
)
def test_whatever_changes_makes_another_release(changed):
    assert dataclasses.replace(of_files(), **changed).digest != of_files().digest


def test_a_release_that_names_a_file_outside_itself_is_refused(tmp_path):
    hostile = dataclasses.replace(of_files(), files=(FileRecord("../x", 0, "0" * 64),))
    folder = tmp_path / hostile.digest
    folder.mkdir()
    (folder / release.FILE).write_bytes(codec.to_document(hostile))
    with pytest.raises(DamagedError, match="leads out of"):
        release.check(folder)


def test_one_that_is_pushed_again_is_the_newest_again_and_the_list_stays_small():
    assert with_newest(("a", "b"), "a") == ("b", "a")
    many = tuple(map(str, range(100)))
    assert with_newest(many, "x") == (*many[1:], "x")

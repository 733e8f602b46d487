"""Before each cell: the job's data is whole, and {data} leads to this release's."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.files import data_proof
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.paths import DataPaths, ScratchPaths
from onbox.agent.job_data import link_data
from onbox.agent.outcome import StopQueue


def stored(base: Path, text: bytes) -> str:
    part = base / "boxcar" / ".data" / "new"
    (part / "files").mkdir(parents=True)
    (part / "files" / "a").write_bytes(text)
    files = [FileRecord("a", len(text), digest.of_bytes(text))]
    name = data_proof.digest_of_files(files)
    data_proof.write_proof(part, name, files)
    part.rename(part.with_name(name))
    return name


def place(base: Path, name: str, release: str = "r1") -> Any:
    plan = SimpleNamespace(data={"set": name}, data_urls=())
    scratch = ScratchPaths(base, "run")
    release_folder = Path("/releases") / release
    return SimpleNamespace(
        plan=plan, scratch=scratch, data_store=DataPaths(base), release=release_folder, box="box-a"
    )


def test_another_release_moves_no_link_of_the_first(tmp_path: Path) -> None:
    first, second = stored(tmp_path, b"one"), stored(tmp_path, b"two")
    link_data(place(tmp_path, first))
    link_data(place(tmp_path, second, "r2"))
    link_data(place(tmp_path, first))
    scratch = ScratchPaths(tmp_path, "run")
    assert (scratch.data_of("r1") / "set" / "a").read_bytes() == b"one"
    assert (scratch.data_of("r2") / "set" / "a").read_bytes() == b"two"


@pytest.mark.parametrize("harm", ["shorter", "gone", "other bytes", "no proof", "a link"])
def test_data_that_is_not_whole_stops_the_queue(tmp_path: Path, harm: str) -> None:
    name = stored(tmp_path, b"one")
    file = tmp_path / "boxcar" / ".data" / name / "files" / "a"
    if harm == "shorter":
        file.write_bytes(b"on")
    elif harm == "other bytes":
        file.write_bytes(b"onE")
        os.utime(file, ns=(1, 1))
    elif harm == "no proof":
        (file.parent.parent / "proof.json").unlink()
    else:
        file.unlink()
    if harm == "a link":
        file.symlink_to("/etc/hosts")
    with pytest.raises(StopQueue, match="DATA: set is not whole on box-a"):
        link_data(place(tmp_path, name))
    assert not ScratchPaths(tmp_path, "run").data_of("r1").exists()


def test_a_file_that_was_only_touched_is_read_again_and_believed(tmp_path: Path) -> None:
    name = stored(tmp_path, b"one")
    file = tmp_path / "boxcar" / ".data" / name / "files" / "a"
    os.utime(file, ns=(1, 1))
    link_data(place(tmp_path, name))
    proof = data_proof.read_proof(file.parent.parent)
    assert proof.files[0].mtime_ns == 1


def test_what_stands_in_the_place_of_a_link_is_kept_aside(tmp_path: Path) -> None:
    name = stored(tmp_path, b"one")
    taken = ScratchPaths(tmp_path, "run").data_of("r1") / "set"
    taken.mkdir(parents=True)
    (taken / "mine").write_bytes(b"kept")
    link_data(place(tmp_path, name))
    assert (taken / "a").read_bytes() == b"one"
    assert [path.read_bytes() for path in taken.parent.glob("set.*/mine")] == [b"kept"]

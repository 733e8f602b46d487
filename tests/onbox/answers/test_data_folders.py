"""Data that a run at work reads is neither removed nor replaced under it."""

from __future__ import annotations

from pathlib import Path

import pytest
from waiting import until

from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.shared.files import data_proof
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.paths import DATA_FILES, DataPaths
from boxcar.shared.wire.data_asks import InstallData
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import data_folders

FILES = (FileRecord("a.bin", 3, digest.of_bytes(b"one")),)
NAME = data_proof.digest_of_files(FILES)


def fill(folder: Path) -> None:
    (folder / DATA_FILES).mkdir(parents=True)
    (folder / DATA_FILES / "a.bin").write_bytes(b"one")


@pytest.fixture
def at_work(make_run):
    """A run whose cell trains on the data until its gate is opened."""
    run = make_run({"a": {"gate": 1}}, data={"set": NAME})
    store = DataPaths(run.scratch().data_dir)
    fill(store.unfinished(NAME))
    data_proof.give_name(store.unfinished(NAME), store.folder(NAME), FILES)
    agent = run.start()
    run.wait_for_step("a")
    yield run, store
    run.open_gate()
    agent.wait()


def on_box(run) -> RunOnBox:
    return RunOnBox("tiny", str(run.durable.durable_dir), str(run.scratch().data_dir))


def test_what_a_cell_trains_on_is_not_removed_until_the_run_has_ended(at_work):
    run, store = at_work
    with pytest.raises(InputError, match="is in use by tiny"):
        data_folders.remove(store, on_box(run), NAME)
    assert (store.files(NAME) / "a.bin").read_bytes() == b"one"
    run.open_gate()
    until(lambda: _removes(store, run))
    assert not store.folder(NAME).exists()


def _removes(store: DataPaths, run) -> bool:
    try:
        data_folders.remove(store, on_box(run), NAME)
    except InputError:
        return False
    return True


def test_a_damaged_copy_is_not_replaced_under_a_cell_that_reads_it(at_work):
    run, store = at_work
    file = store.files(NAME) / "a.bin"
    file.chmod(0o644)
    file.write_bytes(b"oNe, and more")
    inode = file.stat().st_ino
    fill(store.unfinished(NAME))
    with pytest.raises(InputError, match="is in use by tiny"):
        data_folders.install(store, on_box(run), InstallData(False, NAME, FILES))
    assert file.stat().st_ino == inode
    assert store.unfinished(NAME).exists(), "what was sent is kept for the next push"

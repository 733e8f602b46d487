"""What is saved before a box ends, and that what cannot be saved holds the box."""

from __future__ import annotations

from pathlib import Path

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import agent_started, cell_failed, cell_started

from boxcar.laptop.hosts import folders
from boxcar.laptop.run.view import RunView
from boxcar.laptop.teardown.salvage import save_before_end
from boxcar.shared.disk import digest
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume

LINES = {"q1": ["configs/a.yaml seg 2"]}
BYTES = b"a checkpoint of epoch one"


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    """The cell a has failed on box-a; its checkpoint was mirrored there, on a tier of its own."""
    made = make_far_run(tmp_path, monkeypatch, lines=LINES, scope="each-box")
    agents = made.agents
    agents.say("q1", agent_started(), cell_started("a"), cell_failed("a"))
    scratch = agents.project.scratch("box-a")
    for path, text in (
        (scratch.log("a"), "diverged\n"),
        (scratch.agent_log("q1"), "cell a failed\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder = agents.project.on_tier.resume("a")
    folder.mkdir(parents=True)
    file = FileRecord("latest.1.pt", len(BYTES), digest.of_bytes(BYTES))
    (folder / file.path).write_bytes(BYTES)
    pointer = Resume("a", 1, "2026-11-29T03:00:00.000Z", "latest.pt", file)
    (folder / "resume.json").write_bytes(codec.to_document(pointer))

    monkeypatch.setattr(made.site, "folder_on", lambda box, path: folder)
    return made


def look(far: FarRun) -> RunView:
    return far.look()


def test_checkpoint_log_and_the_agents_log_of_a_failed_cell_are_saved(far: FarRun) -> None:
    view, results = look(far), far.site.results
    assert list(save_before_end(far.site, view, ())) == []
    assert (results.resume("a") / "latest.1.pt").read_bytes() == BYTES
    assert results.failed_log("a").read_text() == "diverged\n"
    assert results.failed_log("agent-q1").read_text() == "cell a failed\n"


def test_what_cannot_be_saved_holds_the_box(far: FarRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_words: object, **_more: object) -> None:
        raise TemporaryError("the link was cut")

    monkeypatch.setattr(folders, "fetch_folder", cut)
    [held] = save_before_end(far.site, look(far), ())
    assert held.cell == "a" and "so its box stays as it is: the link was cut" in held.what


def test_a_box_that_has_ended_or_does_not_answer_is_not_asked(far: FarRun) -> None:
    assert list(save_before_end(far.site, look(far), ("box-a",))) == []
    far.world.cut.add("box-a")
    far.site.refresh()
    assert list(save_before_end(far.site, look(far), ())) == []
    assert not far.site.results.resume("a").exists()

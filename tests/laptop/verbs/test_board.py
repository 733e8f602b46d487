"""The board as a page: served until somebody ends it, or written whole."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_failed, cell_verified, make_run, queue_done

from boxcar.laptop.common import home, show
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs import board as board_module
from boxcar.laptop.verbs.board import board
from boxcar.laptop.view.page import server
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3"]})
    made.say("queue_1", agent_started(), cell_verified("a"), cell_failed("b"), queue_done())
    return made


def write(run: RunOnDisk, to: str) -> int:
    return board(run.project, is_served=False, port=None, to=to)


def test_without_a_place_it_says_which_lines_can_be_typed(run: RunOnDisk) -> None:
    with pytest.raises(InputError) as refused:
        board(run.project, is_served=False, port=None, to="")
    said = str(refused.value)
    assert "board --serve" in said and "board --to board.html" in said and "watch" in said
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("is_served", "port", "to", "said"),
    [(True, None, "x", "not both"), (False, 80, "x", "only with --serve")],
)
def test_words_that_do_not_belong_together_are_refused(
    run: RunOnDisk, is_served: bool, port: int | None, to: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        board(run.project, is_served=is_served, port=port, to=to)


def test_a_written_page_has_the_run_and_zero_is_its_exit_code_also_where_a_cell_failed(
    run: RunOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    assert write(run, str(path)) == 0
    assert capsys.readouterr().out.strip() == str(path)
    text = path.read_text(encoding="utf-8")
    assert "✗ 1 failed" in text and "✓ 1 verified" in text
    assert path.stat().st_mode & 0o777 == 0o644, "a web server reads it"


def test_a_page_is_replaced_whole_or_not_at_all(
    run: RunOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("the one before")

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "_write_beside", full)
    with pytest.raises(OSError, match="No space"):
        write(run, str(path))
    assert path.read_text() == "the one before" and list(tmp_path.glob("*.html*")) == [path]


def test_a_folder_and_a_file_without_one_are_sentences(run: RunOnDisk, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        write(run, str(tmp_path))
    with pytest.raises(InputError, match="no such folder"):
        write(run, str(tmp_path / "gone" / "page.html"))


def test_json_names_the_file(
    run: RunOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    show.begin()
    board(run.project, is_served=False, port=None, to=str(path), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["url"], found["run"]) == (str(path), None, "demo")


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def test_it_is_served_until_ctrl_c_and_each_look_is_a_new_page(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: list[str] = []
    real, served = board_module.looks_without_end, server.PageServer

    def looks(site: LocalSite, interval_s: float, pause: Any) -> Iterator[RunView]:
        views = real(site, interval_s, pause)
        yield next(views)
        pages.append(read(urls[0]))
        run.say("queue_1", agent_started(), cell_verified("b"), queue_done())
        yield run.look()
        pages.append(read(urls[0]))
        raise KeyboardInterrupt

    urls: list[str] = []

    class Noted(served):  # type: ignore[misc,valid-type]
        def __init__(self, port: int) -> None:
            super().__init__(port)
            urls.append(self.url)

    monkeypatch.setattr(board_module, "looks_without_end", looks)
    monkeypatch.setattr(server, "PageServer", Noted)
    assert board(run.project, is_served=True, port=None, to="") == 130
    said = capsys.readouterr()
    assert said.out.strip() == urls[0]
    assert "the run continues" in said.err and "board --serve" in said.err
    assert "✗ 1 failed" in pages[0] and "✗" not in pages[1] and "✓ 2 verified" in pages[1]
    assert threading.active_count() == 1 or not _serving()


def _serving() -> bool:
    return any("serve_forever" in thread.name for thread in threading.enumerate())


M2 = {
    "failure": "M2",
    "class": "OUT_OF_MEMORY",
    "evidence": [{"line": 7, "text": "CUDA out of memory"}],
}


@pytest.fixture
def failed(run: RunOnDisk) -> RunOnDisk:
    """Cell b ran out of memory, and its log has the value of a secret that only its box knows."""
    event, told = cell_failed("b")
    run.say("queue_1", agent_started(), (event, told | M2), queue_done())
    log = run.project.scratch("box-a").log("b")
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"epoch {n} of 10.0.0.9 correct-horse\n" for n in range(90)))
    run.project.job.secrets = ("HF_TOKEN",)
    return run


def know(run: RunOnDisk) -> None:
    file = Path(run.project.plan.box("box-a").credentials)
    file.write_text(json.dumps({"env": {"HF_TOKEN": "correct-horse"}}))
    file.chmod(0o600)


def opened(run: RunOnDisk, cell: str) -> str | None:
    opener, view = board_module.Opener(run.site), run.look()
    opener.rows = board_module._rows(run.site, view, board_module.NOTHING)
    return opener.opened(cell)


def test_a_cell_opens_at_its_ladder_its_story_and_the_end_of_its_log(failed: RunOnDisk) -> None:
    know(failed)
    text = opened(failed, "b")
    assert text and "OUT_OF_MEMORY (M2)" in text and "<li>  1. " in text, "the ladder"
    assert "attempt 1 failed after" in text and "next: " in text
    assert text.count("epoch ") == 50 and "epoch 89 of […] […]" in text
    assert "correct-horse" not in text
    assert opened(failed, "nobody") is None


def test_a_log_whose_secrets_nobody_knows_is_not_shown(
    failed: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    text = opened(failed, "b")
    assert text and "epoch 89" not in text
    assert "not shown: the values of HF_TOKEN are not known" in text
    monkeypatch.setenv("HF_TOKEN", "correct-horse")
    text = opened(failed, "b")
    assert text and "epoch 89 of […] […]" in text and "correct-horse" not in text


def test_a_log_is_asked_for_once_in_two_seconds_however_many_read_it(
    failed: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def read(site: object, rows: object, name: str, run: str, **more: object) -> str:
        reads.append(name)
        return name

    monkeypatch.setattr(board_module, "_opened", read)
    opener = board_module.Opener(failed.site)
    opener.rows = board_module._rows(failed.site, failed.look(), board_module.NOTHING)
    assert [opener.opened("b") for _ in range(3)] == ["b"] * 3 and reads == ["b"]
    assert opener.opened("a") == "a" and reads == ["b", "a"]


def test_a_file_has_lines_of_logs_only_where_that_was_typed(
    failed: RunOnDisk, tmp_path: Path
) -> None:
    know(failed)
    path = tmp_path / "page.html"
    board(failed.project, to=str(path))
    bare = path.read_text(encoding="utf-8")
    assert '<template data-cell="b">' in bare and "OUT_OF_MEMORY (M2)" in bare
    assert "epoch 8" not in bare and "line 7" not in bare
    board(failed.project, to=str(path), has_logs=True)
    told = path.read_text(encoding="utf-8")
    assert "epoch 89 of […] […]" in told and "line 7" in told
    with pytest.raises(InputError, match="only with --to FILE"):
        board(failed.project, is_served=True, has_logs=True)


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of another folder that somebody launched from this machine; its name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "elsewhere"
    (root / "queues").mkdir(parents=True)
    (root / "train.py").write_text("")
    (root / "queues" / "q.txt").write_text("- recon 3 --lr 0.5\n")
    job = "name: wide\ncommand: train.py\nlauncher: python\nartifacts: [m.json]\n"
    (root / "job.yaml").write_text(f"{job}queues: {{queues/q.txt: box-a}}\n")
    home.remember_run("wide", root / "job.yaml", "local")
    return "wide"


def test_another_run_shares_the_file_and_one_that_nobody_launched_is_refused(
    run: RunOnDisk, other: str, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    assert board(run.project, to=str(path), beside=[other]) == 0
    page = path.read_text(encoding="utf-8")
    assert "<title>demo · wide</title>" in page and "3 cells" in page
    assert '<template data-cell="demo/b">' in page and "wide/recon_lr0.5" in page
    with pytest.raises(InputError, match=r"no run 'wid' .* \(did you mean 'wide'\?\)"):
        board(run.project, to=str(path), beside=["wid"])


def test_cells_of_both_runs_open_in_a_page_that_is_served(
    run: RunOnDisk, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str | None] = []

    def as_they_come(looks: object) -> Iterator[tuple[int, RunView]]:
        for cell in ("demo/b", "wide/recon_lr0.5", "b", "lost/b"):
            told.append(servers[0].opened(cell))
        yield 1, RunView("wide", run.look().at, (), ())
        told.append(servers[0].states[-1].text)
        raise KeyboardInterrupt

    servers: list[server.PageServer] = []

    class Noted(server.PageServer):
        def __init__(self, port: int) -> None:
            super().__init__(port)
            servers.append(self)

    monkeypatch.setattr(board_module, "_as_they_come", as_they_come)
    monkeypatch.setattr(server, "PageServer", Noted)
    assert board(run.project, is_served=True, beside=[other]) == 130
    one, two, bare, lost, page = told
    assert one and 'data-cell="demo/b"' in one and two and "wide/recon_lr0.5" in two
    assert bare is None and lost is None
    assert page and 'data-number="2"' in page and "demo/b" in page and "2 cells" in page


def test_the_looks_of_several_runs_come_as_they_are_made(run: RunOnDisk) -> None:
    """One whose box takes its time holds up no other."""
    ready, view = threading.Event(), run.look()

    def slow() -> Iterator[RunView]:
        ready.wait()
        yield view

    came = board_module._as_they_come([slow(), iter([view, view])])
    assert [next(came)[0], next(came)[0]] == [1, 1]
    ready.set()
    assert next(came)[0] == 0

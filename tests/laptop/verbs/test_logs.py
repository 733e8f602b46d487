from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from far_boxes import make_far_run
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_started,
    cell_verified,
    held,
    make_run,
)

from boxcar.laptop.run.log_source import BoxLog, FileLog
from boxcar.laptop.verbs.logs import followed, logs, readable
from boxcar.shared.errors import InputError


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path)


def scratch_log(run: RunOnDisk, cell: str, data: bytes) -> Path:
    path = run.project.scratch("box-a").log(cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_the_last_lines_are_shown_and_what_is_unfinished(run, capsys):
    scratch_log(run, "a", b"one\ntwo\nthree\nhalf")
    assert logs(run.project, cell="a", lines=2) == 0
    assert capsys.readouterr().out == "two\nthree\nhalf\n"


@pytest.mark.parametrize("lines", [0, 1, 3, 20_000, 30_000])
def test_the_last_lines_are_right_over_block_limits(tmp_path, lines):
    text = b"".join(b"line %d\n" % number for number in range(20_000))
    path = tmp_path / "log"
    path.write_bytes(text)
    tail, end = FileLog(path).end(lines)
    assert (tail.count(b"\n"), end) == (min(lines, 20_000), len(text))
    assert text.endswith(tail)


def test_the_log_is_found_on_the_tier_and_in_the_results_once_scratch_is_gone(run, capsys):
    for path, text in (
        (run.project.results.cell("a") / "a.log", "pulled"),
        (run.site.tier.cell("a") / "a.log", "published"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(f"{text}\n")
        assert logs(run.project, cell="a") == 0
        assert capsys.readouterr().out == f"{text}\n"
    scratch_log(run, "a", b"running\n")
    logs(run.project, cell="a")
    assert capsys.readouterr().out == "running\n"


def test_a_log_cannot_drive_the_terminal(run, capsys):
    scratch_log(run, "a", b"\x1b]0;title\x07\x1b[2J\ttab [red]\xff\n")
    logs(run.project, cell="a")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\ttab [red]\N{REPLACEMENT CHARACTER}\n" in out


def test_of_a_progress_bar_the_last_state_is_shown():
    chunks = [b"  5%\r 10%\r", b" 50%", b"\r100%\n", b"windows\r\n", b"\r\r\n", b" 7%\r 8%\r"]
    assert list(readable(chunks)) == ["100%", "windows", "", " 8%"]


def test_a_chunk_may_end_anywhere():
    data = "épôque 1\r\népôque 2\rlast\n".encode()
    pieces = [data[i : i + 1] for i in range(len(data))]
    assert list(readable(pieces)) == ["épôque 1", "last"]


def test_an_unknown_cell_is_refused_with_the_nearest_name(tmp_path):
    run = make_run(tmp_path, {"queue_1": ["configs/recon_baseline.yaml recon"]})
    with pytest.raises(InputError, match="did you mean 'recon_baseline'"):
        logs(run.project, cell="recon_baselin")
    with pytest.raises(InputError, match="it has: recon_baseline"):
        logs(run.project, cell="../../etc/passwd")


@pytest.mark.parametrize("follow", [False, True])
def test_a_cell_that_has_not_started_is_a_sentence_and_exit_1(run, capsys, follow):
    assert logs(run.project, cell="b", follow=follow) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "b: no log yet; the cell is queued" in said.err


def test_follow_waits_for_the_first_line_of_a_cell_that_an_agent_has_still_to_begin(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        threading.Timer(0.2, _begin, [run]).start()
        assert logs(run.project, cell="b", follow=True) == 0
    said = capsys.readouterr()
    assert said.out == "one\n"
    assert said.err.count("b is queued; waiting for its log") == 1


def _begin(run):
    run.say("queue_1", cell_verified("a"), cell_started("b"))
    scratch_log(run, "b", b"one\n")
    run.say("queue_1", cell_verified("b"))


def test_with_json_each_line_is_a_document_and_what_is_not_there_an_error(run, capsys):
    scratch_log(run, "a", b"one\ntwo \xff\n")
    assert logs(run.project, cell="a", as_json=True) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["one", "two \ufffd"]
    assert {(line["format"], line["cell"]) for line in lines} == {("boxcar.logs/1", "a")}
    assert logs(run.project, cell="b", as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["verb"]) == ("boxcar.error/1", "logs")
    assert "no log yet" in found["messages"][0]["text"]


def test_follow_shows_what_comes_and_ends_with_the_cell(run, capsys):
    log = scratch_log(run, "a", b"one\ntwo\n")
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        threading.Timer(0.3, _go_on, (run, log)).start()
        assert logs(run.project, cell="a", follow=True, lines=1) == 0
    assert capsys.readouterr().out == "two\nthree\nfour\n"


def _go_on(run, log):
    append(log, b"three\n")
    append(log, b"four\n")
    run.say("queue_1", cell_verified("a"))


def test_follow_goes_on_over_a_retry_and_ends_with_a_failure(run, capsys):
    log = scratch_log(run, "a", b"first attempt\n")
    retried = {"cell": "a", "attempt": 1, "failure": "OOM", "reason": "r", "wait_s": 1.0}
    run.say("queue_1", agent_started(), cell_started("a"), ("cell.retried", retried))
    with held(run.site.tier.lock("queue_1")):
        threading.Timer(0.3, _fail_again, (run, log)).start()
        assert logs(run.project, cell="a", follow=True) == 0
    assert capsys.readouterr().out == "first attempt\nsecond attempt\n"


def _fail_again(run, log):
    run.say("queue_1", cell_started("a", attempt=2))
    append(log, b"second attempt\n")
    run.say("queue_1", cell_failed("a"))


def test_follow_ends_when_the_agent_and_the_attempt_are_gone(run, capsys):
    scratch_log(run, "a", b"one\n")
    run.say("queue_1", agent_started(), cell_started("a"))
    assert logs(run.project, cell="a", follow=True) == 0
    assert capsys.readouterr().out == "one\n"


def test_follow_goes_on_while_the_attempt_outlives_its_agent(run, capsys):
    log = scratch_log(run, "a", b"one\n")
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(log) as attempt:
        threading.Timer(0.7, _end_orphan, (log, attempt)).start()
        assert logs(run.project, cell="a", follow=True) == 0
    assert capsys.readouterr().out == "one\ntwo\n"


def _end_orphan(log, attempt):
    append(log, b"two\n")
    attempt.stdin.close()


def test_follow_begins_anew_where_the_file_was_replaced(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"a long line of the run before\n")
    answers = iter([lambda: path.write_bytes(b"new\n") < 0, path.unlink, lambda: True])
    assert list(followed(FileLog(path), 1, lambda: bool(next(answers)()))) == [
        b"a long line of the run before\n",
        b"new\n",
    ]


def test_over_ssh_the_box_is_asked_while_the_cell_runs_and_the_results_after_it(
    tmp_path, monkeypatch, capsys
):
    run = make_far_run(tmp_path, monkeypatch)
    scratch_log(run.agents, "a", b"on the box\n")
    pulled = run.project.results.cell("a") / "a.log"
    pulled.parent.mkdir(parents=True)
    pulled.write_text("as it was pulled\n")
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    assert logs(run.project, cell="a") == 0
    run.agents.say("queue_1", cell_verified("a"))
    assert logs(run.project, cell="a") == 0
    assert capsys.readouterr().out == "on the box\nas it was pulled\n"
    assert logs(run.project, cell="b") == 1


def test_the_log_of_a_verified_cell_needs_no_living_box(tmp_path, monkeypatch, capsys):
    run = make_far_run(tmp_path, monkeypatch)
    published = run.agents.site.tier.cell("a") / "a.log"
    published.parent.mkdir(parents=True, exist_ok=True)
    published.write_text("as it was published\n")
    run.agents.say("queue_1", agent_started(), cell_started("a"), cell_verified("a"))
    run.world.cut.add("box-a")
    assert logs(run.project, cell="a") == 0, "box-b sees the tier"
    run.world.cut.add("box-b")
    pulled = run.project.results.cell("a") / "a.log"
    pulled.parent.mkdir(parents=True)
    pulled.write_text("as it was pulled\n")
    asked = len(run.world.asked)
    assert logs(run.project, cell="a") == 0
    assert len(run.world.asked) == asked, "nobody is waited for"
    assert capsys.readouterr().out == "as it was published\nas it was pulled\n"


def test_over_a_link_that_drops_and_comes_back_nothing_is_lost(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(BoxLog, "poll_s", 0.01)
    run = make_far_run(tmp_path, monkeypatch)
    path = scratch_log(run.agents, "a", b"one\n")
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    asked, pauses_s = [], []

    def happen(box, told):
        asked.append(told)
        if len(asked) == 6:
            run.world.cut.add("box-a")
            append(path, b"two\n")
            run.agents.say("queue_1", cell_verified("a"))

    def pause(seconds):
        pauses_s.append(seconds)
        if len(pauses_s) == 20:
            run.world.cut.clear()

    run.world.change = happen
    monkeypatch.setattr("boxcar.laptop.verbs.logs.time.sleep", pause)
    with held(run.agents.site.tier.lock("queue_1")):
        assert logs(run.project, cell="a", follow=True) == 0
    assert capsys.readouterr().out == "one\ntwo\n"
    assert run.world.times("box-a") > 6, (
        "the connection was lost, and the journal said that it is over"
    )

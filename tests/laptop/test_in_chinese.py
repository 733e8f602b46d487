"""Where the locale is Chinese, what a run that goes well shows has no English sentence in it."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run
from run_on_disk import (
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    queue_done,
)
from run_on_disk import make_run as make_run_on_disk

from boxcar.laptop.common.yaml_models import load
from boxcar.laptop.fitness import rules
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.hosts import ssh_errors
from boxcar.laptop.places.open_site import SITES
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.profiles.schema import ProfileModel
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.news import changes
from boxcar.laptop.verbs import audit
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.drain import drain
from boxcar.laptop.verbs.explain import explain
from boxcar.laptop.verbs.init import init
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.repair import repair
from boxcar.laptop.verbs.status import status
from boxcar.laptop.verbs.stop import stop
from boxcar.laptop.verbs.verify import verify
from boxcar.shared.errors import BoxcarError, InputError, message_of
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.manifest import Manifest
from boxcar.shared.sentence import Sentence, _, in_language
from boxcar.shared.wire import envelope, run_asks

# What is typed, and where something lies.
NO_SENTENCE = re.compile(r"(?:boxcar|invoke) [\w -]+|/\S+|\{[^}]*\}|`[^`]*`|\S+\.\S+")
ENGLISH = re.compile(r"(?<![\w-])[A-Za-z']+ [a-z']+ [a-z']+")
QUOTED = re.compile(r"“[^”]*”")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def _reads_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")


def english(text: str) -> list[str]:
    """Three words of English in a row, line by line."""
    return [line for line in text.splitlines() if ENGLISH.search(NO_SENTENCE.sub("", line))]


def test_three_words_of_english_are_seen() -> None:
    assert english("profile local: this machine, because no other was named") != []
    assert english("下一步：boxcar down") == []


def test_a_draft_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, json\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--epochs', type=int, default=3)\n"
        "p.add_argument('--out')\n"
        "a = p.parse_args()\n"
        "json.dump({}, open(a.out + '/metrics.json', 'w'))\n"
    )
    assert init(tmp_path, yes=True) == 0
    told = capsys.readouterr()
    table = told.out.partition("queues/")[0]
    assert CHINESE.search(table) and english(table + told.err) == []


def test_where_a_run_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run_on_disk(tmp_path)
    for queue, cells in (("queue_1", "ab"), ("queue_2", "c")):
        run.say(queue, agent_started(), *map(cell_verified, cells), queue_done())
    status(run.project)
    told = capsys.readouterr()
    assert "已完成" in told.out and "已核验" in told.out
    assert english(told.out + told.err) == []


OOM = "the GPU has too little memory for this cell: RuntimeError: CUDA out of memory"


def test_why_a_cell_failed_and_what_happened_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run_on_disk(tmp_path)
    failed = ("cell.failed", cell_failed("a")[1] | {"failure": "M2", "reason": OOM})
    run.say("queue_1", agent_started(), ("cell.claimed", {"cell": "a"}), cell_started("a"))
    run.say("queue_1", cell_progress("a", 10, loss=0.5), failed, cell_verified("b"), queue_done())
    for cell in "abc":
        explain(run.project, cell=cell)
    told = capsys.readouterr()
    assert "由 queue_1 领取" in told.out and "显存不足" in told.out
    # What the log said stays as it is.
    said = (told.out + told.err).replace("RuntimeError: CUDA out of memory", "")
    assert english(said) == []


def test_drain_stop_and_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run_on_disk(tmp_path)
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    for verb in (drain, stop, repair):
        verb(run.project)
    told = capsys.readouterr()
    assert CHINESE.search(told.err) and english(told.out + told.err) == []


def without_tier(folder: Path) -> Project:
    run = make_run_on_disk(folder)
    shutil.rmtree(run.site.tier.root)
    return run.project


MOMENTS = (
    "no job.yaml",
    "an unknown profile",
    "an unknown cell",
    "an unknown queue",
    "an unknown box",
    "nothing launched yet",
    "a file that is gone",
)


def bad_moments(tmp_path: Path) -> dict[str, Callable[[], object]]:
    run = make_run_on_disk(tmp_path / "run")
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    nowhere = tmp_path / "nowhere" / "job.yaml"
    return {
        "no job.yaml": lambda: open_project(nowhere, "", kinds=SITES),
        "an unknown profile": lambda: load_profile("lokal", tmp_path),
        "an unknown cell": lambda: explain(run.project, cell="nope"),
        "an unknown queue": lambda: drain(run.project, queues=["nope"]),
        "an unknown box": lambda: drain(run.project, boxes=["nope"]),
        "nothing launched yet": lambda: pull(without_tier(tmp_path / "new")),
        "a file that is gone": lambda: load(tmp_path / "gone.yaml", ProfileModel),
    }


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_ordinary_bad_moment(moment: str, tmp_path: Path) -> None:
    with pytest.raises(BoxcarError) as refused:
        bad_moments(tmp_path)[moment]()
    said = refused.value.messages[0].typed(language="zh")
    assert CHINESE.search(said) and english(said) == [], said


@pytest.mark.parametrize(
    "said",
    [
        "ssh: Could not resolve hostname box-a: Name or service not known",
        "ssh: connect to host box-a port 22: Connection refused",
        "ssh: connect to host box-a port 22: Connection timed out",
        "root@box-a: Permission denied (publickey).",
    ],
)
def test_a_host_that_cannot_be_reached(said: str) -> None:
    refused = ssh_errors.read_ssh_error("box-a", said)
    assert refused is not None
    told = refused.messages[0].typed(language="zh")
    assert CHINESE.search(told) and english(told.replace(said, "")) == [], told


def test_what_has_changed_in_it(tmp_path: Path) -> None:
    run = make_run_on_disk(tmp_path)
    run.say("queue_1", agent_started(), cell_verified("a"))
    lines = changes(None, run.look())
    assert all(isinstance(line, Sentence) for line in lines)
    assert english("\n".join(line.said("zh") for line in lines if isinstance(line, Sentence))) == []


def test_verify_and_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run: FinishedRun = make_run(tmp_path)
    run.copy_here()
    verify(run.project)
    told = capsys.readouterr()
    assert "已核验" in told.out and english(told.out + told.err) == []
    down(run.project, approve="0123456789ab")
    told = capsys.readouterr()
    assert english(told.out + told.err) == []


def test_a_row_of_an_audit_in_a_line() -> None:
    row = Row(rules.ALL, "clock", "ok", _("as here"))
    said = audit.line(rules.ALL, row)
    assert said == "OK: all: box clock: as here"
    assert english(said.said("zh")) == []


@pytest.mark.parametrize(
    "text",
    ["a: b: c", "a: @x", "a:\n\tb: 1", "a: [1", "a: 'x", "a: *x", 'a: "\\d"', "a: >\nb", "a: ]"],
)
def test_yaml_that_is_none_is_told_without_words_of_its_library(text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(BoxcarError) as refused:
        load(path, ProfileModel)
    said = refused.value.messages[0].typed(language="zh")
    assert CHINESE.search(said) and english(QUOTED.sub("", said)) == [], said


def test_what_is_damaged_and_what_the_system_refuses(tmp_path: Path) -> None:
    damaged = tmp_path / "receipt.json"
    damaged.write_text("{")
    with pytest.raises(BoxcarError) as refused:
        receipt.read_cell(damaged)
    said = refused.value.messages[0].typed(language="zh")
    assert said.endswith(
        "“Expecting property name enclosed in double quotes: line 1 column 2 (char 1)”"
    )
    full = OSError(errno.ENOSPC, "No space left on device", "/data/x")
    assert message_of(full).typed(language="zh") == "/data/x：磁盘空间不足"
    assert str(message_of(full)) == "/data/x: No space left on device"


def test_what_a_box_answers(tmp_path: Path) -> None:
    """Its English, and what it was made of: an error of the box, and sentences of its answer."""
    said = InputError(_("{queue}: its agent is already running; it was left alone", queue="q1"))
    line = envelope.write_answer(envelope.error(InputError, message_of(said)))
    with pytest.raises(InputError) as refused:
        envelope.read_answer(
            run_asks.Start("q1", "0" * 64, None, ("tmux",), None), "box-a", 0, line, ""
        )
    assert str(refused.value) == "box-a: q1: its agent is already running; it was left alone"
    assert refused.value.said("zh") == "box-a：q1：它的 agent 已在运行，没有改动它"


def test_a_warning_and_a_doubt_in_a_file_keep_what_they_were_made_of() -> None:
    warning = _("{path} holds only empty files", path="ckpt")
    made = Manifest("r", "a", "q", "b", "x", 1, "t", "-", 1, "", "", (), warnings=(warning, "old"))
    data = codec.to_document(made)
    heard = codec.from_document(Manifest, data, "manifest.json")
    assert heard == made and codec.to_document(heard) == data
    assert [in_language(text, "zh") for text in heard.warnings] == ["ckpt 只含空文件", "old"]

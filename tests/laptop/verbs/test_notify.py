"""`notify --test` against real robots on 127.0.0.1, from this machine and from a box of it."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from robot import NO, TOKEN, YES, Robot

from boxcar.laptop.hosts import ask_over_ssh
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.verbs.notify import notify
from boxcar.shared.errors import Command, InputError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LINES = (
    'feishu: {url: "env:FEISHU_URL", secret: "env:FEISHU_SECRET"}',
    'wecom: {url: "env:WECOM_URL"}',
    'webhook: {url: "env:HOOK_URL", secret: "env:HOOK_SECRET"}',
)


def make(root: Path, *lines: str) -> Project:
    for name in ("configs/a.yaml", "train.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    (root / "q.txt").write_text("configs/a.yaml seg 1\n")
    listed = "".join(f"  - {line}\n" for line in lines)
    (root / "job.yaml").write_text(
        "name: demo\ncommand: train.py --config {cfg} --out {out}\nlauncher: python\n"
        "queues: {q.txt: box-a}\nartifacts: [m.json]\nlanguage: en\n"
        + (f"notify:\n{listed}" if lines else "")
    )
    return open_project(root / "job.yaml", "local")


def environ(robot: Robot, **more: str) -> dict[str, str]:
    url = robot.chat().url
    found = {
        "FEISHU_URL": url,
        "FEISHU_SECRET": "feishu-secret-1",
        "WECOM_URL": f"{url}?key={TOKEN}",
    }
    return {"PATH": "/usr/bin:/bin", **found, "HOOK_URL": url, "HOOK_SECRET": SECRET, **more}


@pytest.mark.parametrize("box", ["", "box-a"])
def test_each_endpoint_gets_one_message_and_its_own_answer_is_shown(
    box: str, robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make(tmp_path, *LINES)
    robot.last = (200, {}, b'{"code": 0, "errcode": 0, "msg": "thanks"}')
    assert notify(project, is_test=True, box=box, environ=environ(robot)) == 0
    told = capsys.readouterr()
    assert [line.split()[:2] for line in told.out.splitlines()[2:5]] == [
        ["feishu", "delivered"],
        ["wecom", "delivered"],
        ["webhook", "delivered"],
    ]
    assert told.out.count("thanks") == 3
    assert "3 messages delivered" in told.err
    [text] = [body["content"]["text"] for body in robot.bodies if "content" in body]
    assert text.startswith("Boxcar demo: a test message\n")
    assert (f"sent from box {box}" if box else "sent from the laptop") in text


def test_one_that_is_not_taken_ends_with_1_in_the_services_own_words(
    robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot.last = (
        200,
        {},
        b'{"errcode": 93000, "errmsg": "invalid webhook url %s"}' % TOKEN.encode(),
    )
    project = make(tmp_path, *LINES)
    assert notify(project, is_test=True, only=["wecom"], environ=environ(robot)) == 1
    told = capsys.readouterr()
    assert "refused" in told.out
    assert "invalid webhook url …" in told.out
    assert TOKEN not in told.out + told.err


def test_a_clock_that_is_off_by_an_hour_is_named_with_its_offset(
    robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot.date = formatdate(time.time() - 3700, usegmt=True)
    robot.last = (200, {}, b'{"code": 19021, "msg": "sign match fail"}')
    project = make(tmp_path, LINES[0])
    assert notify(project, is_test=True, environ=environ(robot)) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "sign match fail" in told
    assert "(the clock here is 62 min ahead of the service's)" in told


def test_a_document_has_no_secret_and_what_is_off_is_named(
    robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot.last = (200, {}, NO)
    project = make(tmp_path, *LINES)
    given = environ(robot, WECOM_URL="")
    assert notify(project, is_test=True, as_json=True, environ=given) == 1
    told = capsys.readouterr()
    feishu, wecom, webhook = json.loads(told.out)["endpoints"]
    assert (feishu["verdict"], feishu["status"]) == ("refused", 200)
    assert (wecom["verdict"], wecom["variables"]) == ("off", ["WECOM_URL"])
    assert webhook["verdict"] == "taken"
    for secret in (TOKEN, "feishu-secret-1", SECRET):
        assert secret not in told.out + told.err


@pytest.mark.parametrize("box", ["", "box-a"])
def test_no_secret_is_in_the_words_of_a_process_or_stays_in_a_file(
    box: str, robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []
    run = ask_over_ssh.subprocess.run

    def seen(command: list[str], **more: Any) -> Any:
        words.extend(command)
        return run(command, **more)

    monkeypatch.setattr(ask_over_ssh.subprocess, "run", seen)
    robot.last = (200, {}, YES["feishu"])
    notify(make(tmp_path, LINES[0]), is_test=True, box=box, environ=environ(robot))
    assert words
    assert TOKEN not in " ".join(words)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]


def test_two_of_a_kind_have_names_of_their_own(robot: Robot, tmp_path: Path) -> None:
    project = make(tmp_path, LINES[1], 'wecom: {url: "env:OTHER_URL"}')
    robot.last = (200, {}, YES["wecom"])
    given = environ(robot, OTHER_URL=f"{robot.chat().url}/other")
    assert notify(project, is_test=True, only=["wecom 2"], environ=given) == 0
    assert len(robot.bodies) == 1
    assert notify(project, is_test=True, only=["wecom"], environ=given) == 0
    assert len(robot.bodies) == 3


def test_without_the_flag_nothing_is_sent(
    robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notify(make(tmp_path, *LINES), environ=environ(robot, HOOK_URL="")) == 0
    told = capsys.readouterr()
    assert "FEISHU_URL, FEISHU_SECRET" in told.out
    assert "HOOK_URL is not set" in told.err
    assert "notify --test" in told.err
    assert robot.bodies == []


def test_a_job_that_tells_nobody_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notify(make(tmp_path), is_test=True, environ={}) == 0
    assert "invoke explain --about notify" in capsys.readouterr().err


def test_a_name_and_a_box_that_there_are_not_are_refused(robot: Robot, tmp_path: Path) -> None:
    project = make(tmp_path, *LINES)
    with pytest.raises(InputError, match="did you mean 'feishu'"):
        notify(project, is_test=True, only=["feisu"], environ=environ(robot))
    with pytest.raises(InputError, match="no box 'box-z'"):
        notify(project, is_test=True, box="box-z", environ=environ(robot))
    with pytest.raises(InputError) as caught:
        notify(project, box="box-a", environ=environ(robot))
    assert caught.value.messages[0].command == Command("notify", ("--test",))
    assert robot.bodies == []


def test_the_address_of_another_service_is_refused_before_anything_is_sent(
    robot: Robot, tmp_path: Path
) -> None:
    dingtalk = "https://oapi.dingtalk.com/robot/send?access_token=abcdefgh"
    with pytest.raises(InputError, match="an address of dingtalk") as caught:
        notify(make(tmp_path, *LINES), is_test=True, environ=environ(robot, FEISHU_URL=dingtalk))
    assert "abcdefgh" not in str(caught.value)
    assert robot.bodies == []

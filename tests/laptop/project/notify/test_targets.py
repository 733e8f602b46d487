"""`notify:` of job.yaml, and what goes to the boxes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.from_environment import (
    credential_names,
    credentials,
    missing_for_boxes,
    targets,
)
from boxcar.laptop.project.job import Job, read_job
from boxcar.shared.channels import known
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import InputError

LEAST = "name: demo\ncommand: train.py\nartifacts: [best.pth]\nqueues: {queues/q.txt: box-a}\n"
FEISHU = "https://open.feishu.cn/open-apis/bot/v2/hook/abcdef"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def job(tmp_path: Path, *lines: str) -> Job:
    path = tmp_path / "job.yaml"
    path.write_text(LEAST + "notify:\n" + "".join(f"  - {line}\n" for line in lines))
    return read_job(path)


def problem(tmp_path: Path, *lines: str) -> str:
    with pytest.raises(InputError) as caught:
        job(tmp_path, *lines)
    return str(caught.value)


def test_a_robots_url_as_a_webhook_is_refused_with_the_line_to_write(tmp_path: Path) -> None:
    said = problem(tmp_path, f'webhook: {{url: "{FEISHU}", secret: "env:S"}}')
    assert 'Write: - feishu: {url: "env:FEISHU_URL"}' in said
    assert "abcdef" not in said


def test_the_same_where_the_url_comes_from_the_environment(tmp_path: Path) -> None:
    found = job(tmp_path, 'webhook: {url: "env:U", secret: "env:S"}')
    with pytest.raises(InputError) as caught:
        targets(found, {"U": FEISHU, "S": SECRET})
    assert 'U: this is an address of feishu, which takes no webhooks. Write: - feishu: {url: "' in (
        str(caught.value)
    )
    assert "abcdef" not in str(caught.value)


@pytest.mark.parametrize("name", known.NAMES)
def test_the_line_that_a_refusal_names_is_read(name: str, tmp_path: Path) -> None:
    [notify] = job(tmp_path, known.LINES[name]).notify
    assert notify.name == name


def test_every_setting_of_a_chat_goes_to_the_box_and_nothing_is_in_the_job(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        'dingtalk: {url: "env:D", secret: "env:DS"}',
        'telegram: {token: "env:T", chat: "env:C"}',
        'ntfy: {url: "env:N", token: "env:NT"}',
        'autodl: {token: "env:A", from: box}',
    )
    environ = {"D": "https://oapi.dingtalk.com/robot/send?access_token=x", "DS": "SECx"}
    environ |= {"T": "1:x", "C": "-4711", "N": "https://ntfy.example.org/t", "NT": "tk_x", "A": "a"}
    assert credential_names(found) == ("D", "DS", "T", "C", "N", "NT", "A")
    assert credentials(targets(found, environ)) == {
        "webhooks": [],
        "channels": [
            {"channel": "dingtalk", "url": environ["D"], "secret": "SECx", "to": ""},
            {
                "channel": "telegram",
                "url": "https://api.telegram.org",
                "secret": "1:x",
                "to": "-4711",
            },
            {"channel": "ntfy", "url": environ["N"], "secret": "tk_x", "to": ""},
            {
                "channel": "autodl",
                "url": known.CHANNELS["autodl"].url,
                "secret": "a",
                "to": "",
            },
        ],
    }


def test_a_chat_without_its_url_is_off_with_a_warning(tmp_path: Path) -> None:
    found = job(tmp_path, 'feishu: {url: "env:F"}')
    [one] = targets(found, {})
    assert one.endpoint is None
    assert one.warning == "F is not set: nothing will be sent to feishu"
    assert missing_for_boxes(found, {}) == ["F"]
    assert missing_for_boxes(found, {"F": FEISHU}) == [""]


def test_a_chat_without_its_secret_is_refused(tmp_path: Path) -> None:
    found = job(tmp_path, 'feishu: {url: "env:F", secret: "env:S"}')
    with pytest.raises(InputError, match=r"S is not set\. Type: export S="):
        targets(found, {"F": FEISHU})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("https://oapi.dingtalk.com/x", "F is an address of dingtalk. Write: - dingtalk: {url:"),
        ("open.feishu.cn/x", "F is not an http(s) URL with a host"),
        ("https://host/x\n", "F is not an http(s) URL with a host"),
    ],
)
def test_a_url_of_another_service_is_refused(value: str, told: str, tmp_path: Path) -> None:
    found = job(tmp_path, 'feishu: {url: "env:F"}')
    with pytest.raises(InputError) as caught:
        targets(found, {"F": value})
    assert told in str(caught.value)
    assert value.strip() not in str(caught.value)


def test_a_robot_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    found = job(tmp_path, 'feishu: {url: "env:F"}', 'feishu: {url: "env:G"}')
    with pytest.raises(InputError, match="one feishu is listed twice"):
        targets(found, {"F": FEISHU, "G": FEISHU})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f'feishu: {{url: "{FEISHU}"}}', "it is never written into a file"),
        ('telegram: {token: "123:abc", chat: "env:C"}', "it is never written into a file"),
        ('telegram: {token: "env:T"}', "chat"),
        ('email: {to: "a b@c", host: mail.example.org}', "expected one address"),
        ('email: {to: "a@b.c", host: "h;x"}', "expected the name of a mail server"),
        ('email: {to: "a@b.c", host: h, password: "hunter2"}', "it is never written into a file"),
        ('email: {to: "a@b.c", host: h, from: box}', "laptop"),
        ('apprise: {url: "mailto://u:p@h"}', "it is never written into a file"),
        ("{}", "expected one of webhook, feishu"),
        ('{feishu: {url: "env:F"}, lark: {url: "env:L"}}', "expected one of webhook, feishu"),
        ('feshu: {url: "env:F"}', "feishu"),
    ],
)
def test_a_notify_that_cannot_be_meant_is_refused(line: str, told: str, tmp_path: Path) -> None:
    said = problem(tmp_path, line)
    assert told in said
    assert "abcdef" not in said and "123:abc" not in said


def test_the_language_of_messages_is_one_of_two(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(LEAST + "language: zh\n")
    assert read_job(tmp_path / "job.yaml").language == "zh"
    (tmp_path / "job.yaml").write_text(LEAST + "language: fr\n")
    with pytest.raises(InputError, match="language"):
        read_job(tmp_path / "job.yaml")


@pytest.mark.parametrize(
    "line",
    [
        'autodl: {token: "env:A"}',
        'feishu: {url: "env:A", from: laptop}',
        'email: {to: "me@example.org", host: mail.example.org, password: "env:A"}',
        'apprise: {url: "env:A"}',
    ],
)
def test_what_this_machine_sends_goes_to_no_box(line: str, tmp_path: Path) -> None:
    found = job(tmp_path, line)
    environ = {"A": FEISHU}
    assert credential_names(found) == ()
    assert credentials(targets(found, environ)) == {"webhooks": [], "channels": []}
    [one] = targets(found, environ, "laptop")
    assert one.endpoint and FEISHU in (one.endpoint.url, one.endpoint.secret)


def test_the_server_of_an_e_mail_is_one_address_with_its_user_and_sender(tmp_path: Path) -> None:
    line = "email: {to: you@example.org, host: mail.example.org, user: me@example.org"
    found = job(tmp_path, line + ', port: 465, security: ssl, password: "env:P"}')
    [one] = targets(found, {"P": "hunter2"}, "laptop")
    url = "ssl://me%40example.org@mail.example.org:465/?sender=me%40example.org"
    assert one.endpoint == Endpoint("email", url, "hunter2", "you@example.org")


def test_every_line_is_a_target_with_the_variables_that_it_takes(tmp_path: Path) -> None:
    lines = [known.LINES[name] for name in ("feishu", "telegram", "feishu")]
    environ = {"TELEGRAM_TOKEN": "1:x", "TELEGRAM_CHAT": "-4711"}
    feishu, telegram, second = targets(job(tmp_path, *lines), environ)
    assert (feishu.label, feishu.off, feishu.endpoint) == ("feishu", "FEISHU_URL", None)
    assert telegram.variables == ("TELEGRAM_TOKEN", "TELEGRAM_CHAT")
    assert telegram.endpoint and telegram.endpoint.to == "-4711"
    assert (second.label, second.channel) == ("feishu 2", "feishu")
    assert "-4711" not in repr(telegram)


HEARTBEAT = 'heartbeat: {url: "env:H", every: 10m}'


def test_a_dead_mans_service_goes_to_the_boxes_and_is_no_channel_of_news(tmp_path: Path) -> None:
    found = job(tmp_path, HEARTBEAT, 'slack: {url: "env:U"}')
    environ = {"H": "https://hc-ping.com/a/{box}?create=1", "U": "https://hooks.slack.com/x"}
    given = credentials(targets(found, environ))
    assert given["heartbeats"] == [{"url": environ["H"], "every_s": "600"}]
    assert [one["channel"] for one in given["channels"]] == ["slack"]
    assert credential_names(found) == ("H", "U")
    assert missing_for_boxes(found, {}) == ["U"]
    [off, _] = targets(found, {"U": environ["U"]})
    assert "miss a box" in off.warning


def test_several_boxes_share_no_check(tmp_path: Path) -> None:
    found = job(tmp_path, HEARTBEAT)
    found = found.model_copy(update={"queues": {"a.txt": "box-a", "b.txt": ("box-b", "box-c")}})
    with pytest.raises(InputError, match=r"H: 3 boxes would share one check.*{box}") as caught:
        targets(found, {"H": "https://hc-ping.com/0123-4567"})
    assert "0123" not in str(caught.value)
    assert targets(found, {"H": "https://hc-ping.com/a/{box}"})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('heartbeat: {url: "env:H", every: 30s}', "at least 1m"),
        ('heartbeat: {url: "env:H", from: laptop}', "from"),
        ('heartbeat: {url: "https://hc-ping.com/a"}', "env:"),
        ("heartbeat:", "heartbeat"),
    ],
)
def test_a_heartbeat_that_cannot_be_is_refused(line: str, why: str, tmp_path: Path) -> None:
    assert why in problem(tmp_path, line)

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path

import pytest

from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import BoxcarError, DamagedError, InputError
from onbox.machine import credentials
from onbox.machine.credentials import Credentials, Webhook

KEY = "wandb-key-0123456789"
URL = "https://example.org/hooks/token-0123456789"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD = {"env": {"WANDB_API_KEY": KEY}, "webhooks": [{"url": URL, "secret": SECRET}]}


def write(folder: Path, content: object, mode: int = 0o600) -> Path:
    path = folder / "credentials.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def test_read_gives_what_was_written(tmp_path: Path) -> None:
    found = credentials.read(write(tmp_path, GOOD))

    assert found == Credentials({"WANDB_API_KEY": KEY}, (Webhook(URL, SECRET),))


CHAT = {"channel": "telegram", "url": URL, "secret": KEY, "to": "4711"}


def test_chats_and_the_language_of_their_reader_are_read(tmp_path: Path) -> None:
    found = credentials.read(write(tmp_path, GOOD | {"channels": [CHAT], "language": "zh"}))

    assert found.channels == (Endpoint("telegram", URL, KEY, "4711"),)
    assert found.language == "zh"
    assert not {KEY, URL, "4711"} & set(repr(found).split("'"))


def test_what_an_older_laptop_wrote_has_no_chats(tmp_path: Path) -> None:
    found = credentials.read(write(tmp_path, GOOD))

    assert (found.channels, found.language) == ((), "en")


@pytest.mark.parametrize(
    ("channels", "said"),
    [
        (URL, "channels: expected a list"),
        ([URL], r"channels\[0\].channel: expected one of feishu"),
        ([CHAT | {"channel": "pager"}], r"channels\[0\].channel: expected one of feishu"),
        ([CHAT | {"url": "ftp://x"}], r"channels\[0\].url: expected an http"),
        ([CHAT | {"secret": 1}], r"channels\[0\]: expected texts"),
    ],
)
def test_a_chat_that_is_none_is_said_by_its_field(
    channels: object, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DamagedError, match=said):
        credentials.read(write(tmp_path, {"channels": channels}))


def test_a_missing_file_has_no_credentials(tmp_path: Path) -> None:
    assert credentials.read(tmp_path / "none.json") == Credentials()


def test_both_parts_may_be_left_out(tmp_path: Path) -> None:
    assert credentials.read(write(tmp_path, {})) == Credentials()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, GOOD, mode)

    with pytest.raises(InputError, match=f"mode {mode:o}.*chmod 600"):
        credentials.read(path)


def test_a_file_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    with pytest.raises(InputError, match=f"belongs to user {owner}; expected user {owner + 1}"):
        credentials.read(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param('{"env": {"K": "' + KEY, "not a JSON document", id="torn"),
        pytest.param([KEY], "expected a JSON object", id="a list"),
        pytest.param({"env": [KEY]}, "env: expected names", id="env is a list"),
        pytest.param({"env": {"K": [KEY]}}, "env: expected names", id="value is a list"),
        pytest.param({"env": {"A=B": KEY}}, "env: expected names", id="name is none"),
        pytest.param({"env": {"K": f"{KEY}\0"}}, "env: expected names", id="NUL"),
        pytest.param({"webhooks": URL}, "webhooks: expected a list", id="webhooks is a text"),
        pytest.param({"webhooks": [URL]}, r"webhooks\[0\]: expected an object", id="no object"),
        pytest.param({"webhooks": [{"url": "ftp://token-0123456789"}]}, "http or https", id="ftp"),
        pytest.param({"webhooks": [{"url": "https://[token-0123456789"}]}, "http", id="no host"),
        pytest.param({"webhooks": [{"url": URL, "secret": "-" + KEY}]}, "base64", id="secret"),
        pytest.param({"webhooks": [{"url": URL, "secret": "whsec_"}]}, "base64", id="no secret"),
        pytest.param({"webhooks": GOOD["webhooks"] * 2}, "one url is listed twice", id="twice"),
    ],
)
def test_bad_content_is_said_by_field_and_never_by_value(
    tmp_path: Path, content: object, said: str
) -> None:
    with pytest.raises(DamagedError, match=said) as caught:
        credentials.read(write(tmp_path, content))

    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert "token-0123456789" not in shown
    assert SECRET not in shown


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(BoxcarError) as caught:
        credentials.read(write(tmp_path, {"env": 1, "webhooks": [{"url": 1, "secret": 1}]}))

    assert str(caught.value).count("expected") == 3


def test_no_repr_shows_a_value(tmp_path: Path) -> None:
    found = credentials.read(write(tmp_path, GOOD))

    shown = repr(found) + repr(found.webhooks) + str(found)
    assert not any(value in shown for value in (KEY, URL, SECRET))

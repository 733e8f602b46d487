from __future__ import annotations

import json
import os
import traceback
from pathlib import Path

import pytest

from boxcar.shared import names
from boxcar.shared.channels.answer import Endpoint
from boxcar.shared.errors import BoxcarError, DamagedError, InputError
from onbox.machine import credentials, secret_env
from onbox.machine.credentials import BoxSecrets, Credentials, Webhook

KEY = "wandb-key-0123456789"
URL = "https://example.org/hooks/token-0123456789"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD = {"env": {"WANDB_API_KEY": KEY}, "webhooks": [{"url": URL, "secret": SECRET}]}


def write(folder: Path, content: object, mode: int = 0o600) -> Path:
    path = folder / "credentials.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def test_read_gives_what_was_written(tmp_path):
    found = credentials.read(write(tmp_path, GOOD))
    assert found == Credentials({"WANDB_API_KEY": KEY}, (Webhook(URL, SECRET),))


CHAT = {"channel": "telegram", "url": URL, "secret": KEY, "to": "4711"}


def test_chats_and_the_language_of_their_reader_are_read(tmp_path):
    found = credentials.read(write(tmp_path, GOOD | {"channels": [CHAT], "language": "zh"}))
    assert found.channels == (Endpoint("telegram", URL, KEY, "4711"),)
    assert found.language == "zh"
    assert not {KEY, URL, "4711"} & set(repr(found).split("'"))


def test_what_an_older_laptop_wrote_has_no_chats(tmp_path):
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
def test_a_chat_that_is_none_is_said_by_its_field(channels, said, tmp_path):
    with pytest.raises(DamagedError, match=said):
        credentials.read(write(tmp_path, {"channels": channels}))


def test_a_missing_file_has_no_credentials(tmp_path):
    assert credentials.read(tmp_path / "none.json") == Credentials()


def test_both_parts_may_be_left_out(tmp_path):
    assert credentials.read(write(tmp_path, {})) == Credentials()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644])
def test_a_file_that_others_can_reach_is_refused(tmp_path, mode):
    path = write(tmp_path, GOOD, mode)
    with pytest.raises(InputError, match=f"mode {mode:o}.*chmod 600"):
        credentials.read(path)


def test_a_file_of_somebody_else_is_refused(tmp_path, monkeypatch):
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
def test_bad_content_is_said_by_field_and_never_by_value(tmp_path, content, said):
    with pytest.raises(DamagedError, match=said) as caught:
        credentials.read(write(tmp_path, content))
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert "token-0123456789" not in shown
    assert SECRET not in shown


def test_all_problems_are_listed_at_once(tmp_path):
    with pytest.raises(BoxcarError) as caught:
        credentials.read(write(tmp_path, {"env": 1, "webhooks": [{"url": 1, "secret": 1}]}))
    assert str(caught.value).count("expected") == 3


def test_no_repr_shows_a_value(tmp_path):
    found = credentials.read(write(tmp_path, GOOD))
    shown = repr(found) + repr(found.webhooks) + str(found)
    assert not any(value in shown for value in (KEY, URL, SECRET))


# --- the secrets of the box


WEBHOOK = {
    "url": "https://hooks.example/t0ken-of-it",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2L=",
}
TELEGRAM = {
    "channel": "telegram",
    "url": "https://chat.example/",
    "secret": "b0t-token",
    "to": "471142",
}


def written(path: Path, **record: object) -> str:
    new = path.with_name("new")
    new.write_text(json.dumps(record))
    new.chmod(0o600)
    new.replace(path)
    return str(path)


def test_the_values_of_variables_webhooks_and_chats_are_known(tmp_path):
    file = written(tmp_path / "c", env={"A": "value-of-a"}, webhooks=[WEBHOOK], channels=[TELEGRAM])
    known = BoxSecrets(file).known()
    for value in ("value-of-a", *WEBHOOK.values(), "b0t-token", "471142"):
        assert value not in known.left_out_of(f"no access with {value}")


def test_a_value_that_was_replaced_meanwhile_is_known_still_and_the_new_one_too(tmp_path):
    secrets = BoxSecrets(written(tmp_path / "c", env={"A": "old-value"}))
    assert "old-value" not in secrets.known().left_out_of("an old-value")
    written(tmp_path / "c", env={"A": "new-value"})
    assert secrets.known().left_out_of("old-value new-value") == "[…] […]"
    (tmp_path / "c").unlink()
    assert secrets.values() == {"old-value", "new-value"}


def test_a_file_that_is_not_there_or_not_ours_alone_tells_nothing(tmp_path):
    assert BoxSecrets().values() == BoxSecrets(str(tmp_path / "none")).values() == frozenset()
    file = Path(written(tmp_path / "c", env={"A": "a-value"}))
    file.chmod(0o644)
    assert BoxSecrets(str(file)).values() == frozenset()


# --- in the environment


def kept(folder: Path, record: object, mode: int = 0o600) -> str:
    path = folder / "credentials.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    path.chmod(mode)
    return str(path)


def test_a_training_gets_its_variables_whatever_the_rest_is(tmp_path):
    path = kept(tmp_path, {"env": {"HF_TOKEN": "x y"}, "webhooks": "none"})
    assert secret_env.read(path) == {"HF_TOKEN": "x y"}
    assert secret_env.read(str(tmp_path / "missing")) == {}
    assert secret_env.read(kept(tmp_path, {})) == {}


@pytest.mark.parametrize(
    "record", ["{", [], {"env": []}, {"env": {"A": 1}}, {"env": {"1A": "x"}}, {"env": {"A": "\0"}}]
)
def test_what_is_no_variable_is_refused_without_its_value(tmp_path, record):
    with pytest.raises(DamagedError, match=r"credentials\.json: (not a JSON|expected|env)"):
        secret_env.read(kept(tmp_path, record))


def test_what_others_can_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"mode 640, expected 600"):
        secret_env.read(kept(tmp_path, {"env": {"A": "secret"}}, 0o640))


@pytest.mark.parametrize(
    "name", ["A", "_a1", "aB_9", "", "1a", "a-b", "a b", "größe", "变量", "a\n"]
)
def test_a_name_is_one_by_the_rule_of_all_others(tmp_path, name):
    found = secret_env.problem_of({"env": {name: "x"}})
    assert (found is None) == bool(names.VARIABLE.fullmatch(name))

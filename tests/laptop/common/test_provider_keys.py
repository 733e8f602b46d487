"""A provider's key: where it comes from, who gets it (nobody), and where it may not stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from tiny_project import TRAIN, make_project

from boxcar.laptop.common import provider_keys
from boxcar.laptop.common.provider_keys import (
    NOTIFY,
    VARIABLES,
    find_key,
    fingerprint,
    hide_keys,
    need_key,
    notify_key,
)
from boxcar.laptop.project.job_values import EnvName
from boxcar.shared.errors import InputError

KEY = "a-key-of-an-account-59d1f0"
# What a child has in its environment, beside what it is there for.
LEAVES = """
import json as _json, os as _os
with open({seen!r}, "a") as _seen:
    print(_json.dumps(dict(_os.environ)), file=_seen)
"""


@pytest.fixture(autouse=True)
def _nothing_hidden(monkeypatch):
    monkeypatch.setattr(provider_keys, "_hidden", {})


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("vastai", ".config/vastai/vast_api_key", f"{KEY}\n"),
        ("vastai", ".vast_api_key", KEY),
        ("runpod", ".runpod/config.toml", f'[default]\napi_key = "{KEY}"\n'),
        ("runpod", ".runpod/config.toml", f"apiKey = '{KEY}'\napiurl = 'x'\n"),
        ("lambda", ".lambda_cloud/lambda_keys", f"api_key = {KEY}\n"),
    ],
)
def test_it_is_read_from_the_file_of_the_providers_own_program(tmp_path, name, file, text):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert find_key(name, {"HOME": str(tmp_path)}) == KEY
    variable = provider_keys.SOURCES[name].variable
    assert find_key(name, {"HOME": str(tmp_path), variable: "another"}) == "another"


def test_without_a_key_it_is_said_where_one_may_stand(tmp_path):
    with pytest.raises(InputError, match=r"VAST_API_KEY.*vast_api_key"):
        need_key("vastai", "vast.ai", {"HOME": str(tmp_path)})


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(tmp_path, key):
    with pytest.raises(InputError) as raised:
        find_key("runpod", {"HOME": str(tmp_path), "RUNPOD_API_KEY": key})
    assert key not in str(raised.value)


def test_a_fingerprint_tells_keys_apart_and_is_no_part_of_them():
    assert fingerprint(KEY) != fingerprint(KEY + "x") and len(fingerprint(KEY)) == 8
    assert fingerprint(KEY) not in KEY


def test_a_hidden_key_is_known_here_and_in_no_environment():
    environ = {"VAST_API_KEY": KEY, "PATH": "/bin", "HOME": "/nowhere"}
    hide_keys(environ)
    assert environ == {"PATH": "/bin", "HOME": "/nowhere"} and find_key("vastai", environ) == KEY


def test_autodls_hidden_token_still_sends_notifications(tmp_path):
    environ = {"AUTODL_TOKEN": KEY, "VAST_API_KEY": KEY}
    hide_keys(environ)
    assert environ == {} and notify_key("AUTODL_TOKEN") == KEY and notify_key("VAST_API_KEY") == ""
    project = make_project(tmp_path / "p", {"queue_1": ["configs/a.json recon 1"]})
    project.write_job(notify=[{"autodl": {"token": "env:AUTODL_TOKEN"}}])
    said = project.boxcar("notify", "--json", env={"AUTODL_TOKEN": KEY}).ended(0)
    assert "not set" not in said.out + said.err and KEY not in said.out + said.err


@pytest.mark.parametrize(
    ("where", "name"),
    [
        *((where, name) for where in ("env", "secrets") for name in sorted(VARIABLES)),
        *(("notify", name) for name in sorted(VARIABLES - NOTIFY)),
    ],
)
def test_a_job_that_would_send_one_to_a_box_is_refused(tmp_path, name, where):
    project = make_project(tmp_path / "p", {"queue_1": ["configs/a.json recon 1"]})
    changes = {
        "env": {"env": {name: "x"}},
        "secrets": {"secrets": [name]},
        "notify": {"notify": [{"feishu": {"url": f"env:{name}"}}]},
    }
    project.write_job(**changes[where])
    said = project.boxcar("plan", env={name: KEY}).ended(2)
    assert name in said.err and "never goes to a box" in said.err and KEY not in said.err


def test_a_profile_that_would_send_one_to_a_box_is_refused():
    with pytest.raises(ValidationError, match="never goes to a box"):
        TypeAdapter(EnvName).validate_python("RUNPOD_API_KEY")


def test_no_child_of_a_verb_has_one(tmp_path):
    project = make_project(tmp_path / "p", {"queue_1": ["configs/a.json recon 1"]})
    start = 'with (out / "history.txt")'
    project.write_job(smoke="--epochs 1")
    seen = tmp_path / "seen"
    leaves = LEAVES.format(seen=str(seen))
    (project.root / "train.py").write_text(TRAIN.replace(start, leaves + start, 1))
    names = dict.fromkeys(VARIABLES, KEY)
    project.boxcar("smoke", env=names).ended(0)
    project.boxcar("launch", "--no-smoke", env=names).ended(0)
    project.boxcar("watch", "--every", "1s", env=names).ended(0)
    children = [json.loads(line) for line in seen.read_text().splitlines()]
    assert len(children) >= 2, "of the smoke and of the run"
    assert all(not VARIABLES & child.keys() for child in children)
    assert files_with(tmp_path, KEY) == []


def test_ssh_has_none_either(tmp_path):
    project = make_project(tmp_path / "p", {"queue_1": ["configs/a.json recon 1"]})
    seen, fake = tmp_path / "seen", tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\nenv >> {seen}\nexit 255\n")
    fake.chmod(0o755)
    path = f"{fake.parent}:/usr/bin:/bin"
    project.boxcar("audit", "-p", "vastai", env=dict.fromkeys(VARIABLES, KEY) | {"PATH": path})
    assert "PATH=" in seen.read_text() and KEY not in seen.read_text()
    assert files_with(tmp_path, KEY) == []


def files_with(folder: Path, text: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path) for path in files if text.encode() in path.read_bytes()]

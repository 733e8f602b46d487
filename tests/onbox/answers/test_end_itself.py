"""A box ends itself by its own key: what it calls, once, and what of it is kept."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.files.own_end import read_own_end
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.answers import door, others
from onbox.machine import end_itself

KEY = "k3y-0123456789abcdef"
VAST = {"CONTAINER_ID": "28000023", "CONTAINER_API_KEY": KEY, "OTHER": "x"}
RUNPOD = {"RUNPOD_POD_ID": "a1b2", "RUNPOD_API_KEY": KEY}


class Provider:
    """A real server that answers as it was told to, and writes down what it was asked. Its paths
    are those of the published contracts: vast `DELETE /api/v0/instances/{id}/` and `PUT` with
    `state`, RunPod `POST /v2/pods/{id}/action` with `action`, November 2026. Featurize publishes
    none: `POST /virtual_machine/{id}/release` is what its client sends (PyPI 0.0.27).
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, Any]] = []
        self.status, self.body = 200, '{"success": true}'
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                told = json.loads(self.rfile.read(size)) if size else None
                key = self.headers["Authorization"] or self.headers["Token"]
                outer.asked.append((self.command, self.path, key, told))
                data = outer.body.encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_DELETE = do_PUT = do_POST = _answer

            def log_message(self, *_words: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Box:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.environ = root, dict(VAST)
        self.tier = DurablePaths(root / "tier", "tiny")
        self.scratch = ScratchPaths(root / "box", "tiny")
        self.started: list[tuple[list[str], dict[str, str]]] = []
        for folder in (*self.tier.folders(), self.scratch.root):
            folder.mkdir(parents=True)
        monkeypatch.setattr(end_itself, "first_environment", lambda: self.environ)
        monkeypatch.setattr(
            end_itself, "start_child", lambda words, env: self.started.append((words, env))
        )
        monkeypatch.setattr(end_itself, "PAUSE_S", 0.0)
        # The runs of other tests are at work on this machine, too.
        monkeypatch.setattr(others, "at_work_beside", lambda run: [])

    def ask(self, id_: str = "28000023", **more: Any) -> dict[str, Any]:
        places = {"durable_dir": str(self.root / "tier"), "data_dir": str(self.root / "box")}
        words = {"ask": "end_itself", "run": "tiny", **places, "queues": ("q1",), "beside": ()}
        words |= {"credentials": str(self.root / "c.json"), "provider": "vast", "id": id_}
        return door.answer(json.dumps(words | {"verb": "destroy"} | more).encode())

    def call(self) -> int:
        """What the child does that was started last."""
        (_verb, path, provider, verb), environ = self.started[-1]
        return end_itself.call_provider(Path(path), provider, verb, environ)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    return Box(tmp_path, monkeypatch)


def test_vast_is_called_by_the_boxs_own_key_and_once(box: Box, provider: Provider) -> None:
    box.environ["VAST_URL"] = provider.url
    begun_at = box.ask()["begun_at"]
    assert begun_at and box.started[0][1].keys() == {
        "CONTAINER_ID",
        "CONTAINER_API_KEY",
        "VAST_URL",
    }
    assert KEY not in " ".join(box.started[0][0])
    assert box.ask()["begun_at"] == begun_at and len(box.started) == 1, "it is under way"
    assert box.call() == 0
    wanted = ("DELETE", "/api/v0/instances/28000023/", f"Bearer {KEY}", None)
    assert provider.asked == [wanted]
    again = box.ask()
    assert (again["begun_at"], again["said"][:13]) == (begun_at, "vast v0: 200 ")
    assert len(box.started) == 1, "it was taken: whether it was done is for others to see"


def test_a_call_that_was_refused_is_kept_without_the_key_and_made_again(
    box: Box, provider: Provider
) -> None:
    box.environ["VAST_URL"] = provider.url
    provider.status, provider.body = 401, f'{{"error": "no rights for {KEY}"}}'
    box.ask()
    assert box.call() == 1
    kept = read_own_end(box.scratch.own_end)
    assert kept and kept.is_over and kept.by is None and "401" in kept.said
    assert KEY not in box.scratch.own_end.read_text()
    looked = box.ask(is_look=True)
    assert "begun_at" not in looked and "401" in looked["said"] and len(box.started) == 1
    assert box.ask()["begun_at"] and len(box.started) == 2


def test_a_200_that_says_no_is_no_yes(box: Box, provider: Provider) -> None:
    box.environ["VAST_URL"] = provider.url
    provider.body = '{"success": false, "error": "no_such_instance"}'
    box.ask(verb="stop")
    assert box.call() == 1
    assert provider.asked[0][0] == "PUT" and provider.asked[0][3] == {"state": "stopped"}


@pytest.mark.parametrize("said", [("destroy", "terminate", "delete"), ("stop", "stop", "stop")])
def test_runpod_is_asked_by_v2_and_then_by_its_own_program(
    box: Box, provider: Provider, monkeypatch: pytest.MonkeyPatch, said: tuple[str, str, str]
) -> None:
    verb, action, word = said
    programs, ran = box.root / "bin", box.root / "ran"
    programs.mkdir()
    (programs / "runpodctl").write_text(f'#!/bin/sh\necho "$@" > {ran}\n')
    (programs / "runpodctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    box.environ = RUNPOD | {"RUNPOD_REST_URL": provider.url}
    provider.status, provider.body = 404, "{}"
    box.ask("a1b2", provider="runpod", verb=verb)
    assert box.call() == 0
    asked = ("POST", "/v2/pods/a1b2/action", f"Bearer {KEY}", {"action": action})
    assert provider.asked == [asked]
    assert ran.read_text() == f"pod {word} a1b2\n"
    kept = read_own_end(box.scratch.own_end)
    assert kept and kept.by == "runpodctl" and kept.said.startswith("runpod v2: 404")


@pytest.fixture
def featurize(box: Box, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Box:
    """Its user is not root: id in the login's environment, token in a file that all may read."""
    token = box.root / "token.txt"
    token.write_text(f"{KEY}\n")
    own = replace(end_itself.OWN["featurize"], base=provider.url, key_file=str(token))
    monkeypatch.setitem(end_itself.OWN, "featurize", own)
    monkeypatch.setenv("FEATURIZE_INSTANCE_ID", "f0a1-77")
    box.environ.clear()
    return box


def test_featurize_is_told_to_take_the_box_back_and_once(
    featurize: Box, provider: Provider
) -> None:
    provider.body = '{"status": 0, "message": "", "data": {}}'
    begun_at = featurize.ask("f0a1-77", provider="featurize")["begun_at"]
    words, environ = featurize.started[0]
    assert KEY not in " ".join(words) and environ["FEATURIZE_API_TOKEN"] == KEY
    assert featurize.call() == 0
    assert provider.asked == [("POST", "/virtual_machine/f0a1-77/release", KEY, None)]
    again = featurize.ask("f0a1-77", provider="featurize")
    assert again["begun_at"] == begun_at and len(featurize.started) == 1
    assert KEY not in featurize.scratch.own_end.read_text()


@pytest.mark.parametrize("body", ['{"status": 10004, "message": "no"}', "<html>", "[]"])
def test_a_200_of_featurize_without_a_zero_is_no_yes(
    featurize: Box, provider: Provider, body: str
) -> None:
    provider.body = body
    featurize.ask("f0a1-77", provider="featurize")
    assert featurize.call() == 1
    looked = featurize.ask("f0a1-77", provider="featurize", is_look=True)
    assert "begun_at" not in looked and looked["said"].startswith("featurize: 200")


def test_featurize_has_no_stop_and_another_id_is_left_alone(
    featurize: Box, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "left alone" in featurize.ask("f0a1-78", provider="featurize")["problem"]
    assert not featurize.started
    featurize.ask("f0a1-77", provider="featurize", verb="stop")
    assert featurize.call() == 1 and provider.asked == []
    monkeypatch.delenv("FEATURIZE_INSTANCE_ID")
    problem = featurize.ask("f0a1-77", provider="featurize")["problem"]
    assert "FEATURIZE_INSTANCE_ID is not set" in problem


def test_another_id_and_a_box_without_a_key_do_nothing(box: Box) -> None:
    assert "this box is 28000023, not 1; it was left alone" in box.ask("1")["problem"]
    del box.environ["CONTAINER_API_KEY"]
    assert "CONTAINER_API_KEY is not set" in box.ask()["problem"]
    box.environ.clear()
    assert "CONTAINER_ID is not set" in box.ask()["problem"]
    assert not box.started and not box.scratch.own_end.exists()


def test_nothing_is_called_while_something_is_at_work(box: Box) -> None:
    fd = lock.try_hold(box.tier.lock("q1"))
    assert fd is not None
    assert box.ask()["alive"] == [{"queue": "q1"}] and not box.started
    os.close(fd)


def test_no_key_leaves_over_plain_http(box: Box, provider: Provider) -> None:
    box.environ["VAST_URL"] = provider.url.replace("127.0.0.1", "localhost")
    box.ask()
    assert box.call() == 1 and provider.asked == []


def test_the_first_processs_environment_is_read_as_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "environ"
    path.write_bytes(b"CONTAINER_ID=7\0EMPTY=\0ODD\0A=b=c\0")
    found = end_itself.first_environment(path)
    assert found == {"CONTAINER_ID": "7", "EMPTY": "", "ODD": "", "A": "b=c"}
    assert end_itself.first_environment(tmp_path / "none") == {}

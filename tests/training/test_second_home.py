"""The program that copies to a second home, on fsspec's folders and its store in memory."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from boxcar.training import second_home

WEIGHTS = bytes(range(256)) * 40
FILES = {"art/best #1[a].pt": WEIGHTS, "empty": b""}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/second/cells/a"
    return f"memory://{uuid.uuid4().hex}/cells/a"


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setattr(second_home.os, "nice", lambda by: 0)

    def ask_(do: str, url: str, **words: Any) -> dict[str, Any]:
        request = json.dumps({"do": do, "url": url, **words})
        monkeypatch.setattr(sys, "stdin", io.StringIO(request))
        second_home.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return answer

    return ask_


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in (FILES | {"manifest.json": b"{}"}).items():
        path = tmp_path / "tier" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "tier"


def put(folder: Path, **words: Any) -> dict[str, Any]:
    files = [record(folder, name) for name in FILES]
    last = record(folder, "manifest.json")
    return {"folder": str(folder), "files": files, "last": last} | words


def record(folder: Path, name: str) -> dict[str, Any]:
    data = (folder / name).read_bytes()
    return {"path": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def there(url: str) -> dict[str, bytes]:
    fs, root = fsspec.core.url_to_fs(url)
    return {path.removeprefix(f"{root}/"): fs.cat_file(path) for path in fs.find(root)}


def test_what_was_put_is_there_and_comes_back(
    ask: Ask, folder: Path, url: str, tmp_path: Path
) -> None:
    assert ask("put", url, **put(folder)) == {"done": {}}
    assert there(url) == FILES | {"manifest.json": b"{}"}
    back = tmp_path / "back"
    paths = [*FILES, "manifest.json", "receipt.json"]
    answer = ask("get", url, folder=str(back), paths=paths)
    assert answer == {"done": {"missing": ["receipt.json"]}}
    assert all((back / name).read_bytes() == data for name, data in FILES.items())


def test_what_is_there_already_is_not_sent_again_and_what_is_wrong_there_is(
    ask: Ask, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("put", url, **put(folder))
    fs, root = fsspec.core.url_to_fs(url)
    fs.pipe_file(f"{root}/art/best #1[a].pt", bytes(len(WEIGHTS)))
    sent: list[str] = []
    writing = second_home.Home._writing
    monkeypatch.setattr(
        second_home.Home, "_writing", lambda home, name: sent.append(name) or writing(home, name)
    )
    assert ask("put", url, **put(folder)) == {"done": {}}
    assert sent == ["art/best #1[a].pt"]
    assert there(url)["art/best #1[a].pt"] == WEIGHTS


def test_the_last_file_comes_only_once_all_others_were_read_back(
    ask: Ask, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lossy(io.BytesIO):
        def close(self) -> None:
            fs, root = fsspec.core.url_to_fs(url)
            fs.makedirs(f"{root}/art", exist_ok=True)
            fs.pipe_file(f"{root}/art/best #1[a].pt", self.getvalue()[:-1])

    monkeypatch.setattr(second_home.Home, "_writing", lambda home, name: Lossy())
    answer = ask("put", url, **put(folder))
    assert "read back different bytes" in answer["problem"]
    assert "manifest.json" not in there(url)


def test_a_file_that_is_not_as_its_manifest_says_is_no_result(
    ask: Ask, folder: Path, url: str
) -> None:
    words = put(folder)
    (folder / "empty").write_bytes(b"x")
    answer = ask("put", url, **words)
    assert f"{folder}/empty does not match its manifest" in answer["problem"]
    assert "manifest.json" not in there(url)


def test_of_checkpoints_only_the_one_that_is_named_stays(ask: Ask, folder: Path, url: str) -> None:
    ask("put", url, **put(folder))
    (folder / "2-new.pt").write_bytes(b"step 2")
    words = {"files": [record(folder, "2-new.pt")], "last": record(folder, "manifest.json")}
    fs, root = fsspec.core.url_to_fs(url)
    fs.rm(f"{root}/art", recursive=True)
    assert ask("put", url, folder=str(folder), is_alone=True, **words) == {"done": {}}
    assert there(url) == {"2-new.pt": b"step 2", "manifest.json": b"{}"}
    assert ask("drop", url) == {"done": {}}
    assert there(url) == {}
    assert ask("drop", url) == {"done": {}}


def test_what_is_kept_stays_where_all_else_is_dropped(ask: Ask, folder: Path, url: str) -> None:
    assert ask("drop", url, kept=["art"]) == {"done": {}}
    ask("put", url, **put(folder))
    kept = {name: data for name, data in there(url).items() if name.startswith("art/")}
    (folder / "2-new.pt").write_bytes(b"step 2")
    words = {"files": [record(folder, "2-new.pt")], "last": record(folder, "manifest.json")}
    alone = {"folder": str(folder), "is_alone": True, "kept": ["art"]}
    assert ask("put", url, **alone, **words) == {"done": {}}
    assert there(url) == kept | {"2-new.pt": b"step 2", "manifest.json": b"{}"}
    assert ask("drop", url, kept=["art"]) == {"done": {}}
    assert kept and there(url) == kept


def test_a_try_leaves_nothing(ask: Ask, url: str) -> None:
    assert ask("try", url) == {"done": {}}
    assert there(url) == {}


def test_a_package_that_is_missing_is_named_with_what_to_type(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    problem = ask("try", "s3://bucket/prefix")["problem"]
    assert "the package s3fs is not installed" in problem
    assert f"{sys.executable} -m pip install s3fs" in problem
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "-m pip install fsspec" in ask("try", "s3://bucket/prefix")["problem"]


def test_a_kind_that_fsspec_does_not_know_is_a_sentence(ask: Ask) -> None:
    assert ask("try", "warp://x/y")["problem"].startswith("warp://x/y: ")


def test_whatever_a_store_raises_is_a_sentence(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    problem = ask("try", f"file://{tmp_path}/a file/b")["problem"]
    assert problem.startswith(f"file://{tmp_path}/a file/b: ")


VIRTUAL = {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({"AWS_ENDPOINT_URL": "https://s3.oss-cn-hangzhou.aliyuncs.com"}, VIRTUAL),
        ({"AWS_ENDPOINT_URL": "https://cos.ap-guangzhou.myqcloud.com"}, VIRTUAL),
        ({"AWS_ENDPOINT_URL_S3": "https://tos-s3-cn-beijing.volces.com"}, VIRTUAL),
        ({"AWS_ENDPOINT_URL": "https://obs.cn-north-4.myhuaweicloud.com:443"}, VIRTUAL),
        ({"AWS_ENDPOINT_URL": "https://s3.us-west-004.backblazeb2.com"}, {}),
        ({"AWS_ENDPOINT_URL": "http://minio.lab:9000"}, {}),
        ({}, {}),
    ],
)
def test_a_bucket_is_in_the_hosts_name_where_the_store_takes_it_nowhere_else(
    variables: dict[str, str], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert second_home.store_options("s3://bucket/runs") == options
    assert second_home.store_options("gs://bucket/runs") == {}


def test_what_a_person_set_for_fsspec_counts_before_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    oss = {"endpoint_url": "https://s3.oss-cn-hangzhou.aliyuncs.com"}
    monkeypatch.setitem(fsspec.config.conf, "s3", oss)
    assert second_home.store_options("s3://bucket/runs") == VIRTUAL
    monkeypatch.setitem(fsspec.config.conf, "s3", oss | {"config_kwargs": {}})
    assert second_home.store_options("s3://bucket/runs") == {}

"""A job's data: sent once, proven, linked by its digest, and removed by a typed word alone."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from apart import apart
from tiny_project import TinyProject, make_project
from web_server import web_server

from boxcar.laptop.fitness.data_on_boxes import Wanted, judge_data, judge_urls
from boxcar.laptop.hosts import folders
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.release.data_files import read_data
from boxcar.laptop.tryout.stage import prepare
from boxcar.laptop.verbs.audit import audit
from boxcar.laptop.verbs.data import data
from boxcar.laptop.verbs.plan import plan
from boxcar.laptop.verbs.push import push
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.paths import DataPaths
from boxcar.shared.wire.data_asks import DataFound, DataSeen, UrlSeen, UrlsSeen


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    made = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})
    folder = made.root / "sets" / "cifar"
    (folder / "sub").mkdir(parents=True)
    (folder / "one.bin").write_bytes(b"one" * 1000)
    (folder / "sub" / "two ü.bin").write_bytes(b"two")
    job = made.root / "job.yaml"
    job.write_text(job.read_text() + "data: {cifar: ./sets/cifar}\n")
    return made


def opened(tiny: TinyProject) -> Project:
    return open_project(tiny.root / "job.yaml", "local")


def store(tiny: TinyProject) -> DataPaths:
    return DataPaths(Path(opened(tiny).plan.durable_dir))


def digest(tiny: TinyProject) -> str:
    return read_data(opened(tiny))[0].digest


def test_a_push_sends_each_file_once_and_the_code_holds_none(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert push(opened(tiny)) == 0
    files = store(tiny).files(digest(tiny))
    assert (files / "one.bin").read_bytes() == b"one" * 1000
    assert (files / "sub" / "two ü.bin").read_bytes() == b"two"
    assert not list((tiny.root / ".boxcar" / "releases").glob("*/code/sets"))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("sent again")

    monkeypatch.setattr(folders, "send_folder", apart(refuse))
    assert push(opened(tiny)) == 0


def test_what_was_changed_gets_another_digest_and_the_first_stays(tiny: TinyProject) -> None:
    push(opened(tiny))
    first = digest(tiny)
    (tiny.root / "sets" / "cifar" / "one.bin").write_bytes(b"uno" * 1000)
    push(opened(tiny))
    second = digest(tiny)
    assert first != second
    assert (store(tiny).files(first) / "one.bin").read_bytes() == b"one" * 1000
    assert (store(tiny).files(second) / "one.bin").read_bytes() == b"uno" * 1000


def test_a_damaged_copy_is_named_and_sent_again(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    push(opened(tiny))
    there = store(tiny).files(digest(tiny)) / "one.bin"
    before = there.stat()
    there.chmod(0o644)
    there.write_bytes(b"onE" * 1000)
    os.utime(there, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert data(opened(tiny)) == 0
    assert "whole" in capsys.readouterr().out, "by size and time it looks the same"
    audit(opened(tiny), reads_data=True)
    assert "cifar is not whole: one.bin" in capsys.readouterr().out
    there.write_bytes(b"short")
    push(opened(tiny))
    assert there.read_bytes() == b"one" * 1000


def test_a_sending_that_broke_off_is_gone_on_with(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = folders.send_folder

    def half(source: Path, destination: Path, **_: object) -> None:
        (destination / "one.bin").write_bytes((source / "one.bin").read_bytes()[:1500])
        (destination / "gone since.bin").write_bytes(b"?")
        raise BoxcarError("cut")

    with monkeypatch.context() as cut:
        cut.setattr(folders, "send_folder", apart(half))
        with pytest.raises(BoxcarError, match="cut"):
            push(opened(tiny))
    its = digest(tiny)
    assert not store(tiny).folder(its).exists()
    assert store(tiny).unfinished(its).is_dir()
    assert folders.send_folder is send
    push(opened(tiny))
    names = sorted(path.name for path in store(tiny).files(its).rglob("*.bin"))
    assert names == ["one.bin", "two ü.bin"]
    assert not store(tiny).unfinished(its).exists()


def test_only_a_typed_digest_removes(tiny: TinyProject, capsys: pytest.CaptureFixture[str]) -> None:
    push(opened(tiny))
    its = digest(tiny)
    for text in ("", its[:3], "f" * 12):
        with pytest.raises(InputError, match="expected the beginning"):
            data(opened(tiny), remove=[text])
    assert store(tiny).folder(its).is_dir()
    assert data(opened(tiny), remove=[its[:12]]) == 0
    assert not store(tiny).folder(its).exists()
    data(opened(tiny))
    assert "no data folders" in capsys.readouterr().out


def test_data_larger_than_the_disk_is_refused_and_nothing_is_sent(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tiny.root / "sets" / "cifar" / "huge.bin").open("wb") as file:
        file.truncate(1 << 43)  # 8 TB with no blocks
    assert plan(opened(tiny)) == 1
    assert "are needed" in capsys.readouterr().err
    (tiny.root / "sets" / "cifar" / "huge.bin").unlink()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("./sets/none", "there is no folder"),
        (".", "holds the code itself"),
        ("./sets/empty", "is empty"),
        ("./sets/linked", "is a link"),
    ],
)
def test_a_folder_that_cannot_be_sent_is_named(tiny: TinyProject, said: str, why: str) -> None:
    (tiny.root / "sets" / "empty").mkdir()
    (tiny.root / "sets" / "linked").mkdir()
    (tiny.root / "sets" / "linked" / "a").symlink_to("/etc/hosts")
    job = tiny.root / "job.yaml"
    job.write_text(job.read_text().replace("./sets/cifar", said))
    with pytest.raises(InputError, match=why):
        opened(tiny)


@pytest.mark.parametrize("said", ["[a]", "{../up: ./sets}", "{a: }", "{a: [b]}", "text"])
def test_a_name_or_folder_that_is_none_is_one_sentence(tiny: TinyProject, said: str) -> None:
    job = tiny.root / "job.yaml"
    job.write_text(job.read_text().replace("{cifar: ./sets/cifar}", said))
    with pytest.raises(InputError, match=r"such as data: \{cifar: ./data/cifar\}"):
        opened(tiny)


def test_no_room_names_what_to_type(tiny: TinyProject, monkeypatch: pytest.MonkeyPatch) -> None:
    from onbox.answers import data_folders

    def full(*_: object) -> None:
        raise NoRoomError("/disk: 1 MB are free, 9 MB are needed")

    monkeypatch.setattr(data_folders.checked_copy, "check_room", full)
    store_of_box = store(tiny)
    from boxcar.shared.wire.data_asks import PrepareData

    with pytest.raises(NoRoomError):
        data_folders.prepare(store_of_box, PrepareData(True, "0a" * 32, (9_000_000,)))
    assert not store_of_box.root.exists()


# --- from a URL


def with_url(tiny: TinyProject, said: str, more: str = "") -> Project:
    job = tiny.root / "job.yaml"
    job.write_text(job.read_text().replace("data: {cifar: ./sets/cifar}", f"data: {said}\n{more}"))
    return opened(tiny)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{pde: https://h/a.h5}", "a URL is written as data: {pde: {url: "),
        ("{pde: {url: /sets/a}}", "expected a URL"),
        ("{pde: {url: 'file:///sets/a'}}", "a folder of this machine is written"),
        ("{pde: {url: 'https://me:pw@h/a.h5'}}", "holds a user or password"),
        ("{pde: {url: 'https://h/a.h5?X-Amz-Signature=abc'}}", "holds a signature or key"),
        ("{pde: {url: https://h/a.h5, sha256: abc}}", "is no sha256"),
        ("{pde: {url: https://h/a.h5, token: HF_TOKEN}}", "does not stand in secrets"),
        ("{pde: {sha256: abc}}", "expected a folder of this machine"),
        ("{pde: {folder: ./sets, url: https://h/a}}", "expected a folder of this machine"),
        ("{pde: {url: https://h/a.h5, unpak: yes}}", "did you mean 'unpack'"),
    ],
)
def test_a_url_that_cannot_be_fetched_is_one_sentence(
    tiny: TinyProject, said: str, why: str
) -> None:
    with pytest.raises(InputError) as raised:
        with_url(tiny, said)
    assert why in str(raised.value) and "pw@" not in str(raised.value)
    assert "abc" not in str(raised.value) or "sha256" in said


def test_a_plan_says_what_each_box_fetches_and_asks_nobody(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    project = with_url(tiny, "{pde: {url: https://nowhere.invalid/x/burgers.h5}}")
    assert plan(project) == 0
    said = capsys.readouterr().out
    assert "pde/burgers.h5: from https://nowhere.invalid/x/burgers.h5, fetched by each box" in said
    assert plan(project, as_json=True) == 0
    push(project)
    assert project.plan.data_urls[0].name == "pde" and not project.plan.data


def test_smoke_fetches_it_once_to_this_machine(tiny: TinyProject) -> None:
    with web_server() as web:
        web.files["burgers.h5"] = os.urandom(100_000)
        project = with_url(tiny, f"{{pde: {{url: '{web.url('ranges/burgers.h5')}'}}}}")
        for _ in range(2):
            with prepare(project, sys.executable) as stage:
                linked = Path(stage.data, "pde", "burgers.h5").read_bytes()
            assert linked == web.files["burgers.h5"]
        assert web.sent_bytes < 110_000


@pytest.mark.parametrize(
    ("path", "verdict", "said"),
    [
        ("ranges/burgers.h5", 0, "100.0 kB to fetch"),
        ("404/burgers.h5", 1, "pde: HTTP 404"),
        ("login/burgers.h5", 1, "a web page came where a file was asked"),
    ],
)
def test_audit_asks_for_a_url_from_the_box(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str], path: str, verdict: int, said: str
) -> None:
    with web_server() as web:
        web.files["burgers.h5"] = bytes(100_000)
        assert audit(with_url(tiny, f"{{pde: {{url: '{web.url(path)}'}}}}")) == verdict
        shown = " ".join(capsys.readouterr().out.split())
        assert said in shown and "data from URLs" in shown
        assert web.sent_bytes < 1000, "it is only looked at"


def test_audit_refuses_what_does_not_fit_and_counts_an_archive_twice() -> None:
    urls = [DataUrl("pde", "https://h/a", unpack=True), DataUrl("b", "https://h/b")]
    seen = UrlsSeen(
        (UrlSeen("pde", 40 << 30, None, False), UrlSeen("b", None, None, False)), 90 << 30
    )
    [row] = judge_urls(urls, {"box-a": seen}, {})
    assert row.verdict == "ok" and row.reason == "size not known before it is fetched: b"
    [row] = judge_urls(urls, {"box-a": seen}, {"box-a": 20 << 30})
    assert row.verdict == "refuse" and "does not fit" in row.reason


def test_the_json_says_all_that_is_there_and_what_was_removed(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    push(opened(tiny))
    capsys.readouterr()
    assert data(opened(tiny), as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    [row] = said["folders"]
    assert row["digest"] == digest(tiny) and row["size_bytes"] == 3003 and row["files"] == 2
    assert row["place"] == "tier" and row["problems"] == [] and said["problems"] == []
    assert data(opened(tiny), remove=[row["digest"][:12]], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["folders"] == [row]
    data(opened(tiny), as_json=True)
    assert json.loads(capsys.readouterr().out)["folders"] == []


def test_two_runs_share_one_copy(tiny: TinyProject, monkeypatch: pytest.MonkeyPatch) -> None:
    push(opened(tiny))
    job = tiny.root / "job.yaml"
    other = job.with_name("other.yaml")
    other.write_text(re.sub(r"(?m)^name: .*", "name: other", job.read_text()))
    before = [path.stat().st_ino for path in store(tiny).files(digest(tiny)).rglob("*")]

    send = folders.send_folder

    def refuse_data(source: Path, destination: Path, **more: Any) -> None:
        assert ".data" not in str(destination), "sent again"
        send(source, destination, **more)

    monkeypatch.setattr(folders, "send_folder", apart(refuse_data))
    assert push(open_project(other, "local")) == 0
    assert [path.stat().st_ino for path in store(tiny).files(digest(tiny)).rglob("*")] == before


def test_audit_refuses_data_for_which_a_box_has_no_room() -> None:
    seen = DataSeen("0a" * 32, 50 << 30, 1, ("a is missing",), ())
    there = {"box-a": DataFound((seen,), 40 << 30), "box-b": DataFound((), 60 << 30)}
    wanted = {"0a" * 32: Wanted("cifar", 50 << 30)}
    full, other = judge_data(wanted, there)
    assert (full.box, full.verdict, other.verdict) == ("box-a", "refuse", "ok")
    assert "does not fit" in full.reason and "boxcar data" in full.reason

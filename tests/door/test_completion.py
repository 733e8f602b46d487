from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.door.completion import candidates


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "queue_1.txt").write_text(
        "configs/recon.yaml seg 3\nconfigs/b.yaml seg\n"
    )
    (tmp_path / "queues" / "queue_2.txt").write_text("# a comment\n")
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.yaml").write_text("extends: ssh\n")
    (tmp_path / "results" / "run-1").mkdir(parents=True)
    queues = "queues: {queues/queue_1.txt: box-a, queues/queue_2.txt: box-b}\n"
    (tmp_path / "job.yaml").write_text(queues)
    return tmp_path


def offered(folder: Path, *words: str) -> list[str]:
    return candidates(words, folder)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["la"], ["launch"]),
        (["--ver"], ["--version"]),
        (["launch", "--pro"], ["--profile"]),
        (["launch", "--profile", "mi"], ["mine"]),
        (["launch", "-p", "auto"], ["autodl"]),
        (["launch", "--profile=auto"], ["--profile=autodl"]),
        (["launch", "--profile", "=", "auto"], ["--profile=autodl"]),
        (["-p", "auto"], ["autodl"]),
        (["-p", "autodl", "lau"], ["launch"]),
        (["logs", ""], ["b", "recon"]),
        (["logs", "--cell", "re"], ["recon"]),
        (["down", "--abandon", "b"], ["b"]),
        (["down", "--gone", ""], ["box-a", "box-b"]),
        (["drain", "--queue", ""], ["queue_1", "queue_2"]),
        (["audit", "--box", "box-a", "--box", ""], ["box-a", "box-b"]),
        (["split", "--speed", "box-b"], ["box-b="]),
        (["report", "--run", ""], ["run-1"]),
        (["explain", "--lang", ""], ["en", "zh"]),
        (["watch", "--once-if-changed", "--j"], ["--job", "--json"]),
        # The shell's own files are meant.
        (["plan", "--job", ""], []),
        (["grid", "con"], []),
    ],
)
def test_what_may_stand_next(folder: Path, words: list[str], wanted: list[str]) -> None:
    assert offered(folder, *words) == wanted


def test_another_job_has_its_own_cells(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "q.txt").write_text("configs/x.yaml det 1\n")
    (folder / "other" / "job.yaml").write_text("queues: {q.txt: box-z}\n")
    assert offered(folder, "logs", "--job", "other/job.yaml", "") == ["x"]
    assert offered(folder, "audit", "--job=other/job.yaml", "--box", "") == ["box-z"]


@pytest.mark.parametrize(
    "text", ["queues: [", "queues: 3", "a: 1", "- x", "\x00", "queues: {nix.txt: a}"]
)
def test_a_job_that_cannot_be_read_offers_nothing_and_says_nothing(
    folder: Path, text: str, capsys
) -> None:
    (folder / "job.yaml").write_text(text)
    assert offered(folder, "logs", "") == []
    assert capsys.readouterr() == ("", "")

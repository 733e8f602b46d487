"""The way to a ready .venv: which torch is asked for and where; what is said where pip fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bootstrap


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "run_quietly", lambda command: False)  # no torch yet
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(bootstrap.platform, "machine", lambda: "x86_64")
    for name in ("BOXCAR_MIRROR", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def fake_pip(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setattr(bootstrap, "venv_python", lambda: str(script))


def asked_of_pip(venv: Path, monkeypatch: pytest.MonkeyPatch, gpu: str | None = None) -> list[str]:
    """The index that its environment names, and the words behind `install`."""
    kept = venv / "kept"
    body = "words = [os.environ.get('PIP_INDEX_URL', '')] + sys.argv[5:]\n"
    fake_pip(venv, monkeypatch, f"{body}open({str(kept)!r}, 'w').write('\\n'.join(words))")
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: gpu)
    bootstrap.install_torch()
    return kept.read_text().split("\n")


def test_without_a_gpu_only_torch_for_the_cpu_will_do(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ["", "--extra-index-url", bootstrap.TORCH_CPU, f"{bootstrap.TORCH}+cpu"]
    assert asked_of_pip(venv, monkeypatch) == wanted


def test_with_a_gpu_it_is_the_one_that_the_index_has(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked_of_pip(venv, monkeypatch, "/usr/bin/nvidia-smi") == ["", bootstrap.TORCH]


def test_one_variable_takes_all_from_mirrors_and_a_persons_own_index_wins(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOXCAR_MIRROR", "1")
    index, _, cpu, _ = asked_of_pip(venv, monkeypatch)
    assert (index, cpu) == (bootstrap.MIRROR, bootstrap.TORCH_CPU_MIRROR)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mine/simple")
    assert asked_of_pip(venv, monkeypatch)[0] == "https://mine/simple"


def test_where_pip_fails_it_says_why_and_the_mirror_is_named(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fake_pip(venv, monkeypatch, "print('No matching distribution', file=sys.stderr); sys.exit(1)")
    with pytest.raises(SystemExit) as end:
        bootstrap.pip("install", "torch")
    assert end.value.code == 2
    said = capfd.readouterr()
    assert "No matching distribution" in said.err
    assert "BOXCAR_MIRROR=1 make demo" in said.out


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_a_python_without_venv_or_pip_is_one_sentence(
    venv: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    monkeypatch.setattr(
        bootstrap.importlib.util, "find_spec", lambda name: None if name == missing else object()
    )
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(SystemExit) as end:
        bootstrap.make_venv()
    assert end.value.code == 2
    version = "{}.{}".format(*sys.version_info)
    said = capsys.readouterr().out
    assert said == (
        f"[boxcar] {sys.executable} has no pip and cannot make a virtual environment. "
        f"Type: sudo apt-get install python{version}-venv\n"
    )


def test_how_to_get_a_slurm_for_the_tests_is_said_once_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"apt-get"}
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name, path="": name in there or None)
    bootstrap.say_how_to_get_slurm()
    assert f"apt-get install {' '.join(bootstrap.SLURM)}" in capsys.readouterr().out
    there.add("slurmctld")
    bootstrap.say_how_to_get_slurm()
    assert not capsys.readouterr().out

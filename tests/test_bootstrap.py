"""The way to a ready .venv: what is said while pip works, and where it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_pip_sources import closed_port

import bootstrap
from pip_sources import Settings, Source

PIP_OWN = Source("https://pypi.org/simple", "")
MIRROR = Source("https://mirror/simple", "PIP_INDEX_URL")


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "run_quietly", lambda command: False)  # no torch yet
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def set_up(
    monkeypatch: pytest.MonkeyPatch, silent: dict[str, str], *sources: Source, links: bool = False
) -> None:
    settings = Settings(list(sources), None, links)
    monkeypatch.setattr(bootstrap.pip_sources, "settings", lambda python: settings)
    monkeypatch.setattr(
        bootstrap.pip_sources,
        "silent",
        lambda asked, proxy: {s.url: silent[s.url] for s in asked if s.url in silent},
    )


def test_a_mirror_comes_before_torchs_own_index(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch, {}, MIRROR)
    assert bootstrap.reach_an_index(sys.executable) == {
        "PIP_INDEX_URL": MIRROR.url,
        "PIP_EXTRA_INDEX_URL": bootstrap.TORCH_CPU.url,
    }


def test_a_dead_index_is_not_asked_and_named_with_where_it_comes_from(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = {MIRROR.url: "connection refused"}
    other = Source("https://user:secret@other/simple", "pip config")
    set_up(monkeypatch, silent | {bootstrap.TORCH_CPU.url: "no answer within 6 s"}, MIRROR, other)
    assert bootstrap.reach_an_index(sys.executable) == {
        "PIP_INDEX_URL": other.url,
        "PIP_EXTRA_INDEX_URL": other.url,
    }
    said = capsys.readouterr().out
    assert f"{MIRROR.url}, of PIP_INDEX_URL, does not answer: connection refused" in said
    assert f"{bootstrap.TORCH_CPU.url} does not answer: no answer within 6 s" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("connection refused", f"PIP_INDEX_URL={bootstrap.MIRROR} make demo"),
        ("the proxy http://p:1 does not answer (connection refused)", "Start that proxy"),
    ],
)
def test_where_no_index_answers_it_ends_with_what_to_type(
    venv: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    says: str,
) -> None:
    set_up(monkeypatch, dict.fromkeys((PIP_OWN.url, bootstrap.TORCH_CPU.url), reason), PIP_OWN)
    with pytest.raises(SystemExit) as end:
        bootstrap.reach_an_index(sys.executable)
    assert end.value.code == 2
    assert says in capsys.readouterr().out


def test_files_that_lie_here_are_enough(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch, dict.fromkeys((PIP_OWN.url, bootstrap.TORCH_CPU.url), "x"), PIP_OWN,
           links=True)  # fmt: skip
    assert bootstrap.reach_an_index(sys.executable) == {"PIP_NO_INDEX": "1"}


def test_who_names_an_index_of_cpu_wheels_is_not_given_another(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch, {}, MIRROR, Source("https://m/whl/cpu/", "PIP_EXTRA_INDEX_URL"))
    assert (
        bootstrap.TORCH_CPU.url
        not in bootstrap.reach_an_index(sys.executable)["PIP_EXTRA_INDEX_URL"]
    )


def test_a_real_closed_port_is_told_before_pip_is_started(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{closed_port()}/simple"
    for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{url}/cpu")
    monkeypatch.setattr(bootstrap, "venv_python", lambda: sys.executable)
    with pytest.raises(SystemExit):
        bootstrap.reach_an_index(sys.executable)
    said = capsys.readouterr().out
    assert f"{url}, of PIP_INDEX_URL, does not answer: connection refused" in said
    assert f"{url}/cpu, of PIP_EXTRA_INDEX_URL, does not answer" in said


def fake_pip(folder: Path, body: str) -> str:
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_where_there_is_no_terminal_it_says_a_line_now_and_then(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on = venv / "go-on"
    body = (
        "open(os.environ['TMPDIR'] + '/torch.whl', 'wb').write(bytes(3_000_000))\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\n"
    )
    monkeypatch.setattr(bootstrap, "venv_python", lambda: fake_pip(venv, body))
    monkeypatch.setattr(bootstrap, "LINE_EVERY_S", 0.05)
    lines = []

    def say(text: str) -> None:
        lines.append(text)
        if "3 MB" in text:
            go_on.touch()

    monkeypatch.setattr(bootstrap, "say", say)
    bootstrap.pip({}, "install", "torch")
    assert any(
        line.startswith("... 3 MB fetched and unpacked in ") and line.endswith(" MB/s)")
        for line in lines
    )
    assert [path.name for path in venv.iterdir() if path.is_dir()] == []


def test_what_pip_said_is_shown_where_it_failed(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "print('No matching distribution', file=sys.stderr); sys.exit(1)"
    monkeypatch.setattr(bootstrap, "venv_python", lambda: fake_pip(venv, body))
    with pytest.raises(SystemExit) as end:
        bootstrap.pip({}, "install", "torch")
    assert end.value.code == 2
    said = capsys.readouterr()
    assert "No matching distribution" in said.err
    assert "pip could not install the above" in said.out


def test_pip_gets_what_it_may_ask(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = venv / "kept"
    body = f"open({str(kept)!r}, 'w').write(os.environ['PIP_INDEX_URL'])"
    monkeypatch.setattr(bootstrap, "venv_python", lambda: fake_pip(venv, body))
    bootstrap.pip({"PIP_INDEX_URL": MIRROR.url}, "install", "torch")
    assert kept.read_text() == MIRROR.url


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


def as_pip_reports(monkeypatch: pytest.MonkeyPatch, *needs: str) -> None:
    said = json.dumps({"install": [{"metadata": {"version": "2", "requires_dist": needs}}]})
    answer = subprocess.CompletedProcess([], 0, said.encode(), b"")
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda command, **more: answer)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    monkeypatch.delenv("BOXCAR_CUDA", raising=False)


def test_cuda_for_no_gpu_is_not_installed_where_nobody_can_be_asked(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    as_pip_reports(monkeypatch, "jinja2", "nvidia-cudnn-cu13==9; platform_system == 'Linux'")
    monkeypatch.setattr(bootstrap, "pip", lambda *words: pytest.fail("pip was started"))
    with pytest.raises(SystemExit) as end:
        bootstrap.install_torch({"PIP_INDEX_URL": PIP_OWN.url})
    said = capsys.readouterr().out
    assert end.value.code == 2
    assert f"PIP_EXTRA_INDEX_URL={bootstrap.TORCH_CPU_MIRROR} make demo" in said
    assert "BOXCAR_CUDA=1 make demo" in said


@pytest.mark.parametrize(
    ("need", "variable", "url"),
    [
        ("jinja2", "", PIP_OWN.url),
        ("nvidia-cudnn-cu13==9", "1", PIP_OWN.url),
        ("nvidia-cudnn-cu13==9", "", bootstrap.TORCH_CPU.url),
    ],
)
def test_torch_for_the_cpu_and_cuda_that_is_wanted_are_installed(
    venv: Path, monkeypatch: pytest.MonkeyPatch, need: str, variable: str, url: str
) -> None:
    as_pip_reports(monkeypatch, need)
    if variable:
        monkeypatch.setenv("BOXCAR_CUDA", variable)
    started: list[str] = []
    monkeypatch.setattr(bootstrap, "pip", lambda environment, *words: started.extend(words))
    bootstrap.install_torch({"PIP_INDEX_URL": url})
    assert started == ["install", bootstrap.TORCH]


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


def test_a_dead_index_is_told_before_the_environment_is_made(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(monkeypatch, dict.fromkeys((PIP_OWN.url, bootstrap.TORCH_CPU.url), "gone"), PIP_OWN)
    monkeypatch.setattr(bootstrap, "run_quietly", lambda command: command[0] == sys.executable)
    monkeypatch.setattr(bootstrap, "make_venv", lambda: pytest.fail("it is made"))
    with pytest.raises(SystemExit):
        bootstrap.main()
    assert "pip reaches no index" in capsys.readouterr().out

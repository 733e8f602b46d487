from __future__ import annotations

import io
import os
import shutil
import ssl
import subprocess
import sys
import zipfile
from pathlib import Path

import certifi
import pytest

from boxcar.laptop.release import archives
from boxcar.shared.errors import InputError

LARGEST_BYTES = 1_050_000
IMPORTED = (
    "boxcar.shared.files.journal",
    "onbox",
    "pynvml",
    "requests",
    "standardwebhooks",
    "watchdog.observers",
    "watchdog.observers.polling",
)
# A new interpreter imports all of it from the archive, and says where each module came from.
AT_FRONT = "import sys; sys.path.insert(0, sys.argv[1])"
IMPORT_ALL = """
import importlib, sys, warnings
warnings.filterwarnings("ignore", "Unable to find acceptable character detection")  # as post does
archive, *names = sys.argv[1:]
sys.path.insert(0, archive)
for name in names:
    print(importlib.import_module(name).__file__)
answer = sys.modules["requests"].Response()
answer._content = "größer".encode()
assert answer.text == "größer"
"""


@pytest.fixture(scope="module")
def onbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("a box") / "onbox.pyz"
    path.write_bytes(archives.build_onbox())
    return path


@pytest.fixture(params=["3.10", "3.11", "3.12", "3.13", "3.14"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter of each version that is installed here."""
    version: str = request.param
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, installed)):
        # A pyenv shim is on the PATH also where that version is not selected.
        if found and _run([found, "-I", "-S", "-c", ""]).returncode == 0:
            return found
    return pytest.skip(f"no Python {version} runs on this machine")


def _run(command: list[str], **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]


def _names(data: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(data)).namelist()


def test_the_agent_starts_with_every_python_and_nothing_installed(
    python: str, onbox: Path, tmp_path: Path
) -> None:
    command = [python, "-I", "-S", "-W", "error", str(onbox), "--help"]
    done = _run(command, cwd=tmp_path, env={})
    assert (done.returncode, done.stderr) == (0, "")
    assert "agent" in done.stdout


def test_the_chinese_of_what_a_box_says_travels(python: str, onbox: Path) -> None:
    say = "from boxcar.shared.sentence import _; print(_('needs attention').said('zh'))"
    command = [python, "-I", "-S", "-X", "utf8", "-c", f"{AT_FRONT}; {say}", str(onbox)]
    assert _run(command, cwd=onbox.parent, env={}).stdout == "需要处理\n"


def test_every_dependency_comes_from_the_archive_without_a_warning(
    python: str, onbox: Path, tmp_path: Path
) -> None:
    command = [python, "-I", "-S", "-W", "error", "-c", IMPORT_ALL, str(onbox), *IMPORTED]
    done = _run(command, cwd=tmp_path, env={})
    assert (done.returncode, done.stderr) == (0, "")
    assert all(line.startswith(f"{onbox}/") for line in done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == len(IMPORTED)


def test_a_train_script_imports_formats_from_the_training_archive(
    python: str, tmp_path: Path
) -> None:
    archive = tmp_path / "training.zip"
    archive.write_bytes(archives.build_training())
    command = [
        python,
        "-S",
        "-W",
        "error",
        "-c",
        "import boxcar.shared.files.journal as it; print(it)",
    ]
    done = _run(command, cwd=tmp_path, env={"PYTHONPATH": str(archive)})
    assert (done.returncode, done.stderr) == (0, "")
    assert str(archive) in done.stdout


def test_the_agent_s_archive_is_small(onbox: Path) -> None:
    assert onbox.stat().st_size < LARGEST_BYTES


def test_all_of_certifi_s_roots_travel(onbox: Path) -> None:
    text = zipfile.ZipFile(onbox).read("certifi/cacert.pem").decode()
    ours, theirs = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    ours.load_verify_locations(cadata=text)
    theirs.load_verify_locations(certifi.where())
    assert ours.get_ca_certs() == theirs.get_ca_certs() != []


def test_another_process_elsewhere_builds_the_same_bytes(onbox: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys; os.umask(0o077)\n"
        "from boxcar.laptop.release import archives as bundle\n"
        "sys.stdout.buffer.write(bundle.build_onbox() + bundle.build_training())"
    )
    environment = os.environ | {"TZ": "Asia/Shanghai", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    built = subprocess.run(command, cwd=tmp_path, env=environment, stdout=-1, check=True).stdout
    assert built == onbox.read_bytes() + archives.build_training()


def test_the_archive_says_nothing_of_when_and_where_it_was_built(onbox: Path) -> None:
    for entry in zipfile.ZipFile(onbox).infolist():
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.create_system == 3
        assert entry.external_attr == 0o100644 << 16


def test_only_python_text_and_licences_travel(onbox: Path) -> None:
    names = _names(onbox.read_bytes())
    assert names == sorted(names)
    code = [name for name in names if not name.startswith("licenses/")]
    assert [name for name in code if not name.endswith(".py")] == [*archives.DATA]
    assert not any("test" in name or "contrib" in name or "/cli" in name for name in code)
    assert {"licenses/requests/LICENSE", "licenses/watchdog/LICENSE"} <= set(names)


def test_training_holds_no_more_than_a_train_script_needs() -> None:
    tops = {"/".join(name.split("/")[:2]) for name in _names(archives.build_training())}
    assert tops <= {"boxcar/__init__.py", "boxcar/shared", "boxcar/training"}


def test_a_file_name_says_its_content() -> None:
    assert archives.file_name("onbox", b"", ".pyz") == "onbox-e3b0c44298fc.pyz"
    assert archives.file_name("onbox", b"x", ".pyz") != archives.file_name("onbox", b"y", ".pyz")


def test_a_package_that_needs_a_newer_python_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, needs in (("too-new", ">=3.11, <4"), ("old-enough", ">=3.9"), ("silent", "")):
        info = tmp_path / f"{name.replace('-', '_')}-2.0.dist-info"
        info.mkdir()
        requires = f"Requires-Python: {needs}\n" if needs else ""
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n{requires}"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    archives.check_pythons(["old-enough", "silent"])
    with pytest.raises(InputError, match=r"too-new 2\.0 .*pip install 'too-new<2\.0'"):
        archives.check_pythons(["old-enough", "too-new"])

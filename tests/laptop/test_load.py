from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.formats.errors import BoxcarError, InputError
from boxcar.laptop import load as load_module
from boxcar.laptop.load import ToLoad, load

FILES = [ToLoad("a/one.dat"), ToLoad("a/two.dat"), ToLoad("b/three.dat", ("model",))]
PREAMBLE = """
import json, os, sys, time
request = json.load(sys.stdin)
open(request["folder"] + "/requests", "a").write(json.dumps(request) + "\\n")
def say(**message):
    print(json.dumps(message), flush=True)
def finding(path, problems=()):
    say(finding={"path": path, "kind": "bytes", "problems": list(problems), "facts": {}})
def done():
    say(done=True, loader="stand-in 1", sandbox=["none"])
"""
GOOD = """
for file in request["files"]:
    say(at=file["path"])
    finding(file["path"])
done()
"""

Child = Callable[[str], tuple[str, ...]]


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """A program that speaks the load check's protocol, or breaks it."""

    def write(body: str) -> tuple[str, ...]:
        (tmp_path / "child.py").write_text(PREAMBLE + body)
        return (sys.executable, "-I", "-S", str(tmp_path / "child.py"))

    return write


def _requests(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "requests").read_text().splitlines()]


def test_every_file_gets_its_finding(tmp_path: Path, child: Child) -> None:
    loaded = load(tmp_path, FILES, ["a/two.dat"], child=child(GOOD))
    assert list(loaded.findings) == [file.path for file in FILES]
    assert all(finding.is_good for finding in loaded.findings.values())
    assert (loaded.loader, loaded.sandbox) == ("stand-in 1", ("none",))
    assert _requests(tmp_path) == [
        {
            "folder": str(tmp_path),
            "files": [
                {"path": "a/one.dat", "keys": []},
                {"path": "a/two.dat", "keys": []},
                {"path": "b/three.dat", "keys": ["model"]},
            ],
            "allow_pickle": ["a/two.dat"],
        }
    ]


def test_without_files_no_child_is_started(tmp_path: Path, child: Child) -> None:
    assert load(tmp_path, [], child=child("sys.exit(1)")).findings == {}


def test_a_file_that_kills_the_checker_is_named_and_the_others_are_loaded(
    tmp_path: Path, child: Child
) -> None:
    killing = GOOD.replace(
        "    finding", "    if 'two' in file['path']: os.kill(os.getpid(), 9)\n    finding"
    )
    findings = load(tmp_path, FILES, child=child(killing)).findings
    assert findings["a/two.dat"].problems == ("loading it killed the checker (signal 9)",)
    assert findings["a/one.dat"].is_good and findings["b/three.dat"].is_good
    assert len(_requests(tmp_path)) == 2


def test_a_file_that_ends_the_checker_is_named(tmp_path: Path, child: Child) -> None:
    ending = GOOD.replace("    finding", "    sys.exit(5)\n    finding")
    findings = load(tmp_path, FILES, child=child(ending)).findings
    problems = {finding.problems for finding in findings.values()}
    assert problems == {("loading it killed the checker (exit code 5)",)}


def test_a_file_that_never_ends_is_named(tmp_path: Path, child: Child) -> None:
    hanging = GOOD.replace(
        "    finding", "    if 'two' in file['path']: time.sleep(600)\n    finding"
    )
    findings = load(tmp_path, FILES, child=child(hanging), timeout_s=0.5).findings
    assert findings["a/two.dat"].problems == ("loading it took longer than 0.5 s",)
    assert findings["b/three.dat"].is_good


def test_what_a_hanging_file_has_started_ends_with_it(tmp_path: Path, child: Child) -> None:
    """A grandchild keeps the pipe open; waiting for its end would take for ever."""
    forking = "say(at='a/one.dat')\nif os.fork() == 0: time.sleep(600)\nos._exit(0)"
    findings = load(tmp_path, FILES[:1], child=child(forking), timeout_s=0.5).findings
    assert findings["a/one.dat"].problems == ("loading it took longer than 0.5 s",)


@pytest.mark.parametrize(
    "line",
    ["hello", "[1]", '{"x": 1}', '{"at": "/etc/passwd"}', '{"finding": {"path": "a/one.dat"}}',
     '{"finding": {"path": "b/three.dat", "kind": "bytes"}}', '{"done": true}'],
)  # fmt: skip
def test_a_file_that_speaks_for_the_checker_is_not_believed(
    tmp_path: Path, child: Child, line: str
) -> None:
    body = f"""
say(at=request["files"][0]["path"])
if request["files"][0]["path"] == "a/one.dat": print({line!r}, flush=True)
finding(request["files"][0]["path"])
done()
"""
    findings = load(tmp_path, FILES, child=child(body)).findings
    assert "made the checker say" in findings["a/one.dat"].problems[0]
    assert findings["b/three.dat"].is_good


def test_a_checker_that_does_not_begin_is_an_error_with_its_last_words(
    tmp_path: Path, child: Child
) -> None:
    with pytest.raises(BoxcarError, match=r"(?s)code 7.*no torch for you"):
        load(tmp_path, FILES, child=child("sys.stderr.write('no torch for you'); sys.exit(7)"))


def test_a_checker_that_forgets_a_file_is_asked_again_and_then_an_error(
    tmp_path: Path, child: Child
) -> None:
    body = "if len(request['files']) > 2:\n say(at='a/one.dat'); finding('a/one.dat')\ndone()"
    with pytest.raises(BoxcarError, match="said nothing of any file"):
        load(tmp_path, FILES, child=child(body))


def test_the_checker_gets_no_secrets(
    tmp_path: Path, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spying = "say(at='a/one.dat')\nfinding('a/one.dat', sorted(os.environ))\ndone()"
    findings = load(tmp_path, FILES[:1], child=child(spying)).findings
    assert set(findings["a/one.dat"].problems) <= {"PATH", "HOME", "LANG", "LC_CTYPE"}


def test_a_missing_torch_is_said_with_the_command_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install torch"):
        load(tmp_path, [ToLoad("best.pth")])


def test_text_needs_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "metrics.json").write_text('{"psnr": 30.5}')
    finding = load(tmp_path, [ToLoad("metrics.json")]).findings["metrics.json"]
    assert finding.is_good and finding.facts["numbers"] == {"psnr": 30.5}


def test_the_real_checker_tells_good_files_from_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a folder in which a file is called like a module of Python's."""
    torch = pytest.importorskip("torch")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    weights = {"model": {"w": torch.ones(8)}}
    torch.save(weights, tmp_path / "best.pth")
    (tmp_path / "empty.pth").touch()
    torch.save({"model": {"w": torch.tensor([1.0, float("nan")])}}, tmp_path / "nan.pth")
    (tmp_path / "short.pth").write_bytes((tmp_path / "best.pth").read_bytes()[:-100])
    command = repr(f"touch '{tmp_path}/it-ran'").encode()
    (tmp_path / "evil.pkl").write_bytes(b"cposix\nsystem\n(S" + command + b"\ntR.")
    good, *bad = ("best.pth", "empty.pth", "nan.pth", "short.pth", "evil.pkl")
    loaded = load(tmp_path, [ToLoad(name, ("model",)) for name in (good, *bad)])
    assert loaded.loader.startswith("torch ")
    found = [path for path, finding in loaded.findings.items() if not finding.is_good]
    assert found == bad
    assert not (tmp_path / "it-ran").exists()

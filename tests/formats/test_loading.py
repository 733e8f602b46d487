from __future__ import annotations

import sys
from pathlib import Path

import pytest

from boxcar.formats import loading
from boxcar.formats.errors import BoxcarError
from boxcar.formats.loading import Child
from boxcar.formats.plan import Artifact
from boxcar.formats.receipt import Finding

# Speaks the protocol as the real checker does; each file's name says how it misbehaves.
CHECKER = """
import json, os, signal, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

request = json.loads(sys.stdin.buffer.read())
for file in request["files"]:
    path = file["path"]
    say(at=path)
    if path == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if path == "exits":
        sys.exit(3)
    if path == "hangs":
        time.sleep(600)
    if path == "prints":
        print("hello from a pickle")
    if path == "speaks for another":
        say(finding={"path": "good", "kind": "torch", "problems": []})
    if path == "says done":
        say(done=True, loader="a liar", sandbox=[])
        sys.exit(0)
    if path == "leaves a child":
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    facts = {"keys": file["keys"], "request": request, "env": sorted(os.environ)}
    say(finding={"path": path, "kind": "torch", "problems": [], "facts": facts})
say(done=True, loader="torch 2.13.0", sandbox=["no-network"])
"""


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """A checker of our own in place of boxcar.training.load_check."""
    package = tmp_path / "checker" / "boxcar" / "training"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "load_check.py").write_text(CHECKER)
    return Child(sys.executable, tmp_path, str(tmp_path / "checker"), timeout_s=60)


def load(child: Child, *names: str) -> dict[str, Finding]:
    files = [Artifact(name, ("model",)) for name in names]
    return loading.load(child, child.cwd, files, allow_pickle=["good"]).findings


def test_every_file_gets_its_finding_and_the_checker_says_who_it_is(child: Child) -> None:
    loaded = loading.load(child, child.cwd, [Artifact("good", ("model",)), Artifact("other")])
    assert list(loaded.findings) == ["good", "other"]
    assert all(finding.is_good for finding in loaded.findings.values())
    assert (loaded.loader, loaded.sandbox) == ("torch 2.13.0", ("no-network",))


def test_the_checker_is_told_the_folder_the_keys_and_what_may_run_code(child: Child) -> None:
    facts = load(child, "good")["good"].facts
    assert facts["request"] == {
        "folder": str(child.cwd),
        "files": [{"path": "good", "keys": ["model"]}],
        "allow_pickle": ["good"],
    }


def test_no_secret_of_the_environment_reaches_the_checker(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    assert set(load(child, "good")["good"].facts["env"]) <= {
        *("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "LC_CTYPE")
    }


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("kills", "killed the checker (signal 9)"),
        ("exits", "killed the checker (exit code 3)"),
        ("leaves a child", "killed the checker"),
        ("prints", "made the checker say what it never says"),
        ("speaks for another", "made the checker say what it never says"),
        ("says done", "made the checker say what it never says"),
    ],
)
def test_a_file_that_breaks_the_checker_is_named_and_the_others_are_loaded(
    child: Child, name: str, problem: str
) -> None:
    findings = load(child, "good", name, "last")
    assert sorted(findings) == sorted(["good", name, "last"])
    assert findings["good"].is_good and findings["last"].is_good
    assert f"loading it {problem}" in findings[name].problems[0]


def test_a_file_that_hangs_is_named_and_the_others_are_loaded(child: Child) -> None:
    hasty = Child(child.python, child.cwd, child.python_path, timeout_s=1)
    findings = load(hasty, "hangs", "last")
    assert findings["hangs"].problems == ("loading it took longer than 1 s",)
    assert findings["last"].is_good


def test_a_checker_that_does_not_even_begin_is_said_with_its_last_words(child: Child) -> None:
    assert child.python_path
    (Path(child.python_path) / "boxcar" / "training" / "load_check.py").write_text(
        "raise SystemExit('no torch here')"
    )
    with pytest.raises(BoxcarError, match="ended with code 1: no torch here"):
        load(child, "good")


def test_nothing_to_load_starts_no_checker(child: Child) -> None:
    assert load(Child("/no/such/python", child.cwd)) == {}

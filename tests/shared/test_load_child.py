from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import LIMIT_S

from boxcar.shared.artifacts.to_load import files_of, loaded_of, to_load
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, SAFE, TRUSTED, Artifact
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import UNCHECKED, Child, Loaded, Manner, load

FILES = [Artifact("a/one.dat"), Artifact("a/two.dat"), Artifact("b/three.dat", ("model",))]
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

Checker = Callable[..., Child]


@pytest.fixture
def checker(tmp_path: Path) -> Checker:
    """A program that speaks the load check's protocol, or breaks it, in place of the real one."""

    def write(body: str, timeout_s: float = 60) -> Child:
        package = tmp_path / "stand-in" / "boxcar" / "training"
        package.mkdir(parents=True)
        for folder in (package.parent, package):
            (folder / "__init__.py").touch()
        (package / "load_check.py").write_text(PREAMBLE + body)
        return Child(sys.executable, Path("/"), str(tmp_path / "stand-in"), timeout_s)

    return write


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`patient(n)`: a child's first n lines may take as long as a busy machine needs for them; only
    what comes then is measured."""

    def wait_for(lines: int) -> None:
        class Queue(queue.Queue[bytes]):
            heard = 0

            def get(self, block: bool = True, timeout: float | None = None) -> bytes:
                line = super().get(block, LIMIT_S if self.heard < lines else timeout)
                self.heard += 1
                return line

        here = SimpleNamespace(Queue=Queue, Empty=queue.Empty)
        monkeypatch.setattr(load_child, "queue", here)

    return wait_for


def _requests(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "requests").read_text().splitlines()]


def test_every_file_gets_its_finding(tmp_path, checker):
    loaded = load(checker(GOOD), tmp_path, FILES, Manner(("a/two.dat",)))
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


def test_how_a_file_is_loaded_is_asked_and_stands_in_its_finding(tmp_path, checker):
    """Whatever the child says of it: what runs code could say that it was loaded safely."""
    files = [Artifact("a.pt", load=TRUSTED), Artifact("b.pt", load=BYTES_ONLY), Artifact("c.pt")]
    ending = GOOD.replace("    finding", "    if 'b' in file['path']: sys.exit(5)\n    finding")
    heard: list[str] = []
    manner = Manner(
        code=("/code",), said_as={"a.pt": "*.pt"}, on_finding=lambda found: heard.append(found.path)
    )
    findings = load(checker(ending), tmp_path, files, manner).findings
    assert {path: found.load for path, found in findings.items()} == {
        "a.pt": TRUSTED, "b.pt": BYTES_ONLY, "c.pt": SAFE,
    }  # fmt: skip
    first, second = _requests(tmp_path)
    assert first["files"] == [
        {"path": "a.pt", "keys": [], "load": "trusted"},
        {"path": "b.pt", "keys": [], "load": "bytes"},
        {"path": "c.pt", "keys": []},
    ]
    assert (first["code"], first["said_as"]) == (["/code"], {"a.pt": "*.pt"})
    assert "said_as" not in second and heard == ["a.pt", "c.pt"]


def test_without_files_no_child_is_started(tmp_path, checker):
    assert load(checker("sys.exit(1)"), tmp_path, []).findings == {}
    assert not (tmp_path / "requests").exists()


def test_a_file_that_kills_the_checker_is_named_and_the_others_are_loaded(tmp_path, checker):
    killing = GOOD.replace(
        "    finding", "    if 'two' in file['path']: os.kill(os.getpid(), 9)\n    finding"
    )
    findings = load(checker(killing), tmp_path, FILES).findings
    assert findings["a/two.dat"].problems == ("loading it killed the checker (signal 9)",)
    assert findings["a/two.dat"].kind == UNCHECKED, "the system may have needed the memory"
    assert findings["a/one.dat"].is_good and findings["b/three.dat"].is_good
    assert len(_requests(tmp_path)) == 2


def test_a_file_that_ends_the_checker_is_named(tmp_path, checker):
    ending = GOOD.replace("    finding", "    sys.exit(5)\n    finding")
    findings = load(checker(ending), tmp_path, FILES).findings
    problems = {finding.problems for finding in findings.values()}
    assert problems == {("loading it killed the checker (exit code 5)",)}
    assert {finding.kind for finding in findings.values()} == {"unknown"}


def test_a_file_that_never_ends_is_named(tmp_path, checker, patient):
    patient(3)
    hanging = GOOD.replace(
        "    finding", "    if 'two' in file['path']: time.sleep(600)\n    finding"
    )
    findings = load(checker(hanging, timeout_s=2), tmp_path, FILES).findings
    assert findings["a/two.dat"].problems == ("loading it took longer than 2 s",)
    assert findings["b/three.dat"].is_good


def test_what_a_hanging_file_has_started_ends_with_it(tmp_path, checker, patient):
    """A grandchild keeps the pipe open; waiting for its end would take for ever."""
    patient(1)
    forking = "say(at='a/one.dat')\nif os.fork() == 0: time.sleep(600)\nos._exit(0)"
    findings = load(checker(forking, timeout_s=2), tmp_path, FILES[:1]).findings
    assert findings["a/one.dat"].problems == ("loading it took longer than 2 s",)


def test_a_word_that_comes_in_drops_is_waited_for_no_longer(tmp_path, checker, patient):
    patient(1)
    dripping = "say(at='a/one.dat')\nwhile True: os.write(1, b'{'); time.sleep(0.1)"
    findings = load(checker(dripping, timeout_s=1), tmp_path, FILES[:1]).findings
    assert findings["a/one.dat"].problems == ("loading it took longer than 1 s",)


def test_a_long_word_and_a_long_question_pass(tmp_path, checker):
    files = [Artifact(f"samples/{number:04}.json", ("x" * 100,)) for number in range(2000)]
    long = (
        "for f in request['files']:\n say(at=f['path'])\n finding(f['path'], ['x' * 1000])\ndone()"
    )
    findings = load(checker(long), tmp_path, files).findings
    assert len(findings) == 2000 and len(_requests(tmp_path)) == 1


@pytest.mark.parametrize(
    "line",
    ["hello", "[1]", "[" * 99_999, '{"x": 1}', '{"at": "/etc/passwd"}',
     '{"finding": {"path": "a/one.dat"}}',
     '{"finding": {"path": "b/three.dat", "kind": "bytes"}}', '{"done": true}'],
)  # fmt: skip
def test_a_file_that_speaks_for_the_checker_is_not_believed(tmp_path, checker, line):
    body = f"""
say(at=request["files"][0]["path"])
if request["files"][0]["path"] == "a/one.dat": print({line!r}, flush=True)
finding(request["files"][0]["path"])
done()
"""
    findings = load(checker(body), tmp_path, FILES).findings
    assert "made the checker give an answer" in findings["a/one.dat"].problems[0]
    assert findings["b/three.dat"].is_good


def test_a_file_that_says_that_all_is_done_is_named_and_the_others_are_loaded(tmp_path, checker):
    ending = GOOD.replace("    finding", "    if 'two' in file['path']: done()\n    finding")
    findings = load(checker(ending), tmp_path, FILES).findings
    assert "made the checker give an answer" in findings["a/two.dat"].problems[0]
    assert findings["a/one.dat"].is_good and findings["b/three.dat"].is_good


def test_a_checker_that_does_not_begin_is_a_problem_of_every_file_with_its_last_words(
    tmp_path, checker
):
    child = checker("sys.stderr.write('no torch for you'); sys.exit(7)")
    findings = load(child, tmp_path, FILES).findings
    assert list(findings) == [file.path for file in FILES]
    for finding in findings.values():
        assert finding.kind == UNCHECKED
        assert re.search(r"(?s)code 7.*no torch for you", finding.problems[0])
    assert len(_requests(tmp_path)) == 2


def test_a_checker_that_forgets_a_file_is_asked_again_and_then_the_file_is_unchecked(
    tmp_path, checker
):
    body = """
for file in [f for f in request["files"] if f["path"] != "a/two.dat"][:1]:
    say(at=file["path"])
    finding(file["path"])
done()
"""
    findings = load(checker(body), tmp_path, FILES).findings
    assert [findings[file.path].is_good for file in FILES] == [True, False, True]
    assert "reported on no file" in findings["a/two.dat"].problems[0]


def test_a_checker_that_speaks_of_what_nobody_asked_is_the_first_files_problem_alone(
    tmp_path, checker
):
    body = (
        """
if request["files"][0]["path"] == "a/one.dat":
    say(at="a/o?e.dat")
"""
        + GOOD
    )
    findings = load(checker(body), tmp_path, FILES).findings
    assert [findings[file.path].kind for file in FILES] == [UNCHECKED, "bytes", "bytes"]


def test_a_line_that_never_ends_takes_no_memory_to_speak_of(tmp_path, checker, monkeypatch):
    monkeypatch.setattr(load_child, "_LONGEST_LINE_BYTES", 1000)
    endless = "say(at='a/one.dat')\nwhile True: os.write(1, b'x' * 1000)"
    findings = load(checker(endless), tmp_path, FILES[:1]).findings
    assert "made the checker give an answer" in findings["a/one.dat"].problems[0]


def test_a_name_that_is_not_utf8_goes_there_and_back(tmp_path):
    name = os.fsdecode(b"caf\xe9.json")
    (tmp_path / name).write_bytes(b'{"step": 1}')
    (tmp_path / "good.json").write_bytes(b'{"step": 1}')
    child = Child(sys.executable, Path("/"))
    findings = load(child, tmp_path, [Artifact(name), Artifact("good.json")]).findings
    assert findings[name].is_good and findings["good.json"].is_good


def test_the_checker_gets_no_secrets(tmp_path, checker, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    spying = "say(at='a/one.dat')\nfinding('a/one.dat', sorted(os.environ))\ndone()"
    findings = load(checker(spying), tmp_path, FILES[:1]).findings
    known = {"PATH", "HOME", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH"}
    assert set(findings["a/one.dat"].problems) <= known


def _load_within(
    seconds: float,
    child: Child,
    folder: Path,
    files: Sequence[Artifact],
    then: Callable[[], object],
) -> list[object]:
    """What `load` gives or raises, in a thread that may hang; `then` sets it free in any case."""
    said: list[object] = []

    def run() -> None:
        try:
            said.append(load(child, folder, files))
        except BoxcarError as error:
            said.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    then()
    return said


def test_what_has_left_the_checkers_session_holds_nobody_up(tmp_path, checker, patient):
    """It keeps the pipe open, and no signal to the checker's group reaches it."""
    patient(1)
    leaving = """
if os.fork() == 0:
    os.setsid()
    open(request["folder"] + "/pid", "w").write(str(os.getpid()))
else:
    while not os.path.exists(request["folder"] + "/pid"): time.sleep(0.01)
    say(at='a/one.dat')
time.sleep(3600)
"""

    def kill() -> None:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    said = _load_within(LIMIT_S / 10, checker(leaving, timeout_s=1), tmp_path, FILES[:1], kill)
    assert isinstance(said[0], Loaded)
    assert said[0].findings["a/one.dat"].problems == ("loading it took longer than 1 s",)


def test_a_checker_that_never_listens_holds_nobody_up_also_for_many_files(tmp_path):
    deaf = tmp_path / "python"
    deaf.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 3600\n")
    deaf.chmod(0o755)
    files = [Artifact(f"{number}-{'x' * 100}.dat") for number in range(2000)]

    def kill() -> None:
        # Also where it was ended before it had begun.
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    said = _load_within(LIMIT_S / 10, Child(str(deaf), tmp_path, None, 1.0), tmp_path, files, kill)
    assert isinstance(said[0], Loaded)
    assert {finding.kind for finding in said[0].findings.values()} == {UNCHECKED}
    assert len(said[0].findings) == 2000


def test_an_interpreter_that_is_not_there_is_an_error_by_its_name(tmp_path):
    with pytest.raises(BoxcarError, match="/no/such/python"):
        load(Child("/no/such/python", tmp_path), tmp_path, FILES)


def test_a_python_below_the_home_is_found_as_the_wrapper_finds_it(tmp_path, monkeypatch):
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Child("~/python", tmp_path).argv[0] == f"{tmp_path}/python"
    assert Child("python3", tmp_path).argv[0] == "python3"


# --- what there is to load


SIZES = {
    "best.pth": 1,
    "shards/0.pt": 1,
    "shards/deep/1.pt": 1,
    "shards/_SUCCESS": 0,
    "shards.json": 1,
}
MANIFEST = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=1, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="",
    files=tuple(FileRecord(name, size_bytes, "") for name, size_bytes in SIZES.items()),
)  # fmt: skip


def test_an_artifact_is_a_file_or_a_folder_by_its_whole_name():
    assert [file.path for file in files_of("best.pth", MANIFEST)] == ["best.pth"]
    assert [file.path for file in files_of("shards", MANIFEST)] == [
        "shards/0.pt", "shards/deep/1.pt", "shards/_SUCCESS",
    ]  # fmt: skip
    assert files_of("shard", MANIFEST) == []


def test_an_empty_file_is_loaded_only_where_it_is_the_artifact():
    assert loaded_of("shards", MANIFEST) == ["shards/0.pt", "shards/deep/1.pt"]
    assert loaded_of("shards/_SUCCESS", MANIFEST) == ["shards/_SUCCESS"]


def test_a_file_of_two_artifacts_is_loaded_once_with_the_keys_of_both():
    wanted = [Artifact("shards", ("model",)), Artifact("shards/0.pt", ("step", "model"))]
    assert to_load(wanted, MANIFEST) == [
        Artifact("shards/0.pt", ("model", "step")), Artifact("shards/deep/1.pt", ("model",)),
    ]  # fmt: skip


def test_of_a_pattern_belongs_what_the_manifest_says_was_taken():
    taken = replace(MANIFEST, matches={"*.pth": ("best.pth",), "sh*/": ("shards",)})
    assert loaded_of("*.pth", taken) == ["best.pth"]
    assert loaded_of("sh*/", taken) == ["shards/0.pt", "shards/deep/1.pt"]
    assert files_of("never-*.pt", taken) == []


def test_how_a_file_is_loaded_says_who_names_it_itself_else_the_first():
    taken = replace(MANIFEST, matches={"*.p*": ("best.pth",)})
    wanted = [Artifact("*.p*", load=TRUSTED), Artifact("best.pth", load=BYTES_ONLY)]
    assert to_load(wanted, taken) == [Artifact("best.pth", load=BYTES_ONLY)]
    assert to_load([Artifact("shards", load=TRUSTED), Artifact("shards")], taken) == [
        Artifact("shards/0.pt", load=TRUSTED), Artifact("shards/deep/1.pt", load=TRUSTED),
    ]  # fmt: skip


def test_each_match_that_is_a_sharded_checkpoint_has_its_keys_in_its_own_index():
    files = ("s-1/.metadata", "s-1/__0_0.distcp", "s-2/.metadata", "s-2/__0_0.distcp")
    records = tuple(FileRecord(name, 1, "") for name in files)
    sharded = replace(MANIFEST, files=records, matches={"s-*/": ("s-2", "s-1")})
    assert to_load([Artifact("s-*/", ("model",))], sharded) == [
        Artifact(files[0], ("model",)), Artifact(files[1]),
        Artifact(files[2], ("model",)), Artifact(files[3]),
    ]  # fmt: skip


def test_a_folder_that_is_a_sharded_checkpoint_has_its_keys_in_its_index():
    files = ("ckpt/.metadata", "ckpt/__0_0.distcp", "ckpt/complete.json")
    sharded = replace(MANIFEST, files=tuple(FileRecord(name, 1, "") for name in files))
    assert to_load([Artifact("ckpt", ("model",))], sharded) == [
        Artifact("ckpt/.metadata", ("model",)), Artifact(files[1]), Artifact(files[2]),
    ]  # fmt: skip


def test_of_a_cell_that_leaves_no_artifact_its_log_is_the_result():
    made = replace(MANIFEST, files=(*MANIFEST.files, FileRecord("a.log", 3, "")))
    assert to_load([], made) == [Artifact("a.log", load=BYTES_ONLY)]

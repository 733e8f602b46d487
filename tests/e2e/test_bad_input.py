"""Bad input: exit code 2, a sentence with the words that matter, and nothing is touched."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from tiny_project import Said, TinyProject, environment

from boxcar.cli import program

TypeHere = Callable[..., Said]
Spoil = Callable[[TinyProject], object]
SECRET = {"BOXCAR_WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


@dataclass(frozen=True)
class Bad:
    """How a good project is spoilt, and the words that must be said of it."""

    name: str
    spoil: Spoil
    words: Sequence[str]
    verb: tuple[str, ...] = ("plan",)
    env: tuple[tuple[str, str], ...] = ()


def job(**changes: object) -> Spoil:
    return lambda project: project.write_job(**changes)


def line(*lines: str, queue: str = "q1") -> Spoil:
    return lambda project: project.append(queue, *lines)


def raw(data: bytes) -> Spoil:
    return lambda project: (project.root / "queues/q1.txt").write_bytes(data)


def template(name: str, text: str) -> Spoil:
    def spoil(project: TinyProject) -> None:
        (project.root / "templates").mkdir()
        (project.root / "templates" / name).write_text(text)

    return spoil


def more(file: str, text: str) -> Spoil:
    """Text at the end of a file, which need not be there yet."""

    def spoil(project: TinyProject) -> None:
        with (project.root / file).open("a") as opened:
            opened.write(text)

    return spoil


def nothing(project: TinyProject) -> None:
    """The project is good, and the command is not."""


def twin(project: TinyProject) -> None:
    """Another folder, another suffix, the same name."""
    (project.root / "more").mkdir()
    (project.root / "more" / "a.yaml").write_text("x: 1")
    project.append("q2", "more/a.yaml two")


def webhook(url: str, secret: str = "env:BOXCAR_WEBHOOK_SECRET") -> Spoil:
    return job(notify=[{"webhook": {"url": url, "secret": secret}}])


LONG = b"configs/a.json " + b"x" * 10_000_000 + b"\n"
URL = (("BOXCAR_WEBHOOK_URL", "localhost:8765"), *SECRET.items())
TABLE = [
    Bad("unknown key", job(epoch=3), ["job.yaml:", "epoch", "did you mean", "epochs"]),
    Bad("unknown placeholder", job(command="train.py --c {config}"), ["{config}", "{cfg}"]),
    Bad("unknown launcher", job(launcher="slurm"), ["launcher", "slurm", "torchrun"]),
    Bad("bad run name", job(name="Tiny Run"), ["name", "Tiny Run", "a-z"]),
    Bad("newline in the run's name", job(name="ti\nny"), ["name", "a-z"]),
    Bad("no YAML", more("job.yaml", "env: [x\n"), ["job.yaml"]),
    Bad("a key twice", more("job.yaml", "name: again\n"), ["job.yaml:", "name"]),
    Bad("artifact outside", job(artifacts=["../best.json"]), ["artifacts", "../best.json"]),
    Bad("no artifacts", job(artifacts=None), ["artifacts"]),
    Bad("epochs of the job", job(epochs="many"), ["epochs", "many"]),
    Bad("webhook that is no URL", webhook("localhost:8765"), ["url", "http"]),
    Bad("webhook in the environment that is no URL", webhook("env:BOXCAR_WEBHOOK_URL"),
        ["BOXCAR_WEBHOOK_URL", "http"], ("launch",), URL),
    Bad("secret in the file", webhook("http://x/", secret="whsec_AAAA"), ["secret", "env:"]),
    Bad("secret that is not set", job(secrets=["NOBODYS_TOKEN"]), ["NOBODYS_TOKEN", "export"],
        ("launch",)),
    Bad("missing queue file", job(queues={"queues/none.txt": "box-a"}), ["queues/none.txt"]),
    Bad("missing config", line("configs/x.json one"), ["queues/q1.txt:2", "configs/x.json"]),
    Bad("one name twice in a queue", line("configs/a.json two"), ["q1.txt:2", "'a'", "line 1"]),
    Bad("one name twice across queues", twin, ["queues/q2.txt:2", "'a'", "queues/q1.txt:1"]),
    Bad("a config outside", line("../a.json one"), ["queues/q1.txt:2", "'..'"]),
    Bad("an absolute config", line("/etc/passwd one"), ["queues/q1.txt:2", "/etc/passwd"]),
    Bad("a config like a flag", line("--help one"), ["queues/q1.txt:2", "--help"]),
    Bad("newline in a name", line("'configs/a\nb.json' one"), ["q1.txt:2", "The same on line 3"]),
    Bad("control character", line("'configs/a\vb.json' one"), ["q1.txt:2", "control character"]),
    Bad("metacharacters in a name", line("'configs/$(touch canary).json' one"),
        ["queues/q1.txt:2", "$(touch canary)"]),
    Bad("an open quote", line("configs/a.json 'one"), ["queues/q1.txt:2"]),
    Bad("one field", line("configs/a.json"), ["queues/q1.txt:2", "<cfg> <task> [epochs]"]),
    Bad("a bare fourth word", line("configs/b.json one 2 3"), ["q1.txt:2", "'3'", "after --"]),
    Bad("a slip in an own word", line("configs/b.json one nproc2=2"), ["q1.txt:2", "nproc="]),
    Bad("an own word too late", line("configs/b.json one lr=1 nproc=2"), ["q1.txt:2", "first"]),
    Bad("a key twice", line("configs/b.json one lr=1 --lr=2"), ["q1.txt:2", "lr=", "twice"]),
    Bad("no such time", line("configs/b.json one time=2x"), ["q1.txt:2", "time=", "2h"]),
    Bad("after nobody", line("configs/b.json one after=z"), ["q1.txt:2", "after=z"]),
    Bad("a remark at its end", line("configs/b.json one 2 # later"), ["q1.txt:2", "comment"]),
    Bad("epochs that are no number", line("configs/b.json one ten"), ["queues/q1.txt:2", "'ten'"]),
    Bad("epochs of zero", line("configs/b.json one 0"), ["queues/q1.txt:2", "'0'"]),
    Bad("not UTF-8", raw(b"configs/\xff.json one\n"), ["queues/q1.txt:1", "UTF-8"]),
    Bad("a line of 10 MB", raw(LONG), ["queues/q1.txt:", "bytes"]),
    Bad("unknown profile", nothing, ["lokal", "local"], ("plan", "--profile", "lokal")),
    Bad("missing job", lambda p: (p.root / "job.yaml").unlink(), ["job.yaml", "--job"]),
    Bad("unknown box", nothing, ["box-z", "box-a"], ("launch", "--box", "box-z")),
    Bad("unknown cell to pull", nothing, [".boxcar"], ("pull", "--cell", "z")),
    Bad("unknown cell in logs", nothing, ["z", "a"], ("logs", "--cell", "z")),
    Bad("unknown queue to drain", nothing, ["q9", "q1"], ("drain", "--queue", "q9")),
    Bad("negative start index", nothing, ["--start-index", "-1"], ("launch", "--start-index=-1")),
    Bad("undefined variable in a template", template("run_one.sh.j2", "echo {{ nothing }}\n"),
        ["run_one.sh.j2", "nothing"], ("launch",)),
    Bad("template that does not parse", template("run_queue.sh.j2", "{% if %}\n"),
        ["run_queue.sh.j2"], ("push",)),
    Bad("config that an ignore file leaves out", more(".boxcarignore", "*.json\n"),
        ["configs/a.json", "ignore file"], ("launch",)),
    Bad("unknown verb", nothing, ["lunch", "did you mean 'launch'", "--list"], ("lunch",)),
    Bad("unknown flag", nothing, ["--jbo", "did you mean '--job'", "--help plan"],
        ("plan", "--jbo")),
    Bad("a flag without its value", nothing, ["--profile needs a value"], ("plan", "--profile")),
    Bad("flag of the wrong type", nothing, ["many"], ("launch", "--start-index", "many")),
    Bad("verb without what it needs", nothing, ["cell"], ("logs",)),
]  # fmt: skip


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.name) for bad in TABLE])
def test_bad_input_is_refused_with_a_sentence_and_touches_nothing(project, bad, type_here):
    run = project({"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]})
    bad.spoil(run)
    before = listing(run.root)
    said = type_here(run, *bad.verb, env=dict(bad.env)).ended(2)
    assert not said.out.strip()
    for word in bad.words:
        assert word in said.err, f"{word!r} is not said: {said}"
    assert len(said.err) < 3000, "a person cannot read that much"
    assert SECRET["BOXCAR_WEBHOOK_SECRET"] not in said.err
    assert listing(run.root) == before
    assert not list(run.root.parent.rglob("canary*"))


def test_all_problems_are_said_at_once(project):
    run = project(
        {"q1": ["configs/a.json one ten", "configs/no.json one"], "q2": ["../x.json one"]}
    )
    (run.root / "configs/no.json").unlink()
    said = run.boxcar("launch").ended(2)
    for at in ("queues/q1.txt:1", "queues/q1.txt:2", "queues/q2.txt:1"):
        assert at in said.err


def test_crlf_and_a_byte_order_mark_are_taken_as_what_they_mean(project):
    run = project({"q1": ["configs/a.json one"]})
    lines = b"\xef\xbb\xbf# from Windows\r\nconfigs/a.json one 3\r\n\r\nconfigs/b.json two"
    (run.root / "queues/q1.txt").write_bytes(lines)
    run.write_config("b", x=4)
    assert [cell["epochs"] for cell in run.boxcar("plan", "--json").ended(0).document["cells"]] == [
        3,
        2,
    ]
    run.boxcar("push").ended(0)
    expected = b"# from Windows\nconfigs/a.json one 3\n\nconfigs/b.json two\n"
    assert (run.tier / "queues/q1.txt").read_bytes() == expected
    assert run.boxcar("push", "--json").ended(0).document["queues"] == {"q1": "same"}


def test_a_queue_that_was_edited_above_its_end_is_refused_and_kept(project):
    run = project({"q1": ["configs/a.json one", "configs/b.json one"]})
    run.boxcar("push").ended(0)
    queue = run.root / "queues/q1.txt"
    queue.write_text("configs/b.json one\nconfigs/a.json one\n")
    before = listing(run.root)
    said = run.boxcar("push").ended(2)
    assert "Queue lines can only be appended" in said.err
    assert "-configs/b.json one" in said.err
    assert listing(run.root) == before


def test_a_queue_that_is_edited_on_the_tier_while_it_runs_is_noticed(project):
    run = project({"q1": ["configs/a.json one", "configs/b.json one", "configs/c.json one"]})
    run.hold("a", at=1)
    run.boxcar("launch").ended(0)
    run.wait_for_step("box-a", "a", 1)
    (run.tier / "queues/q1.txt").write_text("configs/a.json one\nconfigs/c.json two\n")
    run.let_go("a")
    watched = run.boxcar("watch", "--json").ended(0).document
    warnings = [warning["text"] for warning in watched["warnings"]]
    assert any("was edited above its end: cell 1 was" in text for text in warnings)
    assert any("1 line removed at the end" in text for text in warnings)
    tasks = {
        e["data"]["cell"]: e["data"]["task"]
        for e in run.events("q1")
        if e["type"] == "cell.started"
    }
    assert tasks == {"a": "one", "c": "two"}
    # The plan still has it: a line that vanished is a cell that is owed.
    assert {cell["cell"]: cell["state"] for cell in watched["cells"]}["b"] == "queued"


@pytest.fixture
def type_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[TypeHere]:
    """The program's own door, in this process: half a hundred starts of Python take a minute."""

    def run(project: TinyProject, *words: str, env: dict[str, str]) -> Said:
        monkeypatch.chdir(project.root)
        monkeypatch.setattr(sys, "argv", ["boxcar", *words])
        capsys.readouterr()
        with (
            patch.dict(os.environ, environment() | env, clear=True),
            pytest.raises(SystemExit) as end,
        ):
            program.run(sys.argv)
        return Said(shlex.join(sys.argv), end.value.code, *capsys.readouterr())

    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        yield run


def listing(root: Path) -> dict[str, tuple[int, int, int]]:
    """Every file and folder with its size, mode and time of change."""
    found = {}
    for path in (root, *root.rglob("*")):
        status = os.lstat(path)
        found[str(path)] = (status.st_size, status.st_mode, status.st_mtime_ns)
    return found

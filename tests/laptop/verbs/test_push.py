from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apart import apart
from run_on_disk import held
from tiers import with_a_tier_per_box
from tiny_project import TinyProject, make_project

from boxcar.laptop.hosts import folders
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.verbs.push import push
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError, TemporaryError
from boxcar.shared.files import codec, release
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import Question


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    queues = {"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]}
    return make_project(tmp_path / "project", queues)


def opened(tiny: TinyProject) -> Project:
    return open_project(tiny.root / "job.yaml", "local")


def listing(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with what would change if it were written again."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def asked_from_now(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that are put from now on; they are answered as ever."""
    asked: list[str] = []
    ask = LocalSite.ask

    def note(self: LocalSite, box: str, question: Question[Any], **more: Any) -> Any:
        asked.append(question.NAME)
        return ask(self, box, question, **more)

    monkeypatch.setattr(LocalSite, "ask", apart(note))
    return asked


def test_a_line_that_is_commented_out_here_is_commented_out_on_the_tier(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.append("q1", "configs/a2.json one")
    tiny.write_config("a2")
    push(opened(tiny))
    (tiny.root / "queues" / "q1.txt").write_text("# configs/a.json one\nconfigs/a2.json one\n")
    capsys.readouterr()
    for queue in ("commented out", "same"):
        assert push(opened(tiny), as_json=True) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["queues"]["q1"] == queue
        there = opened(tiny).on_tier.queue("q1").read_text()
        assert there == "# configs/a.json one\nconfigs/a2.json one\n"
        said = "q1: commented out on the tier: configs/a.json one"
        assert (said in told.err) == (queue != "same")


def test_the_release_and_the_queues_are_on_the_tier(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(opened(tiny), as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert tiny.releases == {told["release"]}
    assert told["is_new"] and told["queues"] == {"q1": "appended", "q2": "appended"}
    assert (tiny.tier / "queues/q1.txt").read_text() == "configs/a.json one\n"
    folder = tiny.tier / "releases" / told["release"]
    assert release.read_release(folder).digest == told["release"]


def test_pushed_again_it_sends_nothing(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    push(opened(tiny))
    before = listing(tiny.tier)
    asked = asked_from_now(monkeypatch)
    capsys.readouterr()
    push(opened(tiny), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert not told["is_new"] and set(told["queues"].values()) == {"same"}
    assert listing(tiny.tier) == before
    assert asked == ["release", "prepare"]


def test_what_arrives_damaged_beside_a_base_is_sent_again_without_it(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(opened(tiny))
    before, bases_of = set(tiny.releases), []
    send = folders.send_folder

    def damage(source: Path, there: Path, **more: Any) -> None:
        send(source, there, **more)
        bases_of.append(len(more["bases"]))
        if more["bases"]:
            next(there.rglob("train.py")).write_bytes(b"of the base")

    monkeypatch.setattr(folders, "send_folder", damage)
    tiny.write_config("a", x=4)
    push(opened(tiny))
    assert len(tiny.releases - before) == 1
    assert bases_of == [2, 0]


def test_a_changed_job_touches_no_file_of_the_release_before(tiny: TinyProject) -> None:
    push(opened(tiny))
    before = listing(tiny.tier)
    tiny.write_config("a", x=4)
    tiny.append("q1", "configs/a2.json one")
    tiny.write_config("a2", x=1)
    push(opened(tiny))
    after = listing(tiny.tier)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"queues/q1.txt", "newest.json"}
    assert len(tiny.releases) == 2


def test_lines_that_another_laptop_appended_stay(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    push(opened(tiny))
    queue = tiny.tier / "queues/q1.txt"
    queue.write_text("configs/a.json one\nconfigs/b.json two\n")
    capsys.readouterr()
    push(opened(tiny), as_json=True)
    said = capsys.readouterr()
    assert json.loads(said.out)["queues"] == {"q1": "ahead", "q2": "same"}
    assert "q1: 1 line was appended on the tier" in said.err
    assert queue.read_text() == "configs/a.json one\nconfigs/b.json two\n"


def test_lines_that_come_between_the_look_and_the_append_are_not_written_over(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(opened(tiny))
    tiny.append("q1", "configs/mine.json one")
    tiny.write_config("mine")
    queue = tiny.tier / "queues/q1.txt"
    ask = LocalSite.ask

    def be_faster(self: LocalSite, box: str, question: Question[Any], **more: Any) -> Any:
        if isinstance(question, run_asks.Append):
            with queue.open("a") as file:
                file.write("configs/theirs.json one\n")
        return ask(self, box, question, **more)

    monkeypatch.setattr(LocalSite, "ask", apart(be_faster))
    with pytest.raises(InputError, match="was changed meanwhile"):
        push(opened(tiny))
    assert queue.read_text() == "configs/a.json one\nconfigs/theirs.json one\n"


def test_queues_that_do_not_go_on_from_the_tiers_are_all_told_before_anything_is_sent(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(opened(tiny))
    for queue, cell in (("q1", "a"), ("q2", "b")):
        (tiny.root / f"queues/{queue}.txt").write_text(f"configs/{cell}.json other\n")
    tiny.write_config("a", x=5)
    before, asked = listing(tiny.tier), asked_from_now(monkeypatch)
    with pytest.raises(InputError) as caught:
        push(opened(tiny))
    assert "-configs/a.json one" in str(caught.value)
    assert "-configs/b.json one" in str(caught.value)
    assert listing(tiny.tier) == before and asked == []


def test_a_release_that_was_changed_on_the_tier_is_kept_and_said(tiny: TinyProject) -> None:
    push(opened(tiny))
    (digest,) = tiny.releases
    wrapper = tiny.tier / "releases" / digest / "run_one.sh"
    wrapper.write_text("echo something else\n")
    with pytest.raises(DamagedError, match=r"run_one\.sh .*move the folder away"):
        push(opened(tiny))
    assert wrapper.read_text() == "echo something else\n"


def test_a_push_that_was_killed_while_it_sent_is_made_again(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = LocalSite.ask

    def die(self: LocalSite, box: str, question: Question[Any], **more: Any) -> Any:
        if isinstance(question, run_asks.Install):
            raise KeyboardInterrupt
        return ask(self, box, question, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LocalSite, "ask", apart(die))
        with pytest.raises(KeyboardInterrupt):
            push(opened(tiny))
    (unfinished,) = (tiny.tier / "releases").iterdir()
    assert atomic.is_temporary(unfinished.name)
    assert not list((tiny.tier / "queues").iterdir()), "no line before the release that runs it"
    assert push(opened(tiny)) == 0
    (made,) = (tiny.tier / "releases").iterdir()
    assert not atomic.is_temporary(made.name)


@pytest.mark.parametrize("error", [NoRoomError, TemporaryError])
def test_what_the_box_says_ends_the_push(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(self: LocalSite, box: str, question: object, **more: object) -> object:
        raise error("the box said so")

    monkeypatch.setattr(LocalSite, "ask", apart(refuse))
    with pytest.raises(error, match="the box said so"):
        push(opened(tiny))


def test_a_box_that_cannot_take_its_release_holds_up_no_other(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each box has its own tier; here both are one folder, which is told by the queues in it."""
    project = with_a_tier_per_box(opened(tiny), monkeypatch, dying="box-a")
    with pytest.raises(TemporaryError, match="box-a cannot be reached"):
        push(project, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["queues"] == {"q2": "appended"} and told["is_new"]
    assert told["problems"] == ["box-a: box-a cannot be reached: the connection was lost"]
    assert [path.stem for path in (tiny.tier / "queues").glob("*.txt")] == ["q2"]
    with_a_tier_per_box(project, monkeypatch, dying="box-a box-b")
    with pytest.raises(BoxcarError, match=r"(?s)box-a: .*box-b: "):
        push(project)


def test_a_run_that_was_torn_down_is_not_pushed_to(tiny: TinyProject) -> None:
    project = opened(tiny)
    at = "2026-01-01T00:00:00.000Z"
    ended = Teardown("tiny", "ab" * 32, "remove", at, "typed", finished_at=at)
    atomic.make_folder(project.results.root)
    atomic.write_whole(project.results.teardown, codec.to_document(ended))
    with pytest.raises(InputError, match="was torn down"):
        push(project)
    assert not tiny.tier.exists()


@pytest.fixture
def running(tiny: TinyProject) -> Iterator[str]:
    """q1 with an agent at work, on the release that this is the digest of."""
    push(opened(tiny))
    (digest,) = tiny.releases
    tier = opened(tiny).on_tier
    journal = Journal(tier.journal("q1"), {"queue": "q1", "box": "box-a"})
    journal.append("agent.started", pid=7, release=digest, start_index=0)
    with held(tier.lock("q1")):
        yield digest


def add_line(tiny: TinyProject) -> None:
    tiny.append("q1", "configs/new.json one")
    tiny.write_config("new", x=1)


def test_a_line_with_a_new_config_is_pushed_under_a_running_queue_and_that_is_said(
    tiny: TinyProject, running: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_line(tiny)
    assert push(opened(tiny)) == 0
    (other,) = tiny.releases - {running}
    assert release.releases(tiny.tier / "newest.json") == (running, other)
    said = capsys.readouterr().err
    assert (
        f"q1: new will run on release {other[:12]}; all other cells stay on {running[:12]}" in said
    )


def test_where_more_than_configs_differ_nothing_is_sent_until_a_person_says_mixed(
    tiny: TinyProject, running: str
) -> None:
    add_line(tiny)
    script = tiny.root / "train.py"
    script.write_text(script.read_text() + "# edited\n")
    before = listing(tiny.tier)
    with pytest.raises(InputError, match=f"which lacks the configs of new.*{script.name} differs"):
        push(opened(tiny))
    assert listing(tiny.tier) == before
    assert push(opened(tiny), is_mixed=True) == 0
    assert (tiny.tier / "queues/q1.txt").read_text().endswith("configs/new.json one\n")
    assert push(opened(tiny)) == 0


def test_a_line_that_will_run_on_the_code_before_is_named(
    tiny: TinyProject, running: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.append("q1", "configs/a.json one name=a2")
    push(opened(tiny))
    assert "without what you changed" not in capsys.readouterr().err
    tiny.append("q1", "configs/a.json one name=a3")
    script = tiny.root / "train.py"
    script.write_text(script.read_text() + "# edited\n")
    assert push(opened(tiny)) == 0
    said = capsys.readouterr().err
    assert f"will run on release {running[:12]}, on which its agent stays" in said
    assert f"without what you changed in {script.name}. To use the new code" in said


def test_the_pointer_is_moved_after_the_release_and_before_the_lines(
    tiny: TinyProject, running: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_line(tiny)
    asked = asked_from_now(monkeypatch)
    push(opened(tiny))
    assert asked == ["release", "prepare", "install", "newest", "append"]


def test_a_line_whose_config_is_nowhere_is_told_and_is_no_success(
    tiny: TinyProject, running: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tiny.tier / "queues/q1.txt").open("a") as file:
        file.write("configs/nowhere.json one\n")
    assert push(opened(tiny)) == 1
    assert (
        "has their configs: line 2: configs/nowhere.json. Add the files" in capsys.readouterr().err
    )


def test_new_lines_are_sorted_by_what_earlier_runs_took_and_pushed_ones_never(
    tiny: TinyProject, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["short", "long", "middle"]
    for name in names:
        tiny.append("q1", f"configs/{name}.json one")
        tiny.write_config(name)
    tiny.write_job(order="longest")
    push(opened(tiny))
    assert "no earlier run says how long" in capsys.readouterr().err
    path = tiny.root / "results" / "before" / "journal" / "q1.jsonl"
    path.parent.mkdir(parents=True)
    log = Journal(path, {"run": "before", "queue": "q1", "box": "box-a"})
    for name, seconds in (("n1", 5.0), ("n2", 90.0), ("long", 900.0)):
        log.append("cell.started", cell=name, attempt=1, cfg="c", task="one", epochs=2)
        log.append("cell.succeeded", cell=name, attempt=1, seconds=seconds)
        log.append("cell.verified", cell=name, attempt=1, manifest_sha256="ab" * 32)
    for name in ("n1", "n2"):
        tiny.append("q1", f"configs/{name}.json one")
        tiny.write_config(name)
    push(opened(tiny))
    there = opened(tiny).on_tier.queue("q1").read_text()
    assert [line.split(".")[0] for line in there.splitlines()] == [
        f"configs/{name}" for name in ("a", "short", "long", "middle", "n2", "n1")
    ]
    assert (tiny.root / "queues" / "q1.txt").read_text() == there
    capsys.readouterr()
    push(opened(tiny))
    assert "sorted" not in capsys.readouterr().err

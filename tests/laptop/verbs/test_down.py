from __future__ import annotations

import io
import json
import os
import pty
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from finished_run import FILES, FinishedRun, keep_run, make_run, steps_until_end

from boxcar.laptop.project import launches
from boxcar.laptop.run.roster import Missing
from boxcar.laptop.verbs.down import _report, down
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import paths
from boxcar.shared.disk import lock
from boxcar.shared.errors import Command, DamagedError, InputError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import Teardown

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


def _verified(root: Path, cells: tuple[str, ...] = ("a", "b")) -> FinishedRun:
    run = make_run(root, cells)
    _put_sentinels(run)
    run.copy_here()
    verify(run.project)
    return run


def _put_sentinels(run: FinishedRun) -> None:
    """Things beside what belongs to the run, where a careless removal would take them."""
    bases = [run.site.tier.durable_dir]
    bases += [Path(box.data_dir) for box in run.project.plan.boxes]
    for base in bases:
        for name in ("keep", "boxcar/keep", "boxcar/tiny-2/keep", "boxcar/.removing-tiny-2/keep"):
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text("keep")
    for box in run.project.plan.boxes:
        Path(box.credentials).with_name("credentials-tiny-2.json").write_text("keep")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], FinishedRun]:
    folder = tmp_path_factory.mktemp("verified")
    return keep_run(_verified(folder / "project"), folder / "copy")


@pytest.fixture
def run(verified: Callable[[], FinishedRun]) -> FinishedRun:
    return verified()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield


def _digest(run: FinishedRun) -> str:
    return receipt.read_run(run.project.results.receipt).digest


def _is_untouched(run: FinishedRun) -> bool:
    project = run.project
    return (
        project.on_tier.root.is_dir()
        and all(project.scratch(box.name).root.is_dir() for box in project.plan.boxes)
        and all(Path(box.credentials).is_file() for box in project.plan.boxes)
        and not project.results.teardown.exists()
    )


def _is_gone(run: FinishedRun) -> bool:
    """Everything of the run is gone, and everything beside it is there."""
    left = [path for path in (run.root / ".boxcar").rglob("*") if path.is_file()]
    return len(left) == 14 and {path.read_text() for path in left} == {"keep"}


def _refuses(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> str:
    """What `down` says; it must refuse, also with the right approval, and remove nothing."""
    path = run.project.results.receipt
    approve = receipt.read_run(path).digest if path.exists() else "0" * 64
    before = run.snapshot(run.root)
    capsys.readouterr()
    assert down(run.project, approve=approve) == 1
    after = run.snapshot(run.root)
    assert after.keys() - before.keys() <= {"results/tiny/.lock"}
    assert before.items() <= after.items()
    return capsys.readouterr().err


# --- it opens


def test_down_removes_the_run_and_nothing_else(run: FinishedRun) -> None:
    results = run.snapshot(run.project.results.root)
    assert down(run.project, approve=_digest(run)) == 0
    assert _is_gone(run)
    written = receipt.read_teardown(run.project.results.teardown)
    assert (written.run, written.digest, written.verb) == ("tiny", _digest(run), "remove")
    assert written.approved_by == "--approve" and written.finished_at
    assert results.items() <= run.snapshot(run.project.results.root).items()


def test_twelve_characters_of_the_digest_are_enough(run: FinishedRun) -> None:
    assert down(run.project, approve=_digest(run)[:12]) == 0


def test_what_is_lost_and_what_stays_is_said_before(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    down(run.project, approve="0" * 12)
    told = capsys.readouterr().err
    for box in run.project.plan.boxes:
        assert box.credentials in told
        assert str(run.project.scratch(box.name).root) in told
    assert str(run.site.tier.root) in told
    assert f"This stays: {run.project.results.root}" in told
    assert _is_untouched(run)


def test_the_jobs_data_is_named_as_what_stays(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(run.project.plan, data={"cifar": "ab" * 32})
    down(replace(run.project, plan=plan), approve="0" * 12)
    assert "the job's data on its boxes: cifar. To see and remove it: invoke data" in (
        " ".join(capsys.readouterr().err.split())
    )


def test_a_result_in_doubt_is_said_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "marked")
    run.publish("a", doubt="12 of 100 epochs")
    run.copy_here()
    verify(run.project)
    capsys.readouterr()
    assert down(run.project, approve="0" * 12) == 1
    assert "whose result is not certain: 12 of 100 epochs" in capsys.readouterr().err


def _down_typing(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, *lines: str, as_json: bool = False
) -> int:
    """With a terminal at which these lines are typed."""
    leader, terminal = pty.openpty()
    os.write(leader, "".join(f"{line}\n" for line in lines).encode())
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code = down(run.project, as_json=as_json)
    os.close(leader)
    return code


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["tiny"], 0),
        (["tin", "tiny"], 0),
        (["tin", "yes", "tiny"], 0),
        (["tin", "yes", "tinny"], 1),
        (["tin", ""], 1),
        ([""], 1),
    ],
)
def test_a_person_types_the_runs_name_and_may_slip_twice(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, typed: list[str], code: int
) -> None:
    assert _down_typing(run, monkeypatch, *typed) == code
    assert _is_gone(run) if code == 0 else _is_untouched(run)


def test_under_json_a_wrong_name_is_asked_once(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _down_typing(run, monkeypatch, "tin", "tiny", as_json=True) == 1
    said = capsys.readouterr()
    assert said.err.count("Type the run's name") == 1 and not json.loads(said.out)["is_down"]
    assert _is_untouched(run)


def test_in_a_pipe_a_wrong_name_is_asked_once(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("tin\ntiny\n"))
    assert down(run.project) == 1
    assert _is_untouched(run)


def test_what_changes_while_the_person_thinks_is_noticed(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def change_and_type(_: str) -> str:
        run.flip_byte(run.here("b", "weights.dat"), 9)
        return "tiny"

    monkeypatch.setattr("boxcar.laptop.common.show.ask", change_and_type)
    assert down(run.project) == 1
    assert "b: weights.dat" in capsys.readouterr().err
    assert _is_untouched(run)


@pytest.mark.usefixtures("nobody")
def test_without_a_person_it_needs_the_digest(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert down(run.project) == 1
    assert f"invoke down --approve {_digest(run)[:12]}" in capsys.readouterr().err
    assert _is_untouched(run)


def test_after_the_end_it_says_so(run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> None:
    down(run.project, approve=_digest(run))
    capsys.readouterr()
    assert down(run.project, as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_down"] and said["teardown"]["finished_at"] and said["missing"] == []


# --- it refuses


@pytest.mark.parametrize("name", [*FILES, paths.MANIFEST])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_down_refuses_when_one_byte_differs(
    run: FinishedRun, name: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run.flip_byte(run.here("b", name), at)
    told = _refuses(run, capsys)
    assert name in told and "invoke pull" in told


@pytest.mark.parametrize("name", [*FILES, paths.MANIFEST])
def test_down_refuses_when_a_file_is_empty_or_gone(
    run: FinishedRun, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run.here("b", name).write_bytes(b"")
    assert name in _refuses(run, capsys)
    run.here("b", name).unlink()
    assert "\nb" in _refuses(run, capsys)


def test_down_refuses_when_a_carried_file_is_gone_and_abandoning_is_a_way_out(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.publish("a", carried={"wandb/run.wandb": b"log"})
    shutil.rmtree(run.project.results.cells)
    shutil.copytree(run.site.tier.cells, run.project.results.cells)
    run.here("a", "wandb/run.wandb").unlink()
    verify(run.project)
    before = _digest(run)
    assert down(run.project, approve=before) == 1
    assert "wandb/run.wandb, an unverified extra file, is missing" in capsys.readouterr().err
    assert run.site.tier.root.exists()
    assert down(run.project, abandon=["a"], because="of no use", approve=before) == 1
    assert down(run.project, approve=_digest(run)) == 0


def test_down_refuses_without_a_receipt(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.project.results.receipt.unlink()
    assert "invoke verify" in _refuses(run, capsys)


def test_down_refuses_a_damaged_receipt(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.project.results.receipt.write_bytes(b"{}")
    assert down(run.project, approve="0" * 64) == 1
    assert "invoke verify" in capsys.readouterr().err
    assert _is_untouched(run)


def test_down_refuses_a_receipt_that_claims_too_much(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that says nothing is missing, though nothing was loaded."""
    made = receipt.read_run(run.project.results.receipt)
    cells = tuple(receipt.CellVerdict(v.cell, v.queue, v.manifest_sha256) for v in made.cells)
    claim = receipt.RunReceipt("tiny", made.made_at, cells)
    run.project.results.receipt.write_bytes(codec.to_document(claim))
    assert "was not loaded" in _refuses(run, capsys)


def test_down_refuses_a_cell_that_was_queued_since(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write_queue("q2", "configs/late.yaml seg\n")
    assert "late is not published: invoke launch" in _refuses(run, capsys)


def test_down_refuses_a_cell_of_an_earlier_release(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write_release("r1", "forgotten")
    assert "forgotten" in _refuses(run, capsys)


@needs_rsync
def test_down_refuses_when_a_cell_was_published_again(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the old approval is worth nothing once the new result was pulled and verified."""
    approved = _digest(run)
    run.publish("a", FILES | {"weights.dat": b"newer"})
    assert "a: was published again" in _refuses(run, capsys)
    pull(run.project)
    assert "invoke verify" in _refuses(run, capsys)
    verify(run.project)
    assert down(run.project, approve=approved) == 1
    assert _digest(run)[:12] in capsys.readouterr().err
    assert _is_untouched(run)
    assert down(run.project, approve=_digest(run)) == 0


def test_down_refuses_when_the_tier_is_not_there(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    tier = run.site.tier.durable_dir
    tier.rename(tier.with_name("unmounted"))
    told = _refuses(run, capsys)
    assert "the run is not on its durable tier" in told and f"--gone {tier} --because" in told


def test_a_tier_that_is_gone_for_good_is_given_up_by_name_once_every_result_is_proven_here(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    tier, because = str(run.site.tier.durable_dir), "the volume was deleted"
    with pytest.raises(InputError, match="the run is there, so it is not gone"):
        down(run.project, gone=[tier], because=because)
    shutil.rmtree(tier)
    assert down(run.project, approve=_digest(run)) == 1
    with pytest.raises(InputError, match="needs a reason"):
        down(run.project, gone=[tier], approve=_digest(run))
    run.flip_byte(run.here("a", "weights.dat"), at=3)
    assert down(run.project, gone=[tier], because=because, approve=_digest(run)) == 1
    run.flip_byte(run.here("a", "weights.dat"), at=3)
    capsys.readouterr()
    assert down(run.project, gone=[tier], because=because, approve=_digest(run)) == 0
    assert "are compared with their own manifests and the receipt instead" in (
        capsys.readouterr().err
    )
    found = receipt.read_teardown(run.project.results.teardown)
    assert found and found.gone == {tier: because} and found.exposed == {}
    assert not any(Path(box.credentials).exists() for box in run.project.plan.boxes)


def test_down_refuses_while_an_agent_lives(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    fd = lock.try_hold(run.site.tier.lock("q2"))
    assert fd is not None
    told = _refuses(run, capsys)
    assert "the agent of q2" in told and "invoke drain" in told and "invoke stop" in told
    os.close(fd)
    assert down(run.project, approve=_digest(run)) == 0


def test_down_refuses_while_an_attempt_outlives_its_agent(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    fd = lock.try_hold(run.project.scratch("box-b").log("a"))
    assert fd is not None
    assert "a: it still runs on box-b" in _refuses(run, capsys)
    os.close(fd)


def test_down_refuses_a_copy_that_is_a_link_to_the_tier(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run.project.results.cell("a"))
    run.project.results.cell("a").symlink_to(run.site.tier.cell("a"))
    assert "symbolic link" in _refuses(run, capsys)


def test_down_refuses_a_linked_cells_folder_on_the_tier(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = run.root / "elsewhere"
    run.site.tier.cells.rename(elsewhere)
    run.site.tier.cells.symlink_to(elsewhere)
    assert "symbolic link" in _refuses(run, capsys)


def test_down_refuses_what_its_unfinished_teardown_cannot_explain(run: FinishedRun) -> None:
    run.project.results.teardown.write_bytes(b"{")
    with pytest.raises(DamagedError, match=r"teardown\.json"):
        down(run.project, approve=_digest(run))


# --- abandoned cells


@pytest.fixture
def lacking(tmp_path: Path) -> FinishedRun:
    """A run whose cell b was never published."""
    run = make_run(tmp_path)
    _put_sentinels(run)
    shutil.rmtree(run.site.tier.cell("b"))
    run.copy_here()
    verify(run.project)
    return run


@pytest.mark.usefixtures("nobody")
def test_an_abandoned_cell_is_recorded_said_and_then_no_obstacle(
    lacking: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _digest(lacking)
    assert down(lacking.project, abandon=["b"], because="it diverged", approve=before) == 1
    told = capsys.readouterr().err
    assert "abandoned because it diverged" in told and _digest(lacking)[:12] in told
    assert receipt.read_run(lacking.project.results.receipt).cells[1].because == "it diverged"
    assert down(lacking.project, approve=_digest(lacking)) == 0
    assert _is_gone(lacking)


def test_an_abandoned_cell_that_was_published_since_is_looked_at_again(
    lacking: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    down(lacking.project, abandon=["b"], because="it diverged", approve="0" * 12)
    lacking.publish("b")
    assert "b has changed since" in _refuses(lacking, capsys)


def test_a_receipt_that_was_rewritten_while_the_person_read_is_not_approved(
    lacking: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    down(lacking.project, abandon=["b"], because="it diverged", approve="0" * 12)

    def rewrite_and_type(_: str) -> str:
        path = lacking.project.results.receipt
        path.write_bytes(path.read_bytes().replace(b"it diverged", b"nobody wants it"))
        return "tiny"

    monkeypatch.setattr("boxcar.laptop.common.show.ask", rewrite_and_type)
    assert down(lacking.project) == 1
    assert _is_untouched(lacking)


@pytest.mark.parametrize(
    ("abandon", "because", "words"),
    [
        (["b"], None, "--because"),
        (["b"], "  ", "--because"),
        ([], "it diverged", "--abandon CELL"),
        (["bb"], "it diverged", "no cell 'bb'"),
        (["a"], "it diverged", "a: nothing is missing"),
        (["a", "b"], "it diverged", "a: nothing is missing"),
    ],
)
def test_abandoning_needs_a_cell_that_is_missing_and_a_reason(
    lacking: FinishedRun, abandon: list[str], because: str | None, words: str
) -> None:
    before = _digest(lacking)
    with pytest.raises(InputError, match=words):
        down(lacking.project, abandon=abandon, because=because, approve=before)
    assert _digest(lacking) == before and _is_untouched(lacking)


def test_a_result_that_only_waits_to_be_pulled_is_not_given_up(lacking: FinishedRun) -> None:
    lacking.publish("b")
    before = _digest(lacking)
    with pytest.raises(InputError, match="b: its result is published") as raised:
        down(lacking.project, abandon=["b"], because="it diverged", approve=before)
    assert raised.value.messages[0].command == Command("pull", ("--cell", "b"))
    assert _digest(lacking) == before and _is_untouched(lacking)


def test_abandoning_needs_no_receipt_and_verify_keeps_it(
    lacking: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking.project.results.receipt.unlink()
    assert down(lacking.project, abandon=["b"], because="it diverged", approve="0" * 12) == 1
    assert "a: weights.dat was not loaded" in capsys.readouterr().err
    assert verify(lacking.project) == 0
    assert receipt.read_run(lacking.project.results.receipt).cells[1].because == "it diverged"
    assert down(lacking.project, approve=_digest(lacking)) == 0


# --- killed in the middle


def test_down_ends_right_wherever_it_was_killed(tmp_path: Path) -> None:
    verified = keep_run(_verified(tmp_path / "project", ("a",)), tmp_path / "copy")
    for die_at in range(1, 1000, 9):
        run = verified()
        approve = _digest(run)
        steps = steps_until_end(
            lambda run=run, approve=approve: down(run.project, approve=approve), run.root, die_at
        )
        was_approved = run.project.results.teardown.exists()
        assert was_approved or _is_untouched(run)
        assert down(run.project, approve=None if was_approved else approve) == 0
        assert _is_gone(run)
        assert receipt.read_teardown(run.project.results.teardown).finished_at
        if steps is not None:
            break
    assert die_at > 50


@pytest.fixture
def broken_off(run: FinishedRun) -> FinishedRun:
    """A teardown that was killed after the tier was renamed."""
    made = Teardown("tiny", _digest(run), "remove", "2026-01-01T00:00:00.000Z", "typed")
    run.project.results.teardown.write_bytes(codec.to_document(made))
    run.site.tier.root.rename(run.site.tier.root.with_name(".removing-tiny"))
    return run


@pytest.mark.usefixtures("nobody")
def test_a_teardown_goes_on_without_a_new_approval(broken_off: FinishedRun) -> None:
    assert down(broken_off.project) == 0
    assert _is_gone(broken_off)
    written = receipt.read_teardown(broken_off.project.results.teardown)
    assert written.approved_at == "2026-01-01T00:00:00.000Z"


def test_a_teardown_goes_on_only_with_the_results_that_were_approved(
    broken_off: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    broken_off.flip_byte(broken_off.here("a", "weights.dat"), 1)
    assert "a: weights.dat" in _refuses(broken_off, capsys)


def test_a_teardown_that_was_begun_for_other_results_needs_a_new_approval(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Teardown("tiny", "0" * 64, "remove", "2026-01-01T00:00:00.000Z", "typed")
    run.project.results.teardown.write_bytes(codec.to_document(made))
    assert down(run.project, approve="0" * 64) == 1
    assert f"invoke down --approve {_digest(run)[:12]}" in capsys.readouterr().err
    assert run.site.tier.root.is_dir()
    assert down(run.project, approve=_digest(run)) == 0
    assert receipt.read_teardown(run.project.results.teardown).digest == _digest(run)


@pytest.mark.usefixtures("nobody")
def test_a_teardown_with_an_abandoned_cell_goes_on(lacking: FinishedRun) -> None:
    down(lacking.project, abandon=["b"], because="it diverged", approve="0" * 12)
    made = Teardown("tiny", _digest(lacking), "remove", "2026-01-01T00:00:00.000Z", "typed")
    lacking.project.results.teardown.write_bytes(codec.to_document(made))
    shutil.rmtree(lacking.site.tier.root)
    assert down(lacking.project) == 0
    assert _is_gone(lacking)


@pytest.mark.usefixtures("nobody")
def test_a_run_that_was_launched_anew_is_not_covered_by_the_old_approval(
    broken_off: FinishedRun,
) -> None:
    broken_off.publish("a", FILES | {"weights.dat": b"of the second life"})
    assert down(broken_off.project) == 1
    assert broken_off.site.tier.manifest("a").exists()


def test_of_a_run_that_was_never_launched_one_sentence_says_that_nothing_is_to_be_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path)
    shutil.rmtree(run.root / ".boxcar")
    assert down(run.project, approve="0" * 64) == 1
    told = capsys.readouterr().err
    assert told.startswith("the run: never launched") and "--gone" not in told
    assert len(told.splitlines()) == 1
    launches.append_launch(run.project.results, "local", "ab" * 32, ["q1"], is_smoked=True)
    assert down(run.project, approve="0" * 64) == 1
    assert "--gone" in capsys.readouterr().err, "its tier may be out of sight"


def test_each_cell_that_is_given_up_has_its_own_reason(tmp_path: Path) -> None:
    run = make_run(tmp_path, ("a", "b"))
    for cell in ("a", "b"):
        run.site.tier.manifest(cell).unlink()
    verify(run.project)
    words = {"abandon": ["a", "b"], "because": ["it diverged", "no use"]}
    assert down(run.project, **words, approve="0" * 64) == 1
    cells = receipt.read_run(run.project.results.receipt).cells
    assert {cell.cell: cell.because for cell in cells} == {"a": "it diverged", "b": "no use"}


def test_cells_that_failed_are_given_up_by_one_line_ready_to_copy(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Missing(c, "is not published", Command("explain", ("--cell", c))) for c in ("a", "b")]
    assert _report(run.site, None, rows, as_json=False) == 1
    said = capsys.readouterr().err
    assert said.startswith("refused; nothing was removed. 2 things are missing:\n")
    assert said.endswith("failed: invoke down --abandon a --abandon b --because '…'\n")

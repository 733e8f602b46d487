from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from far_boxes import World, seen_from_afar
from finished_run import FinishedRun, make_run, steps_until_end
from rental import QuickClock
from run_on_disk import held
from stand_in_providers import KEY, environment, stand_in
from stand_in_providers import Box as StandInBox

from boxcar.laptop.common import home, show
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.provider_keys import fingerprint
from boxcar.laptop.hosts import host_keys
from boxcar.laptop.hosts.connection import Ran
from boxcar.laptop.hosts.host_keys import HostRecord
from boxcar.laptop.hosts.reported_files import Mirror
from boxcar.laptop.places import ssh_site
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.project.project import Project, results_of
from boxcar.laptop.providers import calls
from boxcar.laptop.providers.rented_record import RentedBox, write_record
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.meters import open_meters
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.report import report
from boxcar.laptop.verbs.status import status
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.errors import InputError, MayStillBillError, TemporaryError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.control import AgentStart
from boxcar.shared.files.receipt import CellVerdict, RunReceipt, Teardown
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.machine import end_itself

SHUTDOWN = ["/usr/bin/shutdown"]
AT = "2026-01-01T00:00:00.000Z"
BOTH = {"box-a": AT, "box-b": AT}
# All is done that Boxcar can do, and nobody saw the meters end.
OPEN = 75


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_site, "PAUSE_S", dict.fromkeys(ssh_site.Sign, 0.0))
    monkeypatch.setattr(ssh_site, "WITHIN_S", 0.0)


@dataclass
class Far:
    """A finished run on boxes that only answer questions."""

    run: FinishedRun
    project: Project
    world: World
    site: SshSite = field(init=False)

    def __post_init__(self) -> None:
        self.site = SshSite(self.project, show.say)

    @property
    def secrets(self) -> list[Path]:
        return [Path(box.credentials) for box in self.project.plan.boxes]

    @property
    def approve(self) -> str:
        return receipt.read_run(self.project.results.receipt).digest

    @property
    def teardown(self) -> Teardown:
        return receipt.read_teardown(self.project.results.teardown)

    def steps(self, **done: dict[str, str]) -> Steps:
        """A teardown that was approved, and what was done of it."""
        made = Teardown("tiny", "ab" * 32, "verb", timestamp.utc_now(), "typed", **done)
        path = self.project.results.teardown
        path.parent.mkdir(parents=True, exist_ok=True)
        return Steps(path, made)

    def stop(self, **done: dict[str, str]) -> Teardown:
        """What is on the laptop's disk after a stop that came to its end, or did not."""
        with contextlib.suppress(TemporaryError):
            self.site.end_boxes(self.steps(**done))
        return receipt.read_teardown(self.project.results.teardown)

    def with_shutdown(self) -> Far:
        """On a platform where the box ends its own meter, by a verb that takes its link along."""
        profile = load_profile("autodl", self.project.root)
        far = Far(self.run, replace(self.project, profile=profile), self.world)

        def shut_down(box: str, words: list[str]) -> None:
            if words == SHUTDOWN:
                self.world.off.add(box)
                self.world.check(box)

        self.world.on_run = shut_down
        return far


def make_far(root: Path, monkeypatch: pytest.MonkeyPatch, cells: tuple[str, ...] = ("a",)) -> Far:
    run = make_run(root, cells)
    project, world = seen_from_afar(run.project, monkeypatch)
    return Far(run, project, world)


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    return make_far(tmp_path, monkeypatch)


def test_secrets_go_and_nothing_starts_again_and_all_else_stays(far: Far) -> None:
    scratch = far.run.project.scratch("box-a")
    start = AgentStart("tiny", "q1", "box-a", "ab" * 32, "/tier", 0, (), {}, timestamp.utc_now())
    atomic.write_whole(scratch.start("q1"), codec.to_document(start))
    before = far.run.snapshot(far.run.root)
    assert list(far.stop().boxes) == ["box-a", "box-b"]
    assert not any(path.exists() for path in far.secrets)
    after = far.run.snapshot(far.run.root)
    gone = {far.run.root / name for name in before.keys() - after.keys()}
    assert gone == {*far.secrets, scratch.start("q1")}
    assert list(far.stop().boxes) == ["box-a", "box-b"], "harmless again"


def test_the_box_that_a_person_ends_is_named_by_its_id(far: Far) -> None:
    home = Home(far.project.root)
    job = SimpleNamespace(**vars(far.project.job) | {"price": {"box-a": "0.42 USD/h"}})
    profile = load_profile("vastai", far.project.root)
    vast = replace(far.project, profile=profile, job=job)
    done = far.steps(boxes=BOTH).now
    unknown = [one.sentence for one in open_meters(vast, done)]
    assert len(unknown) == 2 and "its id is not known here" in unknown[0]
    assert "vastai destroy instance <id> -y" in unknown[1]
    atomic.make_folder(home.host("box-a").parent)
    for box, id_ in (("box-a", "28000023"), ("box-b", "28000024")):
        record = HostRecord(box, "1.2.3.4", 22, "SHA256:x", AT, {"instance_id": id_})
        atomic.write_whole(home.host(box), codec.to_document(record))
    first, second = open_meters(vast, done)
    assert (first.id, first.rate, second.rate) == ("28000023", "0.42 USD/h", None)
    assert "may still bill 0.42 USD/h (id 28000023). destroy: " in first.sentence
    assert "vastai destroy instance 28000023 -y" in first.sentence
    assert "vastai destroy instance 28000024 -y" in second.sentence


def test_a_meter_that_somebody_saw_end_is_open_no_more(far: Far) -> None:
    """By the box's own silence, by the provider's list, by a person; a lost box says nothing."""
    for seen in ("off", "seen_gone", "seen_off"):
        done = far.steps(boxes=BOTH, **{seen: {"box-a": AT}}).now
        assert [one.box for one in open_meters(far.project, done)] == ["box-b"], seen
    lost = far.steps(boxes={"box-a": AT}, gone={"box-b": "lost", far.project.plan.durable_dir: ""})
    assert [one.box for one in open_meters(far.project, lost.now)] == ["box-a", "box-b"]
    assert open_meters(far.project, far.steps().now) == (), "nothing of ours is done yet"
    free = replace(far.project, profile=load_profile("local", far.project.root))
    assert open_meters(free, far.steps(boxes=BOTH).now) == ()


def test_a_box_that_cannot_be_reached_is_named_by_its_id(tmp_path: Path) -> None:
    home = Home(tmp_path)
    record = HostRecord("box-a", "1.2.3.4", 22, "SHA256:x", AT, {"instance_id": "28000023"})
    refused = "ssh: connect to host 1.2.3.4 port 22: Connection refused"
    assert "28000023" not in str(host_keys.ssh_error(home, "box-a", refused))
    atomic.make_folder(home.host("box-a").parent)
    atomic.write_whole(home.host("box-a"), codec.to_document(record))
    assert "(id 28000023)" in str(host_keys.ssh_error(home, "box-a", refused))
    home.host("box-a").write_text("damaged")
    assert "console" in str(host_keys.ssh_error(home, "box-a", refused))


def test_a_box_that_has_ended_is_not_asked_again(far: Far) -> None:
    far.world.cut.add("box-a")
    far.site.end_boxes(far.steps(boxes={"box-a": AT}))
    assert ("box-a", "end") not in far.world.asked and ("box-b", "end") in far.world.asked


@pytest.mark.parametrize("what", ["agent", "attempt"])
def test_nothing_is_ended_where_something_works(far: Far, what: str) -> None:
    local = far.run.project
    path = local.on_tier.lock("q2") if what == "agent" else local.scratch("box-b").log("a")
    fd = lock.try_hold(path)
    steps = far.steps()
    with pytest.raises(TemporaryError, match=r"box-b: (q2|a) is still running .* invoke drain"):
        far.site.end_boxes(steps)
    assert fd is not None
    assert list(steps.now.boxes) == ["box-a"]
    assert [path.exists() for path in far.secrets] == [False, True]


def test_a_box_that_does_not_answer_is_no_box_that_has_ended(far: Far) -> None:
    far.world.cut.add("box-a")
    steps = far.steps()
    with pytest.raises(TemporaryError, match=r"box-a: its secrets are still there: .* invoke down"):
        far.site.end_boxes(steps)
    assert list(steps.now.boxes) == ["box-b"], "one that fails holds up no other"


def test_what_is_unseen_keeps_the_gate_shut(far: Far) -> None:
    far.site.refresh()
    assert far.site.end_problems() == []
    far.world.cut.add("box-b")
    far.site.refresh()
    (problem,) = far.site.end_problems()
    assert problem.startswith("box-b does not answer")


def test_what_is_lost_what_stays_and_what_still_bills_is_named(far: Far) -> None:
    lost = far.site.end_price()
    for box in far.project.plan.boxes:
        assert f"credentials: {box.credentials} on {box.name}" in lost
    assert "home: ~/boxcar-data" in lost
    assert [line[:13] for line in far.site.end_keeps()] == ["still bills: "]
    site = far.with_shutdown().site
    kept = site.project.profile.meter_stop.preserves
    assert kept
    assert not [line for line in site.end_price() if line.startswith(kept)]
    told = site.end_keeps()
    assert [line for line in told if line.startswith(tuple(f"{name} on" for name in kept))]


def test_a_box_that_can_ends_its_own_meter_after_its_secrets(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    far = far.with_shutdown()
    assert list(far.stop().off) == ["box-a", "box-b"]
    assert [ran for ran in far.world.ran if ran[1] == SHUTDOWN] == [
        ("box-a", SHUTDOWN),
        ("box-b", SHUTDOWN),
    ]
    assert not any(path.exists() for path in far.secrets)
    assert "box-b no longer answers after 关机" in capsys.readouterr().err


def test_a_verb_that_was_waited_for_when_down_was_killed_is_harmless_again(far: Far) -> None:
    """The laptop died after the box had begun it, and before the box was seen to be off."""
    far = far.with_shutdown()
    far.world.off |= {"box-a", "box-b"}
    steps = far.steps(boxes=BOTH, told=BOTH)
    far.site.end_boxes(steps)
    assert set(steps.now.off) == {"box-a", "box-b"}


def test_a_box_that_was_never_told_is_not_off_though_it_is_silent(far: Far) -> None:
    """Its cable was cut while the other one shut down."""
    far = far.with_shutdown()
    shut_down = far.world.on_run

    def cut_the_other(box: str, words: list[str]) -> None:
        far.world.cut.add("box-b")
        shut_down(box, words)

    far.world.on_run = cut_the_other
    steps = far.steps()
    with pytest.raises(
        TemporaryError, match=r"box-b: could not be told to shut down.* invoke down"
    ):
        far.site.end_boxes(steps)
    assert (list(steps.now.told), list(steps.now.off)) == (["box-a"], ["box-a"])
    far.world.cut.clear()
    far.world.on_run = shut_down
    far.site.end_boxes(steps)
    assert set(steps.now.off) == {"box-a", "box-b"}, "the next one continues there"
    assert ("box-b", SHUTDOWN) in far.world.ran


def test_a_box_that_is_out_of_reach_holds_up_no_other(far: Far) -> None:
    far = far.with_shutdown()
    far.world.cut.add("box-a")
    assert list(far.stop(boxes=BOTH).off) == ["box-b"]


def test_a_box_that_was_told_and_a_cut_network_are_not_told_apart_by_a_guess(far: Far) -> None:
    far = far.with_shutdown()
    far.world.cut |= {"box-a", "box-b"}
    steps = far.steps(boxes=BOTH, told=BOTH)
    with pytest.raises(TemporaryError, match=r"this machine may be offline.* the console") as told:
        far.site.end_boxes(steps)
    assert "--seen-off box-b" in str(told.value)
    assert not steps.now.off


def test_a_box_that_is_off_is_not_looked_at_again(far: Far) -> None:
    """Its address may be somebody else's by now, or the person switched it on again."""
    far = far.with_shutdown()
    far.stop(boxes=BOTH, told=BOTH, off={"box-a": AT})
    assert {box for box, _ in far.world.ran} == {"box-b"}


def test_a_verb_that_the_box_refuses_is_no_verb_that_was_told(far: Far) -> None:
    far = far.with_shutdown()
    far.world.on_run = lambda box, words: Ran(127, b"", "not found")
    steps = far.steps(boxes=BOTH)
    with pytest.raises(TemporaryError, match=r"box-a: .* failed there .exit code 127.* not found"):
        far.site.end_boxes(steps)
    assert not steps.now.told


def test_a_box_that_will_not_go_is_said(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    far = far.with_shutdown()
    far.world.on_run = lambda box, words: None
    monkeypatch.setattr(ssh_site, "WITHIN_S", 0.0)
    with pytest.raises(TemporaryError, match=r"box-a: still answers .* by hand"):
        far.site.end_boxes(far.steps())


def test_down_is_not_done_while_a_box_was_not_told(far: Far) -> None:
    far.run.copy_here()
    far = far.with_shutdown()
    assert verify(far.project) == 0
    far.world.change = lambda box, told: far.world.cut.add("box-b") if "alive" in told else None
    shut_down = far.world.on_run
    with pytest.raises(TemporaryError, match="box-b"):
        down(far.project, approve=far.approve)
    assert not receipt.read_teardown(far.project.results.teardown).finished_at
    far.world.change, far.world.on_run = lambda box, told: None, shut_down
    far.world.cut.clear()
    assert down(replace(far.project)) == 0
    ended = receipt.read_teardown(far.project.results.teardown)
    assert ended.finished_at and set(ended.off) == {"box-a", "box-b"}


def test_a_box_that_answers_cannot_be_called_gone_because_its_secrets_went(far: Far) -> None:
    far.run.copy_here()
    far = far.with_shutdown()
    verify(far.project)
    far.world.on_run = lambda box, words: Ran(1, b"", "") if words == SHUTDOWN else None
    with pytest.raises(TemporaryError):
        down(far.project, approve=far.approve)
    with pytest.raises(InputError, match="it answers, so it is not gone"):
        down(replace(far.project), gone=["box-b"], because="I say so")
    far.world.cut.add("box-b")
    far.world.off.add("box-a")
    with pytest.raises(TemporaryError, match="box-a: could not be told"):
        down(replace(far.project), gone=["box-b"], because="the console shows it off")
    assert list(receipt.read_teardown(far.project.results.teardown).gone) == ["box-b"]


def test_a_shared_tier_that_no_box_sees_any_more_is_given_up_by_name(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    far.run.copy_here()
    assert verify(far.project) == 0
    tier, because = far.project.plan.durable_dir, "the volume was deleted"
    with pytest.raises(InputError, match="can see it, so it is not gone"):
        down(far.project, gone=[tier], because=because)
    shutil.rmtree(tier)
    assert down(far.project, approve=far.approve) == 1
    told = capsys.readouterr().err
    assert "is it mounted?" in told and f"--gone {tier} --because" in told
    assert down(far.project, gone=[tier], because=because, approve=far.approve) == OPEN
    told = capsys.readouterr().err
    assert "compared with what the boxes last reported of it instead" in told
    assert "rotate" not in told, "no box with credentials on it was given up"
    done = receipt.read_teardown(far.project.results.teardown)
    assert done.gone == {tier: because} and list(done.boxes) == ["box-a", "box-b"]
    assert not any(path.exists() for path in far.secrets)


def test_what_such_a_tier_had_and_nobody_pulled_is_missed_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    far = make_far(tmp_path, monkeypatch, cells=("a", "b"))
    far.run.copy_here()
    shutil.rmtree(far.project.results.cell("b"))
    verify(far.project)
    tier, because = far.project.plan.durable_dir, "the volume was deleted"
    shutil.rmtree(tier)
    assert down(far.project, gone=[tier], because=because, approve=far.approve) == 1
    assert "b is published but not pulled" in capsys.readouterr().err
    words = {"gone": [tier], "abandon": ["b"], "because": because}
    assert down(far.project, **words, approve=far.approve) == 1, "that was another receipt"
    assert down(far.project, **words, approve=far.approve) == OPEN


def test_an_attempt_that_outlived_such_a_tier_keeps_the_gate_shut(far: Far) -> None:
    far.run.copy_here()
    verify(far.project)
    tier = far.project.plan.durable_dir
    shutil.rmtree(tier)
    fd = lock.try_hold(far.run.project.scratch("box-a").log("a"))
    assert fd is not None
    assert down(far.project, gone=[tier], because="it is", approve=far.approve) == 1
    os.close(fd)
    assert down(far.project, gone=[tier], because="it is", approve=far.approve) == OPEN


def test_down_ends_every_box_and_says_what_is_left_to_the_person(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    far.run.copy_here()
    assert verify(far.project) == 0
    assert down(far.project, approve=far.approve) == OPEN
    told = receipt.read_teardown(far.project.results.teardown)
    assert set(told.boxes) == {"box-a", "box-b"} and told.finished_at
    assert not any(path.exists() for path in far.secrets)
    assert far.run.site.tier.root.is_dir(), "the platform's own verb removes it, or keeps it"
    assert not far.site.tier.root.exists(), "what was known of it"
    assert "--seen-off box-a --seen-off box-b" in capsys.readouterr().err
    asked = len(far.world.asked)
    assert down(far.project) == OPEN
    assert len(far.world.asked) == asked, "these boxes may be somebody else's by now"


def test_down_refuses_while_a_box_does_not_answer(far: Far) -> None:
    far.run.copy_here()
    assert verify(far.project) == 0
    far.world.cut.add("box-b")
    assert down(far.project, approve=far.approve) == 1
    assert all(path.exists() for path in far.secrets)
    assert not far.project.results.teardown.exists()


def test_a_teardown_goes_on_with_the_boxes_that_are_left(far: Far) -> None:
    far.run.copy_here()
    verify(far.project)
    far.world.change = lambda box, told: far.world.cut.add("box-b") if "alive" in told else None
    with pytest.raises(TemporaryError):
        down(far.project, approve=far.approve)
    begun = receipt.read_teardown(far.project.results.teardown)
    assert list(begun.boxes) == ["box-a"] and not begun.finished_at
    far.world.cut = {"box-a"}  # it was switched off meanwhile
    far.world.change = lambda box, told: None
    again = replace(far.project)  # another process, which has kept nothing
    assert down(again) == OPEN
    assert set(receipt.read_teardown(again.results.teardown).boxes) == {"box-a", "box-b"}


def test_down_that_was_killed_at_its_last_step_is_not_taken_for_a_new_launch(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.run.copy_here()
    verify(far.project)
    approve = far.approve

    def die(self: Mirror) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "drop", die)
        with pytest.raises(KeyboardInterrupt):
            down(far.project, approve=approve)
    assert down(replace(far.project)) == OPEN
    assert far.approve == approve, "the receipt is where it was"
    assert receipt.read_teardown(far.project.results.teardown).finished_at


def test_the_credentials_of_a_box_that_was_given_up_are_named_until_they_were_replaced(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"secrets": ("WANDB_API_KEY", "MY_KEY")}
    job = SimpleNamespace(**vars(far.project.job) | named)
    far = Far(far.run, replace(far.project, job=job), far.world)
    far.run.copy_here()
    assert verify(far.project) == 0
    far.world.cut.add("box-b")
    given_up = {"gone": ["box-b"], "because": "the host left the market"}
    assert down(far.project, **given_up, approve="0" * 12) == 1
    refused = capsys.readouterr().err
    assert "box-b still has the run's credentials. Rotate MY_KEY, WANDB_API_KEY" in refused
    assert "on box-b" not in refused, "what stays there is not lost"
    assert down(far.project, **given_up, approve=far.approve) == OPEN
    assert "rotate WANDB_API_KEY: it is still on box-b" in capsys.readouterr().err
    status(far.project)
    assert "rotate MY_KEY: it is still on box-b" in capsys.readouterr().err
    assert down(far.project, rotated=["WANDB_API_KEY"]) == 0
    status(far.project, as_json=True)
    assert json.loads(capsys.readouterr().out)["rotate"] == {"MY_KEY": "box-b"}
    assert down(far.project, rotated=["MY_KEY"]) == 0
    status(far.project)
    assert "rotate MY_KEY" not in capsys.readouterr().err


def test_down_ends_right_wherever_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for die_at in range(1, 2000, 17):
        far = make_far(tmp_path / str(die_at), monkeypatch)
        far.run.copy_here()
        assert verify(far.project) == 0
        approve, watched = far.approve, far.run.root
        project = replace(far.project)
        steps = steps_until_end(
            lambda project=project, approve=approve: down(project, approve=approve), watched, die_at
        )
        was_approved = far.project.results.teardown.exists()
        assert was_approved or all(path.exists() for path in far.secrets)
        assert down(replace(far.project), approve=None if was_approved else approve) == OPEN
        assert not any(path.exists() for path in far.secrets)
        ended = receipt.read_teardown(far.project.results.teardown)
        assert ended.finished_at and set(ended.boxes) == {"box-a", "box-b"}
        assert receipt.read_run(far.project.results.receipt).digest == approve
        if steps is not None:
            break
    assert die_at > 90


def test_yours_is_open_until_it_was_seen_off_in_every_verb_that_looks(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    far.run.copy_here()
    assert verify(far.project) == 0
    assert down(far.project, approve=far.approve) == OPEN
    told = capsys.readouterr().err
    assert "ours is done, yours is open: 2 boxes may still bill" in told
    assert "down --seen-off box-a --seen-off box-b" in told
    with pytest.raises(InputError, match="has no box 'box-x'"):
        down(replace(far.project), seen_off=["box-x"])
    assert status(replace(far.project)) == 1
    told = capsys.readouterr().err
    assert "next: invoke down --seen-off box-a --seen-off box-b  (ours is done" in told
    assert down(replace(far.project), seen_off=["box-a"]) == OPEN
    assert "yours is open: 1 box may still bill" in capsys.readouterr().err
    status(replace(far.project), as_json=True)
    assert [one["box"] for one in json.loads(capsys.readouterr().out)["open_meters"]] == ["box-b"]
    assert down(replace(far.project), seen_off=["box-b"], as_json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["open_meters"] == [] and "yours is open" not in said.err
    status(replace(far.project))
    assert "yours is open" not in capsys.readouterr().err
    with pytest.raises(InputError, match="no meter of this run is open"):
        down(replace(far.project), seen_off=["box-b"])


def test_a_box_that_was_told_and_is_in_doubt_is_seen_off_by_a_person(far: Far) -> None:
    """A `down` that goes on asks it nothing more, and comes to its end."""
    far.run.copy_here()
    assert verify(far.project) == 0
    far = far.with_shutdown()
    far.world.on_run = lambda box, words: None
    with pytest.raises(MayStillBillError, match="still answers"):
        down(far.project, approve=far.approve)
    assert [one.box for one in open_meters(far.project, far.teardown)] == ["box-a", "box-b"]
    assert "was told to shut down at" in open_meters(far.project, far.teardown)[0].sentence
    ran = len(far.world.ran)
    assert down(replace(far.project), seen_off=["box-a", "box-b"]) == 0
    assert far.teardown.finished_at
    assert [words for _, words in far.world.ran[ran:] if words == SHUTDOWN] == []


# --- boxes that end themselves by their own key

IDS = {"box-a": "28000023", "box-b": "28000024"}


@dataclass
class Vast:
    """Two instances, which answer for each other's process: `calls` are those to the provider."""

    far: Far
    calls: list[list[str]] = field(default_factory=list)
    has_key: bool = True

    def first_environment(self) -> dict[str, str]:
        key = {"CONTAINER_API_KEY": "k3y"} if self.has_key else {}
        return {"CONTAINER_ID": IDS[self.far.world.asked[-1][0]], **key}

    def start_child(self, words: list[str], environ: dict[str, str]) -> None:
        self.calls.append([*words, environ["CONTAINER_ID"]])
        if not self.is_deaf:
            self.far.world.off.add({id_: box for box, id_ in IDS.items()}[environ["CONTAINER_ID"]])

    is_deaf: bool = False


@pytest.fixture
def vast(far: Far, monkeypatch: pytest.MonkeyPatch) -> Vast:
    far.run.copy_here()
    assert verify(far.project) == 0
    profile = load_profile("vastai", far.project.root)
    made = Vast(Far(far.run, replace(far.project, profile=profile), far.world))
    home = Home(far.project.root)
    atomic.make_folder(home.host("box-a").parent)
    for box, id_ in IDS.items():
        record = HostRecord(box, "1.2.3.4", 22, "SHA256:x", AT, {"instance_id": id_})
        atomic.write_whole(home.host(box), codec.to_document(record))
    monkeypatch.setattr(end_itself, "first_environment", made.first_environment)
    monkeypatch.setattr(end_itself, "start_child", made.start_child)
    return made


def test_a_box_ends_itself_for_good_once_its_id_was_typed(
    vast: Vast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    types(monkeypatch, "tiny", "28000023", "28000023")
    assert down(vast.far.project) == OPEN
    told = capsys.readouterr().err
    assert "box-a (id 28000023) ends for good" in told
    assert [words[2:] for words in vast.calls] == [["vast", "destroy", "28000023"]]
    now = vast.far.teardown
    assert now.to_destroy == {"box-a": "28000023"} and list(now.off) == ["box-a"]
    assert [one.box for one in open_meters(vast.far.project, now)] == ["box-b"], "nobody typed it"
    report(vast.far.project, Asked(("tiny",)))
    assert "box-b: may still bill" in capsys.readouterr().err, "a report is read long after"


def test_an_approval_by_digest_covers_verb_and_ids(
    vast: Vast, capsys: pytest.CaptureFixture[str]
) -> None:
    assert down(vast.far.project, approve=vast.far.approve) == 1
    assert not vast.calls and vast.far.secrets[0].exists(), "the receipt alone names no box"
    wanted = capsys.readouterr().err.split("down --approve ")[1].split()[0]
    assert down(replace(vast.far.project), approve=wanted) == 0
    assert {words[-1] for words in vast.calls} == {*IDS.values()}
    assert set(vast.far.teardown.off) == {*IDS}
    assert "not confirmed by the provider" in capsys.readouterr().err


def test_a_box_without_a_key_is_left_to_the_person(
    vast: Vast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vast.has_key = False
    types(monkeypatch, "tiny", "28000023", "28000024")
    assert down(vast.far.project) == OPEN
    assert "box-a cannot end itself: this box has no key of its own" in capsys.readouterr().err
    assert not vast.calls and vast.far.teardown.finished_at and not vast.far.teardown.told
    assert down(replace(vast.far.project), seen_off=[*IDS]) == 0


def test_a_yes_without_silence_may_still_bill_and_is_told_once(
    vast: Vast, monkeypatch: pytest.MonkeyPatch
) -> None:
    vast.is_deaf = True
    types(monkeypatch, "tiny", "28000023", "28000024")
    with pytest.raises(MayStillBillError, match=r"box-a: still answers .* after destroy"):
        down(vast.far.project)
    assert set(vast.far.teardown.told) == {*IDS} and not vast.far.teardown.off
    vast.far.world.off |= {*IDS}
    assert down(replace(vast.far.project)) == 0, "it took its time"
    assert len(vast.calls) == 2


def test_where_its_own_key_ended_nothing_the_providers_api_ends_it(
    vast: Vast,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    vast.is_deaf = True
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(calls, "CLOCK", QuickClock().clock())
    job, label = str(vast.far.project.root / "job.yaml"), "boxcar-0123456789ab-tiny"
    with stand_in("vastai") as server:
        for box, id_ in IDS.items():
            server.add(StandInBox(id_, label, "", "RTX 4090", 1, 0.5, server.running))
            rented = ("RTX 4090", 1, 0.5, 0.5, "USD")
            made = RentedBox(id_[-4:] * 3, "vastai", "tiny", box, job, label,
                             fingerprint(KEY), AT, *rented)  # fmt: skip
            write_record(replace(made, id=id_, seen_at=AT, up_at=AT))
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        types(monkeypatch, "tiny", "28000023", "", "")
        assert down(vast.far.project) == OPEN
        assert list(server.boxes) == ["28000024"], "of which nobody typed the id"
    told = capsys.readouterr().err
    assert "box-a: still answers, so its own key ended nothing" in told
    assert "box-a: 28000023 is gone, seen twice" in told
    assert list(vast.far.teardown.seen_gone) == ["box-a"] and not vast.far.teardown.off


# --- other runs on its boxes


@pytest.fixture
def proven(far: Far) -> Far:
    """All is verified, and the boxes can end themselves."""
    far.run.copy_here()
    assert verify(far.project) == 0
    return far.with_shutdown()


def other_at_work(far: Far, box: str = "box-a") -> Path:
    """The log of an attempt of the run `next`, which is held while that works on the box."""
    data_dir = Path(far.project.plan.box(box).data_dir)
    log = ScratchPaths(data_dir, "next").log("x")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    return log


def types(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def is_as_it_was(far: Far) -> bool:
    return all(path.exists() for path in far.secrets) and not [
        words for _, words in far.world.ran if words == SHUTDOWN
    ]


def test_a_box_on_which_another_run_trains_is_not_ended(
    proven: Far, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    types(monkeypatch)
    with held(other_at_work(proven)):
        assert down(proven.project, approve=proven.approve) == 1
    told = capsys.readouterr().err
    assert "run next is running on box-a (x), and would be ended with it" in told
    assert "down (and type next when asked" in told
    assert is_as_it_was(proven) and not proven.project.results.teardown.exists()


def test_whoever_types_the_other_runs_name_too_goes_on(
    proven: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(other_at_work(proven)):
        types(monkeypatch, "tiny", "tiny")
        assert down(proven.project) == 1
        assert is_as_it_was(proven)
        types(monkeypatch, "next", "no")
        assert down(proven.project) == 1
        assert is_as_it_was(proven)
        types(monkeypatch, "next", "tiny")
        assert down(proven.project) == 0
    ended = receipt.read_teardown(proven.project.results.teardown)
    assert list(ended.beside) == ["next"] and set(ended.off) == {"box-a", "box-b"}


def test_a_run_that_begins_after_the_gate_keeps_its_box(
    proven: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the end there is time for it, as while the person types."""
    fds: list[int | None] = []

    def begin_there(box: str, told: dict[str, Any]) -> None:
        if "strangers" in told and box == "box-b":
            fds.append(lock.try_hold(other_at_work(proven, "box-b")))

    proven.world.change = begin_there
    with pytest.raises(TemporaryError, match="box-b: x of run next is still running"):
        down(proven.project, approve=proven.approve)
    assert ("box-b", SHUTDOWN) not in proven.world.ran and proven.secrets[1].exists()
    types(monkeypatch)
    assert down(replace(proven.project)) == 1, "a down that goes on looks again"
    for fd in fds:
        if fd is not None:
            os.close(fd)
    proven.world.change = lambda box, told: None
    assert down(replace(proven.project)) == 0


def others_result(far: Far) -> str:
    """A published cell of the run `next` lies on the tier of the boxes; its manifest's digest."""
    manifest = DurablePaths(Path(far.project.plan.durable_dir), "next").manifest("x")
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(b"of x")
    return digest.of_bytes(b"of x")


def verified_here(root: Path, sha256: str) -> None:
    """The records of this machine, as `launch`, `pull` and `verify` of that run leave them."""
    home.remember_run("next", root / "job.yaml", "ssh")
    results = results_of(root, "next")
    results.manifest("x").parent.mkdir(parents=True)
    results.manifest("x").write_bytes(b"of x")
    verdict = CellVerdict("x", "q1", sha256)
    results.receipt.write_bytes(codec.to_document(RunReceipt("next", AT, (verdict,))))


@pytest.mark.parametrize("is_here", [True, False])
def test_results_of_another_run_that_are_verified_nowhere_else_keep_their_box(
    far: Far,
    tmp_path: Path,
    is_here: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    types(monkeypatch)
    far.run.copy_here()
    assert verify(far.project) == 0
    sha256 = others_result(far)
    verified_here(tmp_path / "elsewhere", sha256 if is_here else "ab" * 32)
    assert down(far.project, approve=far.approve) == (OPEN if is_here else 1)
    told = "run next has 1 cell on box-a not verified on this machine (x)"
    assert (told in capsys.readouterr().err) is not is_here


def test_results_that_the_verb_leaves_on_the_platform_keep_no_box(proven: Far) -> None:
    others_result(proven)
    assert down(proven.project, approve=proven.approve) == 0


def test_other_peoples_programs_are_named_before_it_asks(
    proven: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    def add_a_stranger(box: str, told: dict[str, Any]) -> None:
        if "strangers" in told and box == "box-a":
            told["strangers"] = [{"pid": 4711, "program": "python3", "user": "bob"}]

    proven.world.change = add_a_stranger
    assert down(proven.project, approve="0" * 12) == 1
    assert "on box-a: python3 (process 4711 of bob)" in capsys.readouterr().err


def test_a_box_that_cannot_say_who_is_on_it_is_not_ended(
    proven: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(box: str, told: dict[str, Any]) -> None:
        if "strangers" in told and box == "box-b":
            told.clear()

    proven.world.change = fail
    assert down(proven.project, approve=proven.approve) == 1
    assert "cannot tell who else uses box-b" in capsys.readouterr().err
    assert is_as_it_was(proven)

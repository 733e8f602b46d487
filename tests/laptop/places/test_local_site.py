from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from run_on_disk import RELEASE, RunOnDisk, held, make_run

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project import launches
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.wire import box_asks, news_asks, run_asks
from boxcar.shared.wire.question import Question

LOG = run_asks.ReadLog(None, lines=1, most_bytes=100, queue="queue_1")


@dataclass(frozen=True)
class Dance(Question[news_asks.Delivered], name="dance"):
    """What no agent knows."""


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


@pytest.fixture
def site(run: RunOnDisk) -> LocalSite:
    return LocalSite(run.project, print)


def test_what_lives_is_known_by_its_lock(run: RunOnDisk, site: LocalSite) -> None:
    assert site.is_agent_alive("queue_1") is False
    assert site.is_attempt_alive("box-a", "a") is False
    with held(run.site.tier.lock("queue_1")), held(run.project.scratch("box-a").log("a")):
        assert site.is_agent_alive("queue_1") is True
        assert site.is_agent_alive("queue_2") is False
        assert site.is_attempt_alive("box-a", "a") is True
        assert site.is_attempt_alive("box-b", "a") is False
    assert (site.silent_boxes(), site.doubts(), site.clock_ahead_s("box-a")) == ({}, [], 0.0)


def test_when_a_cell_last_told_its_progress(run: RunOnDisk, site: LocalSite) -> None:
    assert site.progress_at("box-a", "a") is None
    progress = run.project.scratch("box-a").out("a") / "progress.jsonl"
    progress.parent.mkdir(parents=True)
    progress.touch()
    os.utime(progress, (1_800_000_000, 1_800_000_000))
    assert site.progress_at("box-a", "a") == "2027-01-15T08:00:00.000Z"


def test_what_changes_something_is_done_by_the_boxs_own_program(
    run: RunOnDisk, site: LocalSite
) -> None:
    record = {"env": {"KEY": "secret"}, "webhooks": []}
    path = run.project.plan.box("box-a").credentials
    kept = site.ask("box-a", box_asks.KeepCredentials(path, record))
    assert kept == box_asks.CredentialsKept(("KEY",))
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_of_the_persons_shell_only_what_a_fresh_machine_has_reaches_it(
    run: RunOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the person")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nenv >{tmp_path}/env\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    project = replace(run.project, plan=replace(run.project.plan, agent_python=str(python)))
    LocalSite(project, print).ask("box-a", LOG)
    passed = (tmp_path / "env").read_text()
    assert "PATH=" in passed and "AWS_SECRET" not in passed


def test_what_the_box_refuses_is_raised_here(run: RunOnDisk, site: LocalSite) -> None:
    with pytest.raises(
        InputError, match=r"box-a: the agent here has no answer to 'dance'.*onbox-\*\.pyz"
    ):
        site.ask("box-a", Dance())
    with pytest.raises(KeyError):
        site.ask("box-z", LOG)


def test_a_program_that_does_not_answer_is_ended(run: RunOnDisk, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    project = replace(run.project, plan=replace(run.project.plan, agent_python=str(python)))
    began_s = time.monotonic()
    with pytest.raises(TemporaryError, match="box-a: no answer to log within"):
        LocalSite(project, print).ask("box-a", LOG, timeout_s=0.2)
    assert time.monotonic() - began_s < 60


def test_a_program_that_breaks_is_told_with_its_words(run: RunOnDisk, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    python.chmod(0o755)
    project = replace(run.project, plan=replace(run.project.plan, agent_python=str(python)))
    with pytest.raises(TemporaryError, match=r"code 3.*it is broken"):
        LocalSite(project, print).ask("box-a", LOG)


def test_the_program_is_kept_by_its_content(run: RunOnDisk, site: LocalSite) -> None:
    site.ask("box-a", LOG)
    (kept,) = (run.project.root / ".boxcar" / "onbox").iterdir()
    before = kept.stat()
    LocalSite(run.project, print).ask("box-b", replace(LOG, queue="queue_2"))
    (again,) = (run.project.root / ".boxcar" / "onbox").iterdir()
    assert (again, again.stat().st_mtime_ns) == (kept, before.st_mtime_ns)


def test_one_tier_is_shared_by_all(run: RunOnDisk, site: LocalSite) -> None:
    assert site.reach_tiers(["box-b", "box-a"]) == ["box-b"]
    assert site.folder_on("box-a", "/x/y") == Path("/x/y")
    assert site.published_folder("a") == run.site.tier.cell("a")


def test_nothing_is_held_open_and_nothing_is_forgotten(run: RunOnDisk, site: LocalSite) -> None:
    run.site.tier.release(RELEASE).mkdir()
    site.refresh()
    site.forget_boxes()
    site.close()
    assert run.site.tier.release(RELEASE).is_dir(), "the tier is no copy of anything"


def test_a_tier_that_is_out_of_sight_is_no_run_that_never_started(
    run: RunOnDisk, site: LocalSite
) -> None:
    launches.append_launch(run.project.results, "local", RELEASE, ["queue_1"], is_smoked=True)
    assert not site.is_tier_out_of_sight() and site.is_agent_alive("queue_1") is False
    run.site.tier.root.rename(away := run.project.root / "away")
    assert site.is_tier_out_of_sight() and site.is_agent_alive("queue_1") is None
    [doubt] = site.doubts()
    assert str(run.site.tier.root) in doubt
    # A teardown takes the tier away, and may have been broken off.
    run.project.results.teardown.touch()
    assert not site.is_tier_out_of_sight() and site.doubts() == []
    run.project.results.teardown.unlink()
    away.rename(run.site.tier.root)
    assert not site.is_tier_out_of_sight()

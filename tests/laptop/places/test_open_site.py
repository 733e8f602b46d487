from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from run_on_disk import RunOnDisk, agent_started, cell_verified, make_run, queue_done
from tiny_project import make_project

import boxcar
from boxcar.laptop.places import open_site as table
from boxcar.laptop.places.kube_site import KubeSite
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.places.open_site import open_site, python_here
from boxcar.laptop.places.slurm_site import SlurmSite
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.logs import logs
from boxcar.laptop.verbs.plan import plan
from boxcar.laptop.verbs.status import status
from boxcar.shared.errors import InputError

LAPTOP = Path(boxcar.__file__).parent / "laptop"
# Only these may know the kinds: the sites, and the profiles, which check what people wrote.
MAY_ASK = ("places", "profiles")


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


def on_profile(run: RunOnDisk, name: str) -> Project:
    return replace(run.project, profile=load_profile(name, run.project.root))


def test_the_profile_says_at_which_site_a_run_is(run: RunOnDisk) -> None:
    local = open_site(on_profile(run, "local"), print)
    assert isinstance(local, LocalSite)
    slurm = open_site(on_profile(run, "slurm"), print)
    assert isinstance(slurm, SlurmSite)
    ssh = open_site(on_profile(run, "ssh"), print)
    assert isinstance(ssh, SshSite)


def test_a_cluster_without_the_name_of_its_claim_is_refused_at_the_launch(run: RunOnDisk) -> None:
    site = open_site(on_profile(run, "kubernetes"), print)
    assert isinstance(site, KubeSite)
    with pytest.raises(InputError, match=r"kubernetes: \{claim: NAME\}"):
        site.refuse_launch()


def test_a_try_on_this_machine_is_by_the_boxs_interpreter_only_where_the_box_is_here(
    run: RunOnDisk,
) -> None:
    import sys

    plan = replace(run.project.plan, training_python="/conda/bin/python")
    at = replace(run.project, plan=plan)
    assert python_here(at) == "/conda/bin/python"
    for name in ("ssh", "slurm"):
        assert python_here(replace(at, profile=load_profile(name, at.root))) == sys.executable


def test_what_is_held_open_is_closed_when_the_verb_has_ended(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []

    def close(site: SshSite) -> None:
        closed.append(site)

    monkeypatch.setattr(SshSite, "close", close)
    with pytest.raises(KeyError), open_site(on_profile(run, "ssh"), print) as site:
        raise KeyError("the verb broke off")
    assert closed == [site]


# --- nobody else asks which site it is


def asks_which(source: str) -> list[int]:
    """The lines that ask for a kind of site: by its connection, its class, or `is_local`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and (node.attr in ("is_local", "is_ssh", "is_remote")):
            found.append(node.lineno)
        if isinstance(node, ast.Compare):
            words = [ast.unparse(part) for part in (node.left, *node.comparators)]
            if any(word.endswith("connection.kind") or word in KINDS for word in words):
                found.append(node.lineno)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            kinds = ("LocalSite", "MirroredSite", "SshSite", "SlurmSite")
            found += [node.lineno] * any(kind in ast.unparse(node) for kind in kinds)
    return found


KINDS = ("'local'", "'ssh'", "'slurm'", "'kubernetes'")


def test_no_other_room_asks_which_site_it_is() -> None:
    asking = [
        f"{path.relative_to(LAPTOP)}:{line}"
        for path in sorted(LAPTOP.rglob("*.py"))
        if not {*path.relative_to(LAPTOP).parts} & {*MAY_ASK}
        for line in asks_which(path.read_text())
    ]
    assert asking == []


@pytest.mark.parametrize(
    "source",
    [
        "if project.is_local: pass",
        "is_here = project.profile.connection.kind == 'local'",
        "if kind == 'ssh': pass",
        "assert isinstance(site, SshSite)",
    ],
)
def test_a_planted_question_is_found(source: str) -> None:
    assert asks_which(source) == [1]


def test_the_class_of_one_site_is_named_beside_it_only() -> None:
    naming = [
        path.relative_to(LAPTOP).as_posix()
        for path in sorted(LAPTOP.rglob("*.py"))
        if re.search(
            r"boxcar\.laptop\.places(\.| import )\w+_site\b(?<!open_site)", path.read_text()
        )
    ]
    assert all(name.startswith("places/") for name in naming), naming


# --- a third site is one class and one row


class ToySite(LocalSite):
    """Boxes of another platform, which happen to be folders."""

    poll_s = 0.1

    def box_label(self, box: str) -> str:
        return f"{box} of the toy cluster"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile of kind kubernetes whose boxes the row in the table reaches."""
    monkeypatch.setitem(table.SITES, "kubernetes", ToySite)


def at_the_toy(project: Project) -> Project:
    connection = project.profile.connection.model_copy(update={"kind": "kubernetes"})
    profile: Profile = project.profile.model_copy(update={"connection": connection})
    return replace(project, profile=profile)


def test_every_verb_that_looks_works_at_a_third_site(
    run: RunOnDisk, toy: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run.say("queue_1", agent_started(), cell_verified("a"), queue_done())
    project = at_the_toy(run.project)
    assert isinstance(open_site(project, print), OpenRun)
    assert status(project) == 0
    assert "queue_1" in capsys.readouterr().out
    log = run.project.scratch("box-a").log("a")
    log.parent.mkdir(parents=True)
    log.write_text("epoch 3\n")
    assert logs(project, cell="a") == 0
    assert capsys.readouterr().out == "epoch 3\n"


def test_a_run_is_planned_and_launched_at_a_third_site(
    tmp_path: Path, toy: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = make_project(tmp_path / "project", {"q1": ["configs/a.json one"]})
    tiny.hold("a", at=1)  # else it may be over before launch looks
    project = at_the_toy(open_project(tiny.root / "job.yaml", "local"))
    assert plan(project, as_json=False) == 0
    assert launch(project, environ={}) == 0
    assert "q1: running a on box-a of the toy cluster" in capsys.readouterr().err
    tiny.let_go("a")
    tiny.wait_for_agents()
    assert "cell.verified" in tiny.types("q1", "a")

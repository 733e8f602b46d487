from __future__ import annotations

import re
from pathlib import Path

import pytest

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profile_choice import Candidate, chosen, resolve_candidates, rows
from boxcar.shared.errors import InputError, Message

KINDS = ("local", "ssh")
FACTS = "verified: 2026-10, confidence: documented"
RENTED = f"""\
name: rented
connection: {{kind: ssh, {FACTS}}}
env: {{training_python: python3, {FACTS}}}
storage:
  data: disk
  durable: shared
  credentials: ~/credentials-{{run}}.json
  tiers:
    disk: {{path: /data, size_gb: 50, destroy: lose}}
    shared: {{path: /shared, scope: region, destroy: keep}}
  {FACTS.replace(", ", chr(10) + "  ")}
network: {{{FACTS}}}
spot: {{is_available: no, {FACTS}}}
detach: {{primary: tmux, {FACTS}}}
meter:
  is_billed: yes
  down: destroy
  destroy: {{verb: release, does: end it, is_reversible: no, where: the console}}
  {FACTS.replace(", ", chr(10) + "  ")}
clocks: {{dangers: [it bills], {FACTS}}}
limits: {{{FACTS}}}
"""


def write_profiles(root: Path) -> None:
    folder = root / "profiles"
    folder.mkdir()
    (folder / "rented.yaml").write_text(RENTED)
    others = {
        "large": "storage: {tiers: {disk: {size_gb: 500}}}",
        "growing": "storage: {tiers: {disk: {expandable: true}}}",
        "cluster": "connection: {kind: slurm}",
        "wiped": "storage: {tiers: {shared: {destroy: lose}}}",
        "open": "storage: {tiers: {disk: {path: null}}}",
        "broken": "storage: {teirs: {}}",
    }
    for name, text in others.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\nextends: rented\n{text}\n")


def job(candidates: str, resources: str = "{}") -> Job:
    text = (
        "name: run-1\ncommand: train.py\nqueues: {q.txt: box-a}\nartifacts: [a.json]\n"
        f"candidates: {candidates}\nresources: {resources}\n"
    )
    return yaml_models.parse(text.encode(), "job.yaml", Job)


def reason(root: Path, name: str, resources: str = "{}") -> str:
    """Why this one is refused."""
    found = resolve_candidates(job(f"[{name}]", resources), root, KINDS)[0]
    assert not found.is_taken
    return str(found.reason)


def test_the_first_that_will_do_is_taken_and_each_has_its_reason(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    asked = job("[cluster, rented, large]")
    found = resolve_candidates(asked, tmp_path, KINDS)
    assert [(item.profile, item.is_taken) for item in found] == [
        ("cluster", False),
        ("rented", True),
        ("large", False),
    ]
    assert str(found[1].reason) == "the first that fits the job"
    assert str(found[2].reason) == "would fit, but rented comes first"
    assert chosen(asked, tmp_path, KINDS) == "rented"


def test_a_wish_that_a_profile_cannot_meet_leaves_it_to_the_next(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    asked = job("[rented, large]", "{disk: 100GB}")
    assert chosen(asked, tmp_path, KINDS) == "large"
    assert reason(tmp_path, "rented", "{disk: 100GB}") == (
        "the job needs 100GB of disk, this box has 50.0 GB"
    )


def test_a_refusal_says_what_is_wrong_with_the_profile(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    assert "there is no profile 'rentde' (did you mean 'rented'?)" in reason(tmp_path, "rentde")
    assert reason(tmp_path, "cluster") == (
        "its boxes are of kind 'slurm', which Boxcar can describe but not run on yet"
    )
    assert "the tier 'shared' (/shared) does not survive 'release'" in reason(tmp_path, "wiped")
    assert reason(tmp_path, "open").endswith("usual path: invoke explain --profile open")
    assert "'storage.teirs' (did you mean 'tiers'?)" in reason(tmp_path, "broken")


def test_without_candidates_it_is_this_machine(tmp_path: Path) -> None:
    assert chosen(job("[]"), tmp_path, KINDS) == "local"
    assert resolve_candidates(job("[]"), tmp_path, KINDS) == []


def test_where_none_will_do_all_reasons_are_told(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    with pytest.raises(InputError) as caught:
        chosen(job("[cluster, wiped]"), tmp_path, KINDS)
    first, cluster, wiped = caught.value.problems
    assert first.startswith("job.yaml:5: candidates: no candidate profile fits; pick")
    assert cluster.startswith("  cluster: its boxes are of kind 'slurm'")
    assert wiped.startswith("  wiped: ")


def test_a_table_shows_which_one_is_taken() -> None:
    no, yes = Message("no"), Message("yes")
    found = [Candidate("a", False, no), Candidate("b", True, yes)]
    assert rows(found) == [("a", "-", no), ("b", "taken", yes)]


def test_a_disk_that_can_be_expanded_refuses_no_size(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    [found] = resolve_candidates(job("[growing]", "{disk: 100GB}"), tmp_path, KINDS)
    assert found.is_taken
    assert "50.0 GB" in reason(tmp_path, "rented", "{disk: 100GB}")


def test_the_example_of_the_documentation_is_not_refused(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "job.md").read_text()
    resources, candidates = re.findall(r"^(?:resources|candidates): (.*)$", page, re.MULTILINE)[:2]
    found = resolve_candidates(job(candidates, resources), tmp_path, KINDS)
    assert [item.profile for item in found if item.is_taken] == ["autodl"]


def test_china_stands_for_the_four_chinese_rentals_in_its_place(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    found = resolve_candidates(job("[rented, china, gpushare]"), tmp_path, KINDS)
    names = ["rented", "gpushare", "matpool", "featurize", "lanrui"]
    assert [item.profile for item in found] == names


def test_a_profile_of_the_project_is_no_group(tmp_path: Path) -> None:
    write_profiles(tmp_path)
    text = (tmp_path / "profiles/rented.yaml").read_text()
    (tmp_path / "profiles/china.yaml").write_text(text.replace("name: rented", "name: china"))
    assert chosen(job("[china]"), tmp_path, KINDS) == "china"

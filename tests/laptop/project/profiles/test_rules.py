from __future__ import annotations

from pathlib import Path

import pytest
from test_profile import LOCAL, load, problems

from boxcar.laptop.project.profiles.profile import Profile


def tell(root: Path, group: str, base: str = "autodl") -> str:
    """The one problem of a profile that extends `base` by this group; it stands in line 3."""
    (told,) = problems(root, "mine", f"name: mine\nextends: {base}\n{group}\n")
    assert told.startswith(f"{root}/profiles/mine.yaml:3: "), told
    return told


def take(root: Path, group: str, base: str = "autodl") -> Profile:
    return load(root, "mine", f"name: mine\nextends: {base}\n{group}\n")


@pytest.mark.parametrize("role", ["data", "durable"])
def test_a_tier_that_is_not_there_is_told_with_the_nearest(tmp_path: Path, role: str) -> None:
    told = tell(tmp_path, f"storage: {{{role}: fss}}")
    assert f"storage.{role}: there is no tier 'fss' (did you mean 'fs'?)" in told


def test_results_never_go_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert "is read-only" in tell(tmp_path, "storage: {durable: public_data}")
    assert "is by-copy" in tell(tmp_path, "storage: {durable: oss}", base="gpushare")


def test_scratch_and_durable_tier_are_two_places(tmp_path: Path) -> None:
    told = tell(tmp_path, "storage: {durable: network_volume}", base="runpod")
    assert "is in the same place as the data tier, /workspace" in told
    group = "storage: {data: container, durable: network_volume}"
    assert take(tmp_path, group, base="runpod").durable_dir(tmp_path) == "/workspace"


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("storage: {credentials: /root/k.json}", "expected a path with {run}, found"),
        ("storage: {credentials: '/root/{box}/{run}'}", "expected a path with {run}, found"),
        ("storage: {credentials: 'k-{run}'}", "begins with / or ~/"),
        ("storage: {tiers: {fs: {path: data}}}", "storage.tiers.fs.path: expected a path on the"),
        ("storage: {tiers: {fs: {path: '/a/{box}'}}}", "a path with no placeholder"),
        ("storage: {tiers: {fs: {path: /a/../b}}}", "without '..'"),
        ('storage: {tiers: {fs: {path: "/a\\nb"}}}', "expected a plain path"),
    ],
)
def test_a_path_that_will_not_do_is_told(tmp_path: Path, group: str, words: str) -> None:
    assert words in tell(tmp_path, group)


@pytest.mark.parametrize(
    "credentials",
    [
        "/root/autodl-fs/k-{run}",
        "/root/./autodl-fs/a/{run}",
        "//root/autodl-fs/{run}",
        "~/autodl-fs/k-{run}",
    ],
)
def test_secrets_never_lie_on_the_durable_tier(tmp_path: Path, credentials: str) -> None:
    told = tell(tmp_path, f"storage: {{credentials: '{credentials}'}}")
    assert "is on the durable tier, /root/autodl-fs." in told


def test_secrets_never_lie_in_a_boxs_own_durable_folder(tmp_path: Path) -> None:
    group = "storage: {credentials: '~/boxcar-data/durable/{run}'}"
    assert "is on the durable tier," in tell(tmp_path, group, base="ssh")


def test_a_name_that_only_begins_alike_is_another_place(tmp_path: Path) -> None:
    take(tmp_path, "storage: {credentials: '/root/autodl-fs-keys/{run}'}")


def test_the_python_of_a_rented_box_is_named(tmp_path: Path) -> None:
    assert "works only in the local profile. Name" in tell(tmp_path, "env: {training_python: auto}")
    take(tmp_path, "env: {training_python: ~/conda/bin/python}")


def test_down_names_a_verb_that_is_there(tmp_path: Path) -> None:
    told = tell(tmp_path, "meter: {down: stop}", base="lambda")
    assert "is 'stop', but meter has no such key. Write" in told


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("boxes/{box}    #", "boxes    #", "tiers.boxes.path: expected a path with {box},"),
        ("local/durable ", "{box}/durable ", "tiers.durable.path: expected a path with no"),
        ("-{run}.json", ".json", "storage.credentials: expected a path with {box} and {run}"),
        ("-{run}.json", "-{ran}.json", "with {box} and {run}, found"),
        ("durable: durable", "durable: null", "the local profile needs"),
    ],
)
def test_boxes_of_this_machine_share_nothing_by_mistake(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (told,) = problems(tmp_path, "local", LOCAL.replace(old, new, 1))
    assert words in told


@pytest.mark.parametrize(
    "url",
    ["s3://bucket/prefix", "gs://bucket", "file:///mnt/other/me", "az://container/p", "s3://b/"],
)
def test_a_second_home_is_any_url_of_fsspec(tmp_path: Path, url: str) -> None:
    found = take(tmp_path, f"storage: {{second: '{url}'}}").storage.second
    assert found == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/mnt/other", "expected an fsspec URL"),
        ("s3:bucket", "expected an fsspec URL"),
        ("simplecache::s3://b/p", "expected an fsspec URL"),
        ("s3://key:s3cret@bucket/p", "without user, password"),
        ("s3://b/p?key=s3cret", "without user, password"),
        ("file://host/a", "expected file:///"),
        ("memory://x", "expected a path that survives reboots,"),
        ("s3://b/../c", "expected a path that survives reboots,"),
    ],
)
def test_a_second_home_that_is_none_is_told_without_its_text(
    tmp_path: Path, url: str, words: str
) -> None:
    told = tell(tmp_path, f"storage: {{second: '{url}'}}")
    assert words in told
    assert "s3cret" not in told


def test_a_second_home_is_not_on_the_first_one(tmp_path: Path) -> None:
    told = tell(tmp_path, "storage: {second: 'file:///root/autodl-fs/copies'}")
    assert "storage.second: is on the tier 'fs', /root/autodl-fs" in told

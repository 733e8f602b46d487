from __future__ import annotations

import sys
from pathlib import Path

import pytest

from boxcar.laptop.common import home
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.shared.errors import InputError

LOCAL = (home.assets_root() / "profiles" / "local.yaml").read_text()
NAS = """\
name: lab
extends: ssh
storage:
  durable: nas
  tiers:
    nas: {path: /mnt/nas, scope: cluster, destroy: keep}
"""


def own_profile(root: Path, name: str, text: str) -> Path:
    path = root / "profiles" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def load(root: Path, name: str, text: str) -> Profile:
    own_profile(root, name, text)
    return load_profile(name, root)


def problems(root: Path, name: str, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(root, name, text)
    return list(caught.value.problems)


def test_the_local_profile_lies_below_the_project(tmp_path: Path) -> None:
    profile = load_profile("local", tmp_path)
    assert profile.data_dir(tmp_path, "box-a") == f"{tmp_path}/.boxcar/local/boxes/box-a"
    assert profile.durable_dir(tmp_path) == f"{tmp_path}/.boxcar/local/durable"
    assert profile.durable_scope == "shared"


def test_credentials_lie_on_the_box_and_apart_from_the_durable_tier(tmp_path: Path) -> None:
    profile = load_profile("local", tmp_path)
    path = Path(profile.credentials(tmp_path, "box-a", "digits"))
    assert path == tmp_path / ".boxcar/local/boxes/box-a/system/credentials-digits.json"
    assert not path.is_relative_to(profile.durable_dir(tmp_path))


def test_auto_is_this_python_through_its_virtual_environment(tmp_path: Path) -> None:
    profile = load_profile("local", tmp_path)
    assert profile.agent_python == profile.training_python == sys.executable
    text = LOCAL.replace("training_python: auto", "training_python: /opt/py/bin/python")
    other = load(tmp_path, "local", text)
    assert (other.agent_python, other.training_python) == (sys.executable, "/opt/py/bin/python")


def test_auto_on_a_rented_box_is_left_to_the_box(tmp_path: Path) -> None:
    assert load_profile("ssh", tmp_path).agent_python == "auto"


def test_a_local_path_may_be_absolute_or_begin_at_home(tmp_path: Path) -> None:
    away = load(tmp_path, "local", LOCAL.replace(".boxcar/local/durable", "/mnt/tier"))
    assert away.durable_dir(tmp_path) == "/mnt/tier"
    home = load(tmp_path, "local", LOCAL.replace(".boxcar/local/durable", "~/tier"))
    assert home.durable_dir(tmp_path) == str(Path.home() / "tier")


def test_a_path_on_a_rented_box_is_taken_as_it_is(tmp_path: Path) -> None:
    profile = load_profile("ssh", tmp_path)
    assert profile.data_dir(tmp_path, "box-a") == "~/boxcar-data"
    found = profile.credentials(tmp_path, "box-a", "digits")
    assert found == "~/.boxcar/credentials-digits.json"


def test_without_a_durable_tier_each_box_has_its_own_folder(tmp_path: Path) -> None:
    profile = load_profile("ssh", tmp_path)
    assert profile.durable_scope == "box"
    assert profile.durable_dir(tmp_path) == "~/boxcar-data/durable"


def test_a_tier_that_no_other_box_sees_is_no_shared_one(tmp_path: Path) -> None:
    assert load(tmp_path, "lab", NAS).durable_scope == "shared"
    assert load(tmp_path, "lab", NAS.replace("cluster", "machine")).durable_scope == "box"


def test_the_verb_that_ends_a_run_says_which_tiers_it_preserves(tmp_path: Path) -> None:
    stop = load_profile("autodl", tmp_path).meter_stop
    assert (stop.verb, stop.is_reversible) == ("关机", True)
    assert stop.from_box == "/usr/bin/shutdown"
    assert {"data", "fs"} <= set(stop.preserves)
    gone = load_profile("vastai", tmp_path).meter_stop
    assert not gone.is_reversible and "container" not in gone.preserves


def test_a_tier_without_a_path_is_asked_for_when_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_profile("slurm", tmp_path).durable_dir(tmp_path)
    assert "extends: slurm, storage: {tiers: {scratch: {path: …}}}" in str(caught.value)
    text = "name: s\nextends: slurm\nstorage: {tiers: {scratch: {path: /scratch/me}}}\n"
    assert load(tmp_path, "s", text).durable_dir(tmp_path) == "/scratch/me"


# --- names


def test_the_projects_own_profile_comes_first(tmp_path: Path) -> None:
    profile = load(tmp_path, "local", LOCAL.replace(".boxcar/local/durable", "tier"))
    assert profile.durable_dir(tmp_path) == str(tmp_path / "tier")


def test_an_unknown_profile_lists_the_known_ones_and_the_nearest(tmp_path: Path) -> None:
    own_profile(tmp_path, "mine", LOCAL)
    with pytest.raises(InputError) as caught:
        load_profile("locla", tmp_path)
    assert "no profile 'locla' (did you mean 'local'?); known: " in str(caught.value)
    assert "local, matpool, mine" in str(caught.value)


@pytest.mark.parametrize("name", ["../local", "", "a\nb", "$(touch x)"])
def test_a_name_that_is_no_profile_is_never_taken_as_a_path(tmp_path: Path, name: str) -> None:
    own_profile(tmp_path, "local", LOCAL)
    with pytest.raises(InputError, match="there is no profile"):
        load_profile(name, tmp_path / "profiles")


def test_a_profile_is_called_as_its_file(tmp_path: Path) -> None:
    line = LOCAL.splitlines().index("name: local") + 1
    path = tmp_path / "profiles/mine.yaml"
    (told,) = problems(tmp_path, "mine", LOCAL)
    assert told.startswith(f"{path}:{line}: name: expected 'mine'")


# --- extends


def test_what_is_not_said_is_taken_over(tmp_path: Path) -> None:
    profile, base = load(tmp_path, "lab", NAS), load_profile("ssh", tmp_path)
    assert profile.storage.tiers.keys() == {"home", "nas"}
    assert profile.storage.data == base.storage.data
    assert (profile.meter, profile.clocks) == (base.meter, base.clocks)


def test_a_list_is_replaced_and_null_takes_away(tmp_path: Path) -> None:
    text = "name: a\nextends: autodl\ngotchas: [only this]\nstorage: {durable: null}\n"
    profile = load(tmp_path, "a", text)
    assert [sentence.en for sentence in profile.gotchas] == ["only this"]
    assert profile.durable_tier is None


def test_a_chain_of_profiles_is_followed(tmp_path: Path) -> None:
    own_profile(tmp_path, "lab", NAS)
    profile = load(tmp_path, "desk", "name: desk\nextends: lab\nmeter: {is_billed: no}\n")
    assert (profile.storage.durable, profile.is_billed) == ("nas", False)


def test_a_profile_may_extend_the_shipped_one_of_its_own_name(tmp_path: Path) -> None:
    tiers = "{filesystem: {path: /lambda/nfs/thesis}}"
    text = f"name: lambda\nextends: lambda\nstorage: {{tiers: {tiers}}}\n"
    profile = load(tmp_path, "lambda", text)
    assert profile.durable_dir(tmp_path) == "/lambda/nfs/thesis"


def test_a_circle_is_told_with_its_way(tmp_path: Path) -> None:
    own_profile(tmp_path, "b", "name: b\nextends: a\n")
    path = tmp_path / "profiles/b.yaml"
    assert problems(tmp_path, "a", "name: a\nextends: b\n") == [
        f"{path}:2: extends: the profiles extend each other in a circle: a → b → a"
    ]


def test_an_unknown_base_is_told_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, "a", "name: a\nextends: runpot\n")
    assert told.startswith(f"{tmp_path}/profiles/a.yaml:2: extends: there is no profile 'runpot'")
    assert "did you mean 'runpod'?" in told


def test_an_error_names_the_file_in_which_it_stands(tmp_path: Path) -> None:
    base = own_profile(tmp_path, "lab", NAS.replace("cluster", "claster"))
    own = tmp_path / "profiles/desk.yaml"
    text = "name: desk\nextends: lab\nmeter:\n  is_biled: no\n"
    assert problems(tmp_path, "desk", text) == [
        f"{own}:4: unknown key 'meter.is_biled' (did you mean 'is_billed'?)",
        next(told for told in problems(tmp_path, "desk", text) if told.startswith(f"{base}:6: ")),
    ]


def test_a_profile_that_only_extends_needs_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "profiles/a.yaml"
    assert problems(tmp_path, "a", "extends: ssh\n") == [f"{path}:1: the key 'name' is missing"]


# --- what is wrong


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: local", "kind: telnet", "connection.kind: expected 'local', 'ssh', 'slurm'"),
        ("gotchas:", "gotcha:", "unknown key 'gotcha' (did you mean 'gotchas'?)"),
        ("agent_python", "agent_pyton", "unknown key 'env.agent_pyton' (did you mean 'agent_py"),
        ("      scope: laptop", "      scop: laptop", "unknown key 'storage.tiers.durable.scop'"),
        ("verified: 2026-10", "verified: 2026-13", "connection.verified: "),
        ("confidence: documented", "confidence: sure", "connection.confidence: expected 'docu"),
        ("primary: process", "primary: nohup", "detach.primary: expected 'tmux', 'setsid'"),
        ("training_python: auto", "training_python: a b", "env.training_python: expected auto"),
        ("  is_billed: no", "", "meter: the key 'is_billed' is missing"),
        ('hook: ""', "env: {A-B: x}", "expected the name of an environment variable"),
        ('hook: ""', "env: {BOXCAR_RUN: x}", "that Boxcar does not set"),
        ("  zh: 不租", "  fr: 不租", "unknown key 'conveniences[0].fr'"),
    ],
)
def test_a_bad_profile_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in LOCAL
    text = LOCAL.replace(old, new, 1)
    line = LOCAL[: LOCAL.index(old)].count("\n") + 1
    told = [told for told in problems(tmp_path, "local", text) if words in told]
    assert len(told) == 1
    found = int(told[0].removeprefix(f"{tmp_path}/profiles/local.yaml:").split(":")[0])
    assert abs(found - line) <= (10 if new == "" else 0)


def test_an_image_is_pinned_by_its_digest(tmp_path: Path) -> None:
    text = "name: a\nextends: runpod\nenv: {image: IMAGE}\n"
    assert "with its digest" in problems(tmp_path, "a", text.replace("IMAGE", "torch:2.4"))[0]
    pinned = f"torch@sha256:{'ab' * 32}"
    assert load(tmp_path, "a", text.replace("IMAGE", pinned)).env.image == pinned

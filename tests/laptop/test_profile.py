from __future__ import annotations

import sys
from pathlib import Path

import pytest

from boxcar.formats.errors import InputError
from boxcar.laptop import assets, strict_yaml
from boxcar.laptop.profile import Profile, load_profile

LOCAL = (assets.root() / "profiles" / "local.yaml").read_text()


def own_profile(root: Path, name: str, text: str) -> Path:
    path = root / "profiles" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def parse(text: str) -> Profile:
    return strict_yaml.parse(text.encode(), "local.yaml", Profile)


def test_the_local_profile_lies_below_the_project(tmp_path: Path) -> None:
    profile = load_profile("local", tmp_path)
    assert profile.data_dir(tmp_path, "box-a") == tmp_path / ".boxcar/local/boxes/box-a"
    assert profile.durable_dir(tmp_path) == tmp_path / ".boxcar/local/durable"


def test_credentials_lie_on_the_box_and_apart_from_the_durable_tier(tmp_path: Path) -> None:
    profile = load_profile("local", tmp_path)
    path = profile.credentials(tmp_path, "box-a", "digits")
    assert path == tmp_path / ".boxcar/local/boxes/box-a/system/credentials-digits.json"
    assert not path.is_relative_to(profile.durable_dir(tmp_path))


def test_auto_is_this_python_through_its_virtual_environment() -> None:
    profile = parse(LOCAL)
    assert profile.agent_python == profile.training_python == sys.executable
    other = parse(LOCAL.replace("training_python: auto", "training_python: /opt/py/bin/python"))
    assert (other.agent_python, other.training_python) == (sys.executable, "/opt/py/bin/python")


def test_the_local_profile_tells_people_what_they_need() -> None:
    profile = parse(LOCAL)
    assert profile.connection.kind == "local"
    assert "durable tier" in profile.meter.stop.does
    assert profile.conveniences and profile.clocks and profile.gotchas


def test_a_path_may_be_absolute_or_begin_at_home(tmp_path: Path) -> None:
    away = parse(LOCAL.replace(".boxcar/local/durable", "/mnt/tier"))
    assert away.durable_dir(tmp_path) == Path("/mnt/tier")
    home = parse(LOCAL.replace(".boxcar/local/durable", "~/tier"))
    assert home.durable_dir(tmp_path) == Path.home() / "tier"


def test_the_projects_own_profile_comes_first(tmp_path: Path) -> None:
    own_profile(tmp_path, "local", LOCAL.replace(".boxcar/local/durable", "tier"))
    assert load_profile("local", tmp_path).durable_dir(tmp_path) == tmp_path / "tier"


def test_an_unknown_profile_lists_the_known_ones_and_the_nearest(tmp_path: Path) -> None:
    own_profile(tmp_path, "mine", LOCAL)
    with pytest.raises(InputError) as caught:
        load_profile("locla", tmp_path)
    assert "no profile 'locla' (did you mean 'local'?); known: " in str(caught.value)
    assert "local, mine" in str(caught.value)


@pytest.mark.parametrize("name", ["../local", "", "a\nb", "$(touch x)"])
def test_a_name_that_is_no_profile_is_never_taken_as_a_path(tmp_path: Path, name: str) -> None:
    own_profile(tmp_path, "local", LOCAL)
    with pytest.raises(InputError, match="there is no profile"):
        load_profile(name, tmp_path / "profiles")


def test_a_profile_is_called_as_its_file(tmp_path: Path) -> None:
    path = own_profile(tmp_path, "mine", LOCAL)
    with pytest.raises(InputError) as caught:
        load_profile("mine", tmp_path)
    line = LOCAL.splitlines().index("name: local") + 1
    assert str(caught.value).startswith(f"{path}:{line}: name: expected 'mine'")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("boxes/{box}    #", "boxes    #", "storage.data: expected a path that holds {box}"),
        ("local/durable ", "{box}/durable ", "storage.durable: expected a path that holds no"),
        ("-{run}.json", ".json", "storage.credentials: expected a path that holds {box} and {run}"),
        ("-{run}.json", "-{ran}.json", "holds {box} and {run}, found"),
        ("kind: local", "kind: telnet", "connection.kind: expected 'local', found 'telnet'"),
        ("gotchas:", "gotcha:", "unknown key 'gotcha' (did you mean 'gotchas'?)"),
        ("agent_python", "agent_pyton", "unknown key 'env.agent_pyton' (did you mean 'agent_py"),
    ],
)
def test_a_bad_profile_is_told_with_its_line(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(LOCAL.replace(old, new, 1))
    assert words in str(caught.value)
    assert str(caught.value).startswith("local.yaml:")

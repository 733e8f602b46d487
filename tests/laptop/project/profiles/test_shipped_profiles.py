from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from boxcar.laptop.common import home
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.json_schema import json_schema
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.project.profiles.schema import Sentence
from boxcar.shared.errors import InputError

NAMES = sorted(path.stem for path in (home.assets_root() / "profiles").glob("*.yaml"))
NO_SHARED_TIER = ("colab", "gpushare", "kaggle", "paperspace", "runpod", "ssh", "vastai")


@pytest.fixture(scope="module", params=NAMES)
def profile(request: pytest.FixtureRequest) -> Profile:
    return load_profile(request.param, home.assets_root() / "tests")


def test_every_platform_is_there() -> None:
    rented = {"autodl", "runpod", "vastai", "lambda", "paperspace"}
    chinese = {"gpushare", "matpool", "featurize", "lanrui"}
    by_files = {"kaggle", "colab"}
    assert set(NAMES) == rented | chinese | by_files | {"ssh", "local", "slurm", "kubernetes"}


def test_it_says_what_may_go_wrong_and_what_helps(profile: Profile) -> None:
    assert profile.clocks.dangers and profile.conveniences and profile.gotchas
    assert profile.title


def test_its_sentences_are_in_both_languages(profile: Profile) -> None:
    for sentence in _sentences(profile):
        assert sentence.en.strip()
        assert sentence.zh.strip(), sentence.en
        assert any("\u4e00" <= char <= "\u9fff" for char in sentence.zh), sentence.zh


def test_the_durable_tier_survives_the_verb_that_down_names(profile: Profile) -> None:
    assert survival.survival_problems(profile) == []


def test_results_go_to_the_laptop_where_no_tier_is_shared(profile: Profile) -> None:
    assert profile.durable_scope == ("box" if profile.name in NO_SHARED_TIER else "shared")


def test_it_places_a_box_or_says_what_is_missing(profile: Profile, tmp_path: Path) -> None:
    credentials = profile.credentials(tmp_path, "box-a", "digits")
    assert "{" not in credentials and "digits" in credentials
    if profile.name == "slurm":
        for place in (profile.durable_dir, lambda root: profile.data_dir(root, "box-a")):
            with pytest.raises(InputError, match="scratch"):
                place(tmp_path)
    else:
        data_dir = profile.data_dir(tmp_path, "box-a")
        assert "{" not in data_dir
        durable_dir = profile.durable_dir(tmp_path)
        assert durable_dir != data_dir
        assert not Path(credentials).is_relative_to(durable_dir)


def test_its_hook_is_harmless_where_the_platform_is_not(profile: Profile) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{profile.hook}\necho alive"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


def test_the_json_schema_in_the_docs_is_that_of_the_models() -> None:
    docs = home.assets_root() / "docs" / "profile.schema.json"
    assert docs.read_text(encoding="utf-8") == json_schema(), (
        "write it anew: "
        "python -m boxcar.laptop.project.profiles.json_schema > docs/profile.schema.json"
    )


def test_the_page_about_profiles_names_every_one(profile: Profile) -> None:
    page = (home.assets_root() / "docs" / "profiles.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(f"| `{profile.name}`")]
    assert rows, f"docs/profiles.md has no row for {profile.name}"
    [row] = rows
    if profile.storage.tiers[profile.storage.data].path and profile.name != "local":
        assert f"`{profile.data_dir(Path(), 'x')}`" in row
    assert ("results go to the laptop" in row) == (profile.storage.durable is None)


def _sentences(profile: Profile) -> list[Sentence]:
    """What a person must be able to read in either language."""
    verbs = [profile.meter.stop, profile.meter.destroy, profile.meter.park]
    told = [text for verb in verbs if verb for text in (verb.does, verb.where, *verb.still_bills)]
    lists = [profile.clocks.dangers, profile.conveniences, profile.gotchas, profile.limits.notes]
    return [*told, *(sentence for sentences in lists for sentence in sentences)]

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_profile import own_profile

from boxcar.laptop.project.profiles.page import document, first_look, page
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.verbs.explain import explain_platform

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def autodl(tmp_path: Path) -> Profile:
    return load_profile("autodl", tmp_path)


def told(profile: Profile, capsys: Capture, language: str) -> str:
    assert explain_platform(profile, language=language) == 0
    return capsys.readouterr().out


def test_the_danger_clocks_come_first(autodl: Profile, capsys: Capture) -> None:
    out = told(autodl, capsys, "en")
    titles = ["deadlines", "billing", "what survives", "conveniences", "limits", "gotchas"]
    places = [out.index(f"\n{title}") for title in titles]
    assert places == sorted(places)
    assert "15 days" in out[: places[1]]


def test_the_meter_says_what_each_verb_keeps_and_bills(autodl: Profile, capsys: Capture) -> None:
    out = told(autodl, capsys, "en")
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "(ends the run)" in rows["关机"] and " yes " in rows["关机"]
    assert "expanded part of the data disk" in rows["关机"]
    assert " no " in rows["释放"] and "fs, legacy_nas" in rows["释放"]


def test_the_survival_matrix_has_a_column_for_each_ending(autodl: Profile, capsys: Capture) -> None:
    lines = told(autodl, capsys, "en").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("what survives"))
    assert lines[start + 1].split()[:6] == ["tier", "used", "for", "path", "关机", "释放"]
    data = next(line for line in lines[start:] if line.startswith("data "))
    assert data.split()[:5] == ["data", "scratch", "/root/autodl-tmp", "keep", "lose"]


def test_in_chinese_every_title_and_sentence_is_chinese(autodl: Profile, capsys: Capture) -> None:
    out = told(autodl, capsys, "zh")
    assert "会丢数据的时限" in out and "连续关机 15 天" in out and "结束运行" in out
    for english in ("deadlines", "what survives", "documented", "keep", "region"):
        assert english not in out


def test_a_chinese_sentence_over_two_lines_has_no_gap(tmp_path: Path) -> None:
    text = "name: a\nextends: ssh\ngotchas:\n - en: x\n   zh: 先停，\n     再走 GPU\n"
    own_profile(tmp_path, "a", text)
    assert load_profile("a", tmp_path).gotchas[0].zh == "先停，再走 GPU"


def test_a_sentence_without_chinese_is_told_in_english(tmp_path: Path, capsys: Capture) -> None:
    own_profile(tmp_path, "mine", "name: mine\nextends: ssh\ngotchas: [mind the cable]\n")
    assert "mind the cable" in told(load_profile("mine", tmp_path), capsys, "zh")


def test_results_that_have_no_tier_are_said_to_come_home(tmp_path: Path, capsys: Capture) -> None:
    assert "results go to the laptop" in told(load_profile("runpod", tmp_path), capsys, "en")


def test_a_tier_that_would_be_lost_is_said_beside_it(tmp_path: Path, capsys: Capture) -> None:
    text = "name: mine\nextends: vastai\nstorage: {data: volume, durable: container}\n"
    own_profile(tmp_path, "mine", text)
    explain_platform(load_profile("mine", tmp_path), language="en")
    assert "does not survive 'destroy'" in capsys.readouterr().err


def test_the_image_that_the_platform_is_built_on_is_shown(tmp_path: Path) -> None:
    runpod = load_profile("runpod", tmp_path)
    assert f"image: {runpod.env.image}" in document(runpod, "en")["notes"]["env"]
    assert f"镜像: {runpod.env.image}" in document(runpod, "zh")["notes"]["env"]


def test_json_is_one_document_in_the_asked_language(autodl: Profile, capsys: Capture) -> None:
    explain_platform(autodl, language="zh", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert "15 天" in found["clocks"][0]
    (end,) = [verb for verb in found["meter"] if verb["ends_the_run"]]
    assert (end["verb"], end["from_box"]) == ("关机", "/usr/bin/shutdown")
    assert {tier["tier"]: tier["destroy"] for tier in found["tiers"]}["fs"] == "keep"
    assert {fact["group"] for fact in found["facts"]} >= {"storage", "meter", "clocks"}


def said_first(profile: Profile, root: Path, language: str) -> str:
    return "\n".join(map(str, first_look(profile, root, language)))


def test_the_first_look_is_shown_once_for_each_platform(tmp_path: Path, autodl: Profile) -> None:
    said = said_first(autodl, tmp_path, "en")
    assert "  ! A box that stays off for 15 days" in said
    assert "  + One click in the console" in said
    assert "invoke explain --profile autodl" in said
    assert said_first(autodl, tmp_path, "en") == ""
    assert "余额为零" in said_first(load_profile("runpod", tmp_path), tmp_path, "zh")


def test_a_first_look_that_was_not_seen_to_its_end_is_shown_again(
    tmp_path: Path, autodl: Profile
) -> None:
    next(first_look(autodl, tmp_path, "en"))
    assert "15 days" in said_first(autodl, tmp_path, "en")


def test_a_price_that_was_typed_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    text = 'name: mine\nextends: autodl\nmeter: {price: "1.98 CNY/h"}\n'
    (folder / "mine.yaml").write_text(text)
    profile = load_profile("mine", tmp_path)
    assert "price of a box: 1.98 CNY/h\n" in list(page(profile, "en"))
    assert document(profile, "zh")["price"] == "1.98 CNY/h"
    assert not any("price" in str(part) for part in page(load_profile("autodl", tmp_path), "en"))

"""What a cell was told, as flat keys."""

from __future__ import annotations

import json

import pytest

from boxcar.laptop.view.report import settings


def told(config: str | None, *words: str) -> dict[str, str]:
    return settings.spelled(settings.of_cell(config, "configs/a.yaml", "recon", 20, words))


BASE = {"task": "recon", "epochs": "20"}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ('{"lr": 0.003, "model": {"depth": 3}}', {"lr": "0.003", "model.depth": "3"}),
        ("lr: 3.0e-3\nskip: yes\nname: null\n", {"lr": "0.003", "skip": "true", "name": "null"}),
        ("layers: [1, 2]\n", {"layers": "[1, 2]"}),
    ],
)
def test_a_config_is_flattened(config: str, found: dict[str, str]) -> None:
    assert told(config) == BASE | found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("lr=1e-3",), {"lr": "0.001"}),
        (("+lr=0.001", "++model.depth=4"), {"lr": "0.001", "model.depth": "4"}),
        (("--lr", "1e-3", "--amp"), {"lr": "0.001", "amp": "true"}),
        (("--lr=0.001", "--amp", "--depth", "2"), {"lr": "0.001", "amp": "true", "depth": "2"}),
        (("--shift", "-1"), {"shift": "-1"}),
        (("~aug",), {"~aug": "removed"}),
        (("fast", "--amp=1", "1e-2"), {"$1": "fast", "amp": "1", "$2": "0.01"}),
    ],
)
def test_words_of_the_line_stand_over_the_config(
    words: tuple[str, ...], found: dict[str, str]
) -> None:
    assert told("lr: 0.5\n", *words) == BASE | {"lr": "0.5"} | found


def test_a_flag_means_the_configs_key_of_that_name() -> None:
    assert told("batch_size: 32\n", "--batch-size", "64")["batch_size"] == "64"


def test_one_value_has_one_spelling() -> None:
    assert told("lr: 1e-3\n") == told("lr: 0.001\n") == told('{"lr": 0.0010}')


def test_a_value_has_the_type_that_json_gives_it() -> None:
    texts = {"fold": "1_2", "data": "007", "layers": "3_4_6_3", "sha": "12e4567", "v": "1e5"}
    others = {"name": "nan", "width": 8, "lr": 0.5, "skip": True, "none": "None"}
    found = settings.of_cell(json.dumps(texts | others), "a.json", "recon", 20, ())
    assert {key: found[key] for key in texts | others} == texts | others
    assert [type(found[key]) for key in ("width", "lr", "skip")] == [int, float, bool]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("8", 8), ("-0.5", -0.5), ("1e-3", 0.001), ("1E+3", 1000.0), ("true", True)),
        *((text, text) for text in ("007", "1_2", "12e4567", "1234e12", "nan", "inf", "1e999")),
        *((text, text) for text in ("adam", "1.2.3", "0x10", "+5", ".5", "٣", " 8")),
    ],
)
def test_a_word_is_a_number_where_it_is_a_plain_decimal_one(word: str, value: object) -> None:
    found = settings.of_cell("{}", "a.json", "recon", 20, (f"key={word}",))["key"]
    assert found == value and type(found) is type(value)


def test_two_folds_two_long_seeds_and_two_ways_of_one_key_stay_two() -> None:
    assert told('{"fold": "1_2"}') != told('{"fold": "12"}')
    assert told(None, "seed=1234567890123456") != told(None, "seed=1234567890123457")
    assert told('{"a.b": 1, "a": {"b": 2}}') == BASE | {"a.b": "1", "a.b_2": "2"}


@pytest.mark.parametrize("config", ["not: [closed", "just words", "- 1\n- 2\n", "\x00"])
def test_a_config_that_is_no_mapping_is_told_apart_by_its_bytes(config: str) -> None:
    found = told(config)
    assert found[settings.CONFIG] and found != told(config + " #")


def test_a_config_that_is_gone_is_told_apart_by_its_path() -> None:
    assert told(None) == BASE | {settings.CONFIG: "configs/a.yaml"}


def test_differences_name_key_old_and_new() -> None:
    one, base = {"lr": "0.01", "skip": "true"}, {"lr": "0.003", "skip": "true", "depth": "3"}
    assert settings.differences(one, base) == ["lr: 0.003→0.01", "depth: 3→-"]

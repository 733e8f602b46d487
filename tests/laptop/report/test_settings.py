"""What a cell was told, as flat keys."""

from __future__ import annotations

import pytest

from boxcar.laptop.report import settings


def told(config: str | None, *words: str) -> dict[str, str]:
    return settings.of_cell(config, "configs/a.yaml", "recon", 20, words)


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
        (("fast",), {"fast": "given"}),
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


@pytest.mark.parametrize("config", ["not: [closed", "just words", "- 1\n- 2\n", "\x00"])
def test_a_config_that_is_no_mapping_is_told_apart_by_its_bytes(config: str) -> None:
    found = told(config)
    assert found[settings.CONFIG] and found != told(config + " #")


def test_a_config_that_is_gone_is_told_apart_by_its_path() -> None:
    assert told(None) == BASE | {settings.CONFIG: "configs/a.yaml"}


def test_differences_name_key_old_and_new() -> None:
    one, base = {"lr": "0.01", "skip": "true"}, {"lr": "0.003", "skip": "true", "depth": "3"}
    assert settings.differences(one, base) == ["lr: 0.003→0.01", "depth: 3→-"]

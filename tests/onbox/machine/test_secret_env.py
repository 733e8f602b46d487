from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxcar.shared import names
from boxcar.shared.errors import DamagedError, InputError
from onbox.machine import secret_env


def kept(folder: Path, record: object, mode: int = 0o600) -> str:
    path = folder / "credentials.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    path.chmod(mode)
    return str(path)


def test_a_training_gets_its_variables_whatever_the_rest_is(tmp_path: Path) -> None:
    path = kept(tmp_path, {"env": {"HF_TOKEN": "x y"}, "webhooks": "none"})
    assert secret_env.read(path) == {"HF_TOKEN": "x y"}
    assert secret_env.read(str(tmp_path / "missing")) == {}
    assert secret_env.read(kept(tmp_path, {})) == {}


@pytest.mark.parametrize(
    "record", ["{", [], {"env": []}, {"env": {"A": 1}}, {"env": {"1A": "x"}}, {"env": {"A": "\0"}}]
)
def test_what_is_no_variable_is_refused_without_its_value(tmp_path: Path, record: object) -> None:
    with pytest.raises(DamagedError, match=r"credentials\.json: (not a JSON|expected|env)"):
        secret_env.read(kept(tmp_path, record))


def test_what_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mode 640, expected 600"):
        secret_env.read(kept(tmp_path, {"env": {"A": "secret"}}, 0o640))


@pytest.mark.parametrize(
    "name", ["A", "_a1", "aB_9", "", "1a", "a-b", "a b", "größe", "变量", "a\n"]
)
def test_a_name_is_one_by_the_rule_of_all_others(tmp_path: Path, name: str) -> None:
    found = secret_env.problem_of({"env": {name: "x"}})
    assert (found is None) == bool(names.VARIABLE.fullmatch(name))

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from boxcar.laptop.project.grids import cell_configs
from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import InputError

BASE = """
lr: 1e-4
opt: &shared {name: adam, wd: 0.1}
other: *shared
layers: [1, 2]
标题: 基线
"""


def cell(*overrides: str) -> CellLine:
    words = " ".join(f"'{word}'" for word in overrides)
    return cell_line.parse(f"base.yaml t {words}".encode(), 0, 1)


def made(code: Path, *overrides: str, suffix: str = "yaml", base: str = BASE) -> bytes:
    (code / f"base.{suffix}").write_text(base)
    [data] = cell_configs.files(code, f"base.{suffix}", "g", [cell(*overrides)]).values()
    return data


def test_each_cell_has_a_file_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    found = cell_configs.files(tmp_path, "base.yaml", "c/g", [cell("lr=1"), cell("lr=2")])
    assert list(found) == ["c/g/base_lr1.yaml", "c/g/base_lr2.yaml"]
    assert not (tmp_path / "c").exists()
    assert cell_configs.write_configs(tmp_path, found) == 2
    assert {path: (tmp_path / path).read_bytes() for path in found} == found
    assert cell_configs.write_configs(tmp_path, found) == 0


def test_values_are_typed_as_in_a_file_and_the_rest_of_the_base_stays(tmp_path: Path) -> None:
    data = made(tmp_path, "lr=3e-4", "opt.name=sgd", "layers=[3]", "+new.a=true", "+text=x")
    assert yaml.safe_load(data) == {
        "lr": 0.0003,
        "opt": {"name": "sgd", "wd": 0.1},
        "other": {"name": "adam", "wd": 0.1},  # though an anchor joins the two in the base
        "layers": [3],
        "标题": "基线",
        "new": {"a": True},
        "text": "x",
    }
    assert "标题: 基线".encode() in data


def test_what_the_grid_does_not_name_is_spelled_as_in_the_base(tmp_path: Path) -> None:
    assert b"lr: 1e-4\n" in made(tmp_path, "layers=[3]")


def test_a_base_in_json_makes_json(tmp_path: Path) -> None:
    data = made(tmp_path, "lr=3e-4", suffix="json", base='{"lr": 1, "标题": "基线"}')
    assert json.loads(data) == {"lr": 0.0003, "标题": "基线"}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("lrr=1", "has no key 'lrr' (did you mean 'lr'?). To add one: +lrr=1"),
        ("opt.nam=1", "has no key 'nam' (did you mean 'name'?)"),
        ("lr.x=1", "the part before .x in base.yaml has no keys"),
        ("+lr=1", "base.yaml already has this key: lr=1"),
        ("--lr=1", "--configs sets key=value"),
        ("~lr=1", "--configs sets key=value"),
        ("lr=[1", "cannot be read as YAML"),
    ],
)
def test_a_word_that_sets_no_key_of_the_base_is_refused(
    tmp_path: Path, word: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        made(tmp_path, word)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("suffix", "base", "said"),
    [
        ("yaml", "[1, 2]", "expected keys with values"),
        ("yaml", "a: [", "cannot be read as the base"),
        ("yaml", "a: !!python/object:os.system {}", "cannot be read as the base"),
        ("json", "{", "cannot be read as the base"),
        ("toml", "a = 1", "YAML or JSON"),
    ],
)
def test_a_base_that_cannot_be_read_is_refused(
    tmp_path: Path, suffix: str, base: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        made(tmp_path, "lr=1", suffix=suffix, base=base)


def test_a_file_with_another_content_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    mine = tmp_path / "g" / "base_lr1.yaml"
    mine.parent.mkdir()
    mine.write_text("mine: 1\n")
    with pytest.raises(InputError, match="exists with other content"):
        cell_configs.files(tmp_path, "base.yaml", "g", [cell("lr=1")])
    with pytest.raises(InputError, match="exists with other content"):
        cell_configs.write_configs(tmp_path, {"g/base_lr1.yaml": b"lr: 1\n"})
    assert mine.read_text() == "mine: 1\n"


@pytest.mark.parametrize("text", ["../g", "/g", ".", "", "a/../../g", "a\0b"])
def test_a_folder_outside_the_code_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a folder below the code folder"):
        cell_configs.folder(text)
    assert cell_configs.folder("./a//b/") == "a/b"

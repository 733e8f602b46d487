from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from tiny_project import JOB, TinyProject, make_project

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.project.queue_files import ConfigFiles
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs.plan import plan
from boxcar.laptop.verbs.push import push
from boxcar.laptop.verbs.smoke import smoke
from boxcar.shared.errors import InputError

NFD = unicodedata.normalize("NFD", "größe")


def lay(code: Path, *names: str) -> ConfigFiles:
    for name in names:
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).touch()
    return ConfigFiles(code)


def test_a_config_is_found_under_the_name_that_it_is_stored_by(tmp_path: Path) -> None:
    configs = lay(tmp_path, "configs/a.yaml", f"configs/{NFD}/{NFD}.yaml", "b.yaml")
    assert configs.find("configs/a.yaml") == ["configs/a.yaml"]
    assert configs.find("b.yaml") == ["b.yaml"]
    assert configs.find("configs/größe/größe.yaml") == [f"configs/{NFD}/{NFD}.yaml"]


def test_what_is_no_file_is_not_found(tmp_path: Path) -> None:
    configs = lay(tmp_path, "configs/a.yaml")
    for name in ("configs", "configs/b.yaml", "none/a.yaml", "configs/a.yaml/b", "x" * 300):
        assert configs.find(name) == []


def test_two_files_that_differ_only_in_their_form_are_both_found(tmp_path: Path) -> None:
    configs = lay(tmp_path, "configs/größe.yaml", f"configs/{NFD}.yaml")
    assert sorted(configs.find("configs/größe.yaml")) == sorted(
        ["configs/größe.yaml", f"configs/{NFD}.yaml"]
    )


# --- one line, and all who are asked about it

SPELLINGS = [
    pytest.param("configs/größe.json", "größe", id="as it is"),
    pytest.param("./configs/größe.json", "größe", id="with a dot"),
    pytest.param("configs//./größe.json", "größe", id="with empty parts"),
    pytest.param(f"configs/{NFD}.json", "größe", id="another form than the file's"),
    pytest.param("./configs/größe.json", NFD, id="a file of another form"),
]


def write(tmp_path: Path, line: str, *stored: str) -> TinyProject:
    """A project with one line, and with configs that are stored under these names."""
    job = JOB | {"smoke": "--epochs 1"}
    tiny = make_project(tmp_path, {"q1": [f"{line} recon"]}, **job)
    for path in (tiny.root / "configs").iterdir():
        path.unlink()
    for name in stored:
        (tiny.root / "configs" / f"{name}.json").write_text(json.dumps({}))
    return tiny


def opened(tiny: TinyProject) -> Project:
    return open_project(tiny.root / "job.yaml", "local")


@pytest.mark.parametrize(("line", "stored"), SPELLINGS)
def test_plan_smoke_and_push_take_the_same_line(tmp_path: Path, line: str, stored: str) -> None:
    tiny = write(tmp_path, line, stored)
    assert [cell.cfg for cell in opened(tiny).plan.cells] == [f"configs/{stored}.json"]
    assert plan(opened(tiny), as_json=True) == 0
    assert smoke(opened(tiny)) == 0
    assert passes.missing(opened(tiny)) == []
    assert push(opened(tiny)) == 0


@pytest.mark.parametrize(("line", "stored"), SPELLINGS)
def test_plan_smoke_and_push_refuse_the_same_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, stored: str
) -> None:
    tiny = write(tmp_path, line, stored)
    (tiny.root / ".boxcarignore").write_text("configs\n")
    sentence = (
        f"configs/{stored}.json: the config of größe would not be sent, because an ignore file"
    )
    assert plan(opened(tiny), as_json=True) == 1
    assert sentence in capsys.readouterr().err
    for verb in (smoke, push):
        with pytest.raises(InputError, match="would not be sent,") as caught:
            verb(opened(tiny))
        assert sentence in str(caught.value)


def test_a_config_that_two_files_could_be_is_refused_before_anything_is_done(
    tmp_path: Path,
) -> None:
    tiny = write(tmp_path, "configs/größe.json", "größe", NFD)
    with pytest.raises(InputError, match="whose names differ only in Unicode form"):
        opened(tiny)

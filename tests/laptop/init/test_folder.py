from __future__ import annotations

from pathlib import Path

import strange_sources


def test_the_likeliest_script_comes_first_and_others_after_it(tmp_path: Path) -> None:
    found = strange_sources.project(
        tmp_path,
        train_py=strange_sources.BESIDE,
        tools__finetune_py=strange_sources.POSITIONS,
        model_py="class Model: ...\n",
        eval_py=strange_sources.BESIDE,
        tests__test_train_py=strange_sources.BESIDE,
        venv__lib__train_py=strange_sources.BESIDE,
    )
    assert found.scripts == ("train.py", "tools/finetune.py")


def test_config_files_are_those_of_the_usual_folders(tmp_path: Path) -> None:
    found = strange_sources.project(
        tmp_path, configs__a_yaml="", configs____init___py="", configs__notes="", docs__b_yaml=""
    )
    assert found.config_folders == ("configs",)
    assert found.configs("configs") == ["configs/a.yaml"]
    assert found.configs("gone") == []


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert strange_sources.project(tmp_path).scripts == ()

from __future__ import annotations

from pathlib import Path

import pytest
import strange_sources

from boxcar.laptop.init import readme, script


def score(tmp_path: Path, source: str, name: str = "train.py") -> int:
    (tmp_path / name).write_text(source)
    is_program = readme.is_program_at(tmp_path / name)
    return readme.score(name, source.encode()) * is_program


def test_a_script_is_read_and_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    source = f"from pathlib import Path\nPath({str(mark)!r}).touch()\nloss.backward()\n"
    assert score(tmp_path, source) > 0
    assert not mark.exists()


@pytest.mark.parametrize("name", ["eval.py", "test_train.py", "sample.py", "prepare_data.py"])
def test_a_script_that_does_something_else_does_not_train(tmp_path: Path, name: str) -> None:
    assert score(tmp_path, strange_sources.BESIDE, name) == 0


def test_a_script_that_calls_its_training_a_test_comes_last(tmp_path: Path) -> None:
    source = f"{strange_sources.BESIDE}\nopt.zero_grad()\nloss.backward()\nopt.step()\n"
    as_test, plain = (score(tmp_path, source, name) for name in ("add_test.py", "main.py"))
    assert 0 < as_test < plain


def test_a_module_that_is_only_imported_does_not_train(tmp_path: Path) -> None:
    assert score(tmp_path, "import torch\ndef fit():\n    loss.backward()\n") == 0


@pytest.mark.parametrize("data", [b"print(", b"\xff\xfe\x00", b"a = '\\ud800'" * 200_000])
def test_what_is_no_script_is_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    assert script.read_script(tmp_path, path) is None


def test_hydra_is_known_by_where_its_configs_are(tmp_path: Path) -> None:
    assert strange_sources.read(tmp_path, strange_sources.HYDRA).is_hydra
    assert not strange_sources.read(tmp_path, strange_sources.BESIDE).is_hydra

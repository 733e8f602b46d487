from __future__ import annotations

from pathlib import Path

from boxcar.laptop.hosts import ssh_aliases

CONFIG = """\
Host gpu1 gpu2
  HostName 10.0.0.1
Host *
  User root
host=autodl
Match host x
Host github.com hf.co !not gpu1
"""


def test_boxes_are_the_names_without_wildcards_each_once(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONFIG)
    assert ssh_aliases.read_aliases(tmp_path / "config") == ["gpu1", "gpu2", "autodl"]


def test_without_a_config_there_are_none(tmp_path: Path) -> None:
    assert ssh_aliases.read_aliases(tmp_path / "config") == []

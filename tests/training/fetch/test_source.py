"""What a source says of a file: there, not there, refused or out of reach; which version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import odd_sources
import pytest

from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training.fetch import source

odd_sources.register()


def test_a_file_is_found_with_its_size_and_its_ranges() -> None:
    fsspec.filesystem("memory").pipe("/src/found.bin", b"0123456789")
    found = source.look_at_source("memory://src/found.bin")
    assert found and found.size_bytes == 10 and found.has_ranges
    assert source.read_range(found, 3, 6) == b"345"
    assert b"".join(source.stream(found)) == b"0123456789"


def test_another_content_of_the_same_size_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one")
    before = source.look_at_source(f"file://{path}")
    path.unlink()
    path.write_bytes(b"two")
    after = source.look_at_source(f"file://{path}")
    assert before and after and before.identity != after.identity


@pytest.mark.parametrize("url", ["memory://nothing/here", "file:///no/such", "/no/such"])
def test_what_is_not_there_is_none(url: str) -> None:
    assert source.look_at_source(url) is None


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert source.look_at_source(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("PermissionError", source.RefusedError),
        ("TimeoutError", TemporaryError),
        ("OSError", TemporaryError),
        ("RuntimeError", TemporaryError),
    ],
)
def test_doubt_is_not_absence_and_no_secret_is_said(
    tmp_path: Path, error: str, kind: type[Exception]
) -> None:
    odd_sources.behave(tmp_path, look_error=error)
    with pytest.raises(kind) as raised:
        source.look_at_source(f"odd://{tmp_path}/x.h5?sig=hunter2")
    assert "hunter2" not in str(raised.value) and "x.h5" in str(raised.value)


def test_a_short_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    odd_sources.behave(tmp_path, short=1)
    found = source.look_at_source(f"odd://{tmp_path}/x")
    assert found
    with pytest.raises(OSError, match="4 bytes came of 5 asked for at 0"):
        source.read_range(found, 0, 5)


def test_a_missing_package_is_named_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(url: str, **more: Any) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "url_to_fs", lacks)
    with pytest.raises(InputError, match=r"s3:// needs a package .*: pip install s3fs$"):
        source.look_at_source("s3://bucket/x")
    with pytest.raises(InputError, match=r"Install s3fs to access S3$"):
        source.look_at_source("sss://bucket/x")


def test_a_scheme_that_nothing_knows_is_the_askers_mistake() -> None:
    with pytest.raises(InputError, match="fsspec cannot read it"):
        source.look_at_source("s4://bucket/x")


MD5 = "9e107d9d372bb6826bd81d3542a419d6"


@pytest.mark.parametrize(
    ("protocol", "info", "stated"),
    [
        ("s3", {"ETag": f'"{MD5}"'}, ("md5", MD5)),
        ("s3", {"ETag": f'"{MD5}-3"'}, None),  # of three parts
        ("https", {"ETag": f'"{MD5}"'}, None),  # what a web server calls so is anything
        ("gs", {"md5Hash": "nhB9nTcrtoJr2B01QqQZ1g=="}, ("md5", MD5)),
        ("https", {"Content-MD5": "nhB9nTcrtoJr2B01QqQZ1g=="}, ("md5", MD5)),
        ("hf", {"lfs": {"sha256": "ab" * 32}}, ("sha256", "ab" * 32)),
        ("file", {"size": 3}, None),
    ],
)
def test_a_checksum_is_taken_only_where_it_is_one(
    protocol: str, info: dict[str, Any], stated: Any
) -> None:
    assert source.checksum(protocol, info) == stated

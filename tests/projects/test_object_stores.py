"""A second copy in an object store over TLS, by the newest s3fs and botocore.

The server is rclone's. One store takes everything, as MinIO and B2 do; the other refuses what
Alibaba OSS refuses.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from object_store import BUCKET, KEY, SECRET, Front, served

from boxcar.shared.errors import TemporaryError
from boxcar.shared.process.second_home_child import Child, ask

pytestmark = pytest.mark.projects

MINIO, OSS = "minio.test", "s3.oss-test.aliyuncs.com"
URL = f"s3://{BUCKET}/runs/boxcar/demo/cells/a"
# s3fs sends what is larger than 50 MiB in parts.
FILES = {"best.pt": bytes(range(256)) * 4 * 60 * 1024, "log/a b.txt": b"psnr 27\n", "empty": b""}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=[MINIO, OSS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Front]]:
    with served(tmp_path, request.param, is_strict=request.param == OSS) as front:
        yield request.param, front


def asker(folder: Path, store: tuple[str, Front], **variables: str) -> Ask:
    host, front = store
    root = Path(__file__).parents[2]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": f"{folder}:{root}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"https://{host}:{front.server_port}",
        "AWS_CA_BUNDLE": str(folder / "cert.pem"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    child = Child(sys.executable, environment | variables, secrets=(SECRET,))
    return lambda do, **words: ask(child, {"do": do, "url": URL, **words})


def written(folder: Path) -> dict[str, Any]:
    """The request that puts FILES, and a manifest last."""
    records = []
    for name, data in (FILES | {"manifest.json": b"{}"}).items():
        path = folder / "tier" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        records.append({"path": name, "size_bytes": len(data), "sha256": sha256})
    return {"folder": str(folder / "tier"), "files": records[:-1], "last": records[-1]}


def test_what_was_put_comes_back_and_is_dropped(tmp_path: Path, store: tuple[str, Front]) -> None:
    do = asker(tmp_path, store)
    assert do("try") == {}
    assert do("put", **written(tmp_path)) == {}
    answer = do("get", folder=str(tmp_path / "back"), paths=[*FILES, "manifest.json", "no"])
    assert answer == {"missing": ["no"]}
    assert all((tmp_path / "back" / name).read_bytes() == data for name, data in FILES.items())
    assert do("drop") == {}
    objects = tmp_path / "objects" / BUCKET
    assert [path for path in objects.rglob("*") if path.is_file()] == []


def test_a_line_that_breaks_leaves_no_result_and_the_next_copy_sends_only_what_lacks(
    tmp_path: Path, store: tuple[str, Front]
) -> None:
    front = store[1]
    do = asker(tmp_path, store, AWS_MAX_ATTEMPTS="1")
    wanted = written(tmp_path)
    wanted["files"].reverse()  # the large one last
    front.most_puts = 2
    with pytest.raises(TemporaryError):
        do("put", **wanted)
    assert not list((tmp_path / "objects").rglob("manifest.json"))
    front.most_puts, before = None, len(front.puts())
    assert do("put", **wanted) == {}
    assert {path.rpartition("/")[2] for path in front.puts()[before:]} == {
        "best.pt",
        "manifest.json",
    }


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported"}, "aws-chunked encoding is not"),
        ({"FSSPEC_S3": '{"config_kwargs": {"s3": {"addressing_style": "path"}}}'}, "Forbidden"),
        ({"AWS_SECRET_ACCESS_KEY": "another" * 6}, "Forbidden"),
        ({"AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt"}, "SSL"),
    ],
)
def test_what_such_a_store_refuses_is_told_in_its_words(
    tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    with served(tmp_path, OSS, is_strict=True) as front:
        with pytest.raises(TemporaryError, match=said) as raised:
            asker(tmp_path, (OSS, front), **variables)("try")
        assert SECRET not in str(raised.value)

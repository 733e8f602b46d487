"""Copies files to the second home of a run, an fsspec URL, and back.

A program for the training's interpreter, where fsspec is, and the package for the URL's kind:

    python -m boxcar.training.second_home < request.json

The request is one JSON object: `do` (put, get, drop or try), `url`, and what that needs. The last
line on stdout is the answer: {"done": {...}}, or {"problem": "a sentence"}; lines before it say
that bytes move. It imports nothing of Boxcar, because `audit` sends its text to a box that has no
release yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from urllib.parse import urlsplit

CHUNK_BYTES = 4 * 1024 * 1024
NICE = 19
SAY_EVERY_S = 1.0
# Alibaba OSS, Tencent COS, Volcengine TOS and Huawei OBS take a bucket in the host's name only.
# botocore puts it into the path for every endpoint but Amazon's.
_BUCKET_IN_HOST = (
    ".aliyuncs.com",
    ".myqcloud.com",
    ".volces.com",
    ".bytepluses.com",
    ".myhuaweicloud.com",
)


class ProblemError(Exception):
    """What keeps the copy from being right, in a sentence."""


class Home:
    """A folder at a URL. A store may have neither a rename nor an fsync, so what was written is
    read back before it is believed.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs, self._root = _open(url)
        self._is_local = "file" in _protocols(self._fs)
        self._parent, self._said_at = os.getppid(), time.monotonic()

    def put(self, source: Path, name: str, sha256: str, size_bytes: int) -> None:
        """One file, unless it is there already, byte by byte."""
        if self._sha256(name, size_bytes) == sha256:
            return
        with source.open("rb") as read, self._writing(name) as write:
            found = self._copy(read, write)
        if found != sha256:
            raise ProblemError(f"{source} does not match its manifest: it has SHA-256 {found}")
        self._settle(name)
        if self._sha256(name, size_bytes) != sha256:
            raise ProblemError(f"{self.url}/{name}: read back different bytes than were written")

    def get(self, name: str, target: Path) -> bool:
        """False where there is no such file."""
        try:
            with self._fs.open(self._at(name), "rb") as read:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as write:
                    self._copy(read, write)
        except FileNotFoundError:
            return False
        return True

    def drop_all_but(self, kept: list[str]) -> None:
        """`kept` are names in the folder. One by one: many at once is a request for which botocore
        1.36 and newer sends a CRC32 in the place of the Content-MD5 that other stores ask for.
        """
        for path in self._fs.find(self._root):
            name = path.removeprefix(f"{self._root}/").partition("/")[0]
            # A store may list the folder itself, as an empty object.
            if path.rstrip("/") != self._root and name not in kept:
                self._fs.rm_file(path)
        if not kept and self._fs.isdir(self._root):
            self._fs.rm(self._root, recursive=True)  # folders, which a store does not have

    def drop(self, name: str) -> None:
        # Not `rm`, which takes what it finds in a name for a pattern.
        self._fs.rm_file(self._at(name))

    def has(self, name: str) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(self._at(name)))

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _writing(self, name: str) -> Any:
        if self._is_local:
            Path(self._at(name)).parent.mkdir(parents=True, exist_ok=True)
        return self._fs.open(self._at(name), "wb")

    def _settle(self, name: str) -> None:
        """On a disk, not only in memory."""
        file = Path(self._at(name))
        for path in (file, file.parent) if self._is_local else ():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _sha256(self, name: str, size_bytes: int) -> str | None:
        """Of what is there; None where nothing is, or another number of bytes."""
        self._fs.invalidate_cache()
        try:
            if self._fs.info(self._at(name))["size"] != size_bytes:
                return None
            with self._fs.open(self._at(name), "rb") as read:
                return self._copy(read, None)
        except FileNotFoundError:
            return None

    def _copy(self, read: BinaryIO, write: BinaryIO | None) -> str:
        """The digest of all that was read."""
        found = hashlib.sha256()
        while chunk := read.read(CHUNK_BYTES):
            found.update(chunk)
            if write:
                write.write(chunk)
            if os.getppid() != self._parent:
                sys.exit(1)  # nobody waits for it any more
            if time.monotonic() - self._said_at > SAY_EVERY_S:
                self._said_at = time.monotonic()
                print("{}", flush=True)
        return found.hexdigest()


def put(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """Copy `files` of `folder`, and `last` after they were read back: what it names counts then.

    `is_alone`: whatever else is there is removed at the end, but for what is `kept`.
    """
    files, last = request["files"], request["last"]
    for file in files:
        home.put(_inside(request, file), file["path"], file["sha256"], file["size_bytes"])
    home.put(_inside(request, last), last["path"], last["sha256"], last["size_bytes"])
    if request.get("is_alone"):
        kept = [*(file["path"] for file in (*files, last)), *request.get("kept", ())]
        home.drop_all_but(kept)
    return {}


def get(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """Bring the files of these paths to `folder`; `missing` are those that are not there.

    `is_each`: one that is no file, or that may not be read, stands in `wrong` with the reason and
    hides no other.
    """
    missing: list[str] = []
    wrong: dict[str, str] = {}
    for path in request["paths"]:
        try:
            if not home.get(path, _inside(request, {"path": path})):
                missing.append(path)
        except (IsADirectoryError, NotADirectoryError, PermissionError) as error:
            wrong[path] = f"{type(error).__name__}: {error}"
            if not request.get("is_each") or len(wrong) == len(request["paths"]):
                raise  # nothing there can be read, which is a fault of the home
    return {"missing": missing} | ({"wrong": wrong} if wrong else {})


def drop(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """Remove all that is there but for the names that are `kept`."""
    with contextlib.suppress(FileNotFoundError):
        home.drop_all_but(request.get("kept", []))
    return {}


def attempt(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """Write one small file, read it back, and remove it."""
    name, data = f".boxcar-audit-{uuid.uuid4().hex}", os.urandom(1000)
    with tempfile.NamedTemporaryFile() as source:
        source.write(data)
        source.flush()
        home.put(Path(source.name), name, hashlib.sha256(data).hexdigest(), len(data))
    home.drop(name)
    if home.has(name):
        raise ProblemError(f"{home.url}/{name}: is still there after its removal")
    return {}


DOES = {"put": put, "get": get, "drop": drop, "try": attempt}


def main() -> int:
    request = json.load(sys.stdin)
    os.nice(NICE)
    answer: dict[str, Any]
    try:
        answer = {"done": DOES[request["do"]](Home(request["url"]), request)}
    except ProblemError as problem:
        answer = {"problem": str(problem)}
    except Exception as error:  # whatever a store's package may raise
        answer = {"problem": f"{request['url']}: {type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    return 0 if "done" in answer else 1


def _inside(request: dict[str, Any], file: dict[str, Any]) -> Path:
    return Path(request["folder"], file["path"])


def store_options(url: str) -> dict[str, Any]:
    """What fsspec has to be told of the store at this URL, where a person has not (FSSPEC_S3).

    Example: with AWS_ENDPOINT_URL=https://s3.oss-cn-hangzhou.aliyuncs.com it is
    {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}.
    """
    from fsspec.config import conf

    if not url.startswith(("s3://", "s3a://")) or "config_kwargs" in conf.get("s3", {}):
        return {}
    variables = (os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = next(filter(None, (conf.get("s3", {}).get("endpoint_url"), *variables)), "")
    if not (urlsplit(endpoint).hostname or "").endswith(_BUCKET_IN_HOST):
        return {}
    return {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}


def _open(url: str) -> tuple[Any, str]:
    try:
        import fsspec

        fs, root = fsspec.core.url_to_fs(
            url, skip_instance_cache=True, use_listings_cache=False, **store_options(url)
        )
    except ImportError as error:
        _refuse_without(error)
    except ValueError as error:
        # fsspec knows this kind from its package alone.
        needs = "; its package is adlfs" if url.startswith("abfss:") else ""
        raise ProblemError(f"{url}: {error}{needs}") from error
    return fs, str(root).rstrip("/")


def _refuse_without(error: ImportError) -> NoReturn:
    """fsspec's own words for it hide the package in the cause."""
    package = getattr(error.__cause__, "name", None) or error.name or str(error)
    raise ProblemError(
        f"the package {package} is not installed for {sys.executable}; type on that machine: "
        f"{sys.executable} -m pip install {package}"
    ) from error


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


if __name__ == "__main__":
    sys.exit(main())

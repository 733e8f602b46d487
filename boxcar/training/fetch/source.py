"""One file at its source: is it there, what is known of it, and its bytes.

The web is read by the standard library, all other sources through fsspec.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError

from boxcar.shared import web_file
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.safe_url import identity_of_url, shown
from boxcar.training.second_home import store_options

PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("webdav", "webdavs"), "webdav4[fsspec]"),
    **dict.fromkeys(("hdfs", "arrow_hdfs"), "pyarrow"),
    "hf": "huggingface_hub",
    "oss": "ossfs",
    "smb": "smbprotocol",
}
_VERSIONS = (
    *("ETag", "etag", "generation", "version_id", "VersionId", "md5Hash", "md5"),
    *("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "created"),
)
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
_NOT_THERE, _REFUSED = (404, 410), (401, 403)


class RefusedError(InputError):
    """The source is there or not, but we may not look."""


@dataclass(frozen=True)
class Source:
    """A file that is there. `version` changes when its content does; "" where nothing tells. `fs`
    reads `path`; of the web `fs` is the file itself.
    """

    url: str
    fs: Any
    path: str
    size_bytes: int | None
    version: str
    checksum: tuple[str, str] | None
    has_ranges: bool
    token: str = field(default="", repr=False)

    @property
    def identity(self) -> str:
        """A digest of the place, the size and the version."""
        return digest.of_json([identity_of_url(self.url), self.size_bytes, self.version])


def look_at_source(url: str, token: str = "") -> Source | None:
    """The file at `url`, or None where its source says that there is none. `token`: for the web.

    Raises RefusedError, InputError for a URL that nothing here can read, TemporaryError.
    """
    if _is_http(url):
        return _look_on_web(url, token)
    fs, path = _file_system(url)
    try:
        fs.invalidate_cache()
        info = fs.info(path)
    except Exception as error:
        if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
            return None
        raise _judged(error, url) from error
    if info.get("type") == "directory":
        return None
    size = info.get("size")
    has_ranges = size is not None and "::" not in url
    return Source(url, fs, path, size, version(info), checksum(_protocol(url), info), has_ranges)


def _look_on_web(url: str, token: str) -> Source | None:
    try:
        file = web_file.look_at_web_file(url, token)
    except web_file.PageError as error:
        raise RefusedError(f"{shown(url)}: {error}") from error
    except web_file.ERRORS as error:
        code = error.code if isinstance(error, HTTPError) else 0
        if code in _NOT_THERE:
            return None
        said = shown(web_file.why(error))
        if code in _REFUSED:
            raise RefusedError(f"{shown(url)}: refused ({said})") from error
        raise TemporaryError(f"{shown(url)}: cannot be reached: {said}") from error
    stated = checksum("http", {"Content-MD5": file.md5} if file.md5 else {})
    return Source(url, file, url, file.size_bytes, file.version, stated, file.has_ranges, token)


def read_range(source: Source, start: int, end: int) -> bytes:
    """Bytes `start` to `end` (not included). Raises whatever the file system raises, or OSError."""
    if isinstance(source.fs, web_file.WebFile):
        data = web_file.read_range(source.fs, start, end)
    else:
        data = source.fs.cat_file(source.path, start=start, end=end)
    if len(data) != end - start:
        raise OSError(f"{len(data)} bytes came of {end - start} asked for at {start}")
    return bytes(data)


def stream(source: Source) -> Iterator[bytes]:
    """All bytes from the beginning, for a source without ranges."""
    if isinstance(source.fs, web_file.WebFile):
        yield from web_file.stream(source.fs)
        return
    with source.fs.open(source.path, "rb") as file:
        while block := file.read(digest.BLOCK_BYTES):
            yield block


def version(info: Mapping[str, Any]) -> str:
    """What tells this content from another of the same size, as the source spells it; pure."""
    return next((f"{key}={info[key]}" for key in _VERSIONS if info.get(key)), "")


def checksum(protocol: str, info: Mapping[str, Any]) -> tuple[str, str] | None:
    """Algorithm and hexadecimal digest that the source states for the whole file; pure."""
    lfs = info.get("lfs")
    if isinstance(lfs, Mapping) and lfs.get("sha256"):
        return "sha256", str(lfs["sha256"])
    for key in ("md5Hash", "Content-MD5"):  # Google, and a few web servers
        if info.get(key):
            return "md5", base64.b64decode(info[key]).hex()
    # Of several parts it is no MD5 and has a dash. What other servers call an ETag is anything.
    etag = _MD5.fullmatch(str(info.get("ETag", ""))) if protocol in ("s3", "s3a") else None
    return ("md5", etag[1]) if etag else None


def _judged(error: Exception, url: str) -> Exception:
    cause = error.__cause__ or error
    is_refused = isinstance(error, PermissionError)
    if is_refused or "Credential" in type(error).__name__:
        return RefusedError(f"{shown(url)}: refused; are its credentials in the environment?")
    said = shown(str(cause)) or type(cause).__name__
    return TemporaryError(f"{shown(url)}: cannot be reached: {said}")


def _file_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise InputError("fsspec is missing here: pip install fsspec") from None
    protocol = _protocol(url)
    try:
        fs, path = fsspec.url_to_fs(url, **store_options(url))
    except ImportError as error:
        packages = PACKAGES.get(protocol)
        line = f"pip install {packages}" if packages else shown(str(error))
        raise InputError(f"{protocol}:// needs a package that is missing here: {line}") from error
    except ValueError as error:
        raise InputError(f"{shown(url)}: fsspec cannot read it: {shown(str(error))}") from error
    except Exception as error:
        raise _judged(error, url) from error
    return fs, path


def _protocol(url: str) -> str:
    return url.partition("::")[0].partition("://")[0] if "://" in url else "file"


def _is_http(url: str) -> bool:
    return _protocol(url) in ("http", "https") and "::" not in url

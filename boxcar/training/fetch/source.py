"""One file at its source, through fsspec: is it there, what is known of it, and its bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training.second_home import store_options

# --- URLs as they may be shown and kept: without user, password and signature.


_USER = re.compile(r"(\w+://)[^\s/'\"]+@")
_QUERY = re.compile(r"(\w+://[^\s?'\"<>]+)\?[^\s'\"<>)]+")
# What a signed URL gets anew each time that it is signed.
_SIGNATURE = re.compile(
    r"(?i)x-(amz|goog|oss|cos|tos)-.*|aws ?access ?key ?id|google ?access ?id|oss ?access ?key ?id"
    r"|signature|expires|policy|key-pair-id|token|.*_token|authorization|s(ig|e|t|p|v|r|ks|ke|kt)"
)


def shown(text: str) -> str:
    """A URL, or an error's text with URLs in it, without what lets somebody in."""
    return _QUERY.sub(r"\1?...", _USER.sub(r"\1", text))


def identity_of_url(url: str) -> str:
    """A digest that is the same for the same place, whoever asks and whenever it was signed."""
    parts = urlsplit(_USER.sub(r"\1", url))
    query = [pair for pair in parse_qsl(parts.query) if not _SIGNATURE.fullmatch(pair[0])]
    return digest.of_json([parts.scheme, parts.netloc, parts.path, sorted(query)])


PACKAGES = {
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
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
    """A file that is there. `version` changes when its content does; "" where nothing tells."""

    url: str
    fs: Any
    path: str
    size_bytes: int | None
    version: str
    checksum: tuple[str, str] | None
    has_ranges: bool

    @property
    def identity(self) -> str:
        """A digest of the place, the size and the version."""
        return digest.of_json([identity_of_url(self.url), self.size_bytes, self.version])


def look(url: str) -> Source | None:
    """The file at `url`, or None where its source says that there is none.

    Raises RefusedError, InputError for a URL that nothing here can read, TemporaryError.
    """
    fs, path = _file_system(url)
    try:
        fs.invalidate_cache()
        info = fs.info(path)
        if info.get("type") == "directory":
            return None
        ranges = _has_ranges(fs, path, url, info)
    except Exception as error:
        if is_absent(error, is_http=_is_http(url)):
            return None
        raise _judged(error, url) from error
    size = info.get("size")
    return Source(url, fs, path, size, version(info), checksum(_protocol(url), info), ranges)


def read_range(source: Source, start: int, end: int) -> bytes:
    """Bytes `start` to `end` (not included). Raises whatever the file system raises, or OSError."""
    if _is_http(source.url):
        # Its cat_file takes a whole file for a range where the server does not know ranges.
        with source.fs.open(
            source.path, "rb", size=source.size_bytes, block_size=end - start, cache_type="none"
        ) as file:
            file.seek(start)
            data = file.read(end - start)
    else:
        data = source.fs.cat_file(source.path, start=start, end=end)
    if len(data) != end - start:
        raise OSError(f"{len(data)} bytes came of {end - start} asked for at {start}")
    return bytes(data)


def stream(source: Source) -> Iterator[bytes]:
    """All bytes from the beginning, for a source without ranges."""
    more = {"block_size": 0} if _is_http(source.url) else {}
    with source.fs.open(source.path, "rb", **more) as file:
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


def is_absent(error: BaseException, *, is_http: bool) -> bool:
    """Whether an error says that there is no such file; pure."""
    if isinstance(error, FileNotFoundError) and is_http:
        # fsspec's http says so of every failure, a server that is down too.
        return getattr(error.__cause__, "status", None) in _NOT_THERE
    return isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError))


def _judged(error: Exception, url: str) -> Exception:
    cause = error.__cause__ or error
    is_refused = isinstance(error, PermissionError) or getattr(cause, "status", 0) in _REFUSED
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
        options = _web_options() if _is_http(url) else store_options(url)
        fs, path = fsspec.url_to_fs(url, **options)
    except ImportError as error:
        packages = PACKAGES.get(protocol)
        line = f"pip install {packages}" if packages else shown(str(error))
        raise InputError(f"{protocol}:// needs a package that is missing here: {line}") from error
    except ValueError as error:
        raise InputError(f"{shown(url)}: fsspec cannot read it: {shown(str(error))}") from error
    except Exception as error:
        raise _judged(error, url) from error
    return fs, path


def _web_options() -> dict[str, Any]:
    import aiohttp

    # By itself it ends whatever takes five minutes, and waits for ever for a byte.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
    # A server that compresses would make the sizes and ranges those of another file.
    return {"client_kwargs": {"timeout": timeout}, "headers": {"Accept-Encoding": "identity"}}


def _protocol(url: str) -> str:
    return url.partition("::")[0].partition("://")[0] if "://" in url else "file"


def _is_http(url: str) -> bool:
    return _protocol(url) in ("http", "https") and "::" not in url


def _has_ranges(fs: Any, path: str, url: str, info: Mapping[str, Any]) -> bool:
    """Whether parts can be read: asked for one byte, a web server shows it."""
    size_bytes = info.get("size")
    if size_bytes is None or "::" in url:
        return False
    if not _is_http(url) or size_bytes < 2:
        return True
    if info.get("partial") is False:
        return False
    try:
        with fs.open(path, "rb", size=size_bytes, block_size=1, cache_type="none") as file:
            file.seek(size_bytes - 1)
            return len(file.read(1)) == 1
    except ValueError:
        return False

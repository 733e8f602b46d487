"""`data:` of job.yaml as it is written: folders of this machine, and URLs that each box fetches."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.job_values import EnvName
from boxcar.shared import safe_url
from boxcar.shared.sentence import _

EXAMPLE = "data: {cifar: ./data/cifar}"
EXAMPLE_OF_URL = "data: {pde: {url: https://example.org/pde.h5}}"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


def _url(text: str) -> str:
    if not text.isprintable() or " " in text or "::" in text:
        raise ValueError(_("{text!r} is no URL of one file", text=text))
    parts = urlsplit(text)
    if not _SCHEME.fullmatch(parts.scheme) or not parts.netloc or parts.scheme == "file":
        raise ValueError(
            _(
                "{text!r}: expected a URL, such as {example}; a folder of this machine is written "
                "without url: {folder}",
                text=text,
                example=EXAMPLE_OF_URL,
                folder=EXAMPLE,
            )
        )
    if what := safe_url.lets_in(text):
        raise ValueError(
            _(
                "{url} holds {what}, which everybody on the box could read. Write the URL without "
                "it, and token: with a name from secrets",
                url=safe_url.shown(text),
                what=what,
            )
        )
    return text


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text.lower()):
        raise ValueError(_("{text!r} is no sha256: expected 64 digits 0-9a-f", text=text))
    return text.lower()


class DataOfJob(Model):
    """A folder of this machine, or a file that each box fetches itself. `unpack`: an archive, of
    which the content is meant.
    """

    folder: str = ""
    url: Annotated[str, AfterValidator(_url)] = ""
    sha256: Annotated[str, AfterValidator(_sha256)] | None = None
    unpack: bool = False
    token: EnvName | None = None


def _data(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError(_("expected a name for each folder, such as {example}", example=EXAMPLE))
    for name, folder in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                _(
                    "{name} cannot be a name below {{data}}: expected letters, digits, . _ "
                    "and -, such as {example}",
                    name=repr(name),
                    example=EXAMPLE,
                )
            )
        if isinstance(folder, dict) and ("url" in folder) != bool(folder.get("folder")):
            continue
        if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
            raise ValueError(
                _(
                    "{name}: expected a folder of this machine, such as {example}, or a URL, such "
                    "as {url}",
                    name=name,
                    example=EXAMPLE,
                    url=EXAMPLE_OF_URL,
                )
            )
        if "://" in folder:
            raise ValueError(
                _(
                    "{name}: a URL is written as {example}",
                    name=name,
                    example=EXAMPLE_OF_URL,
                )
            )
    return value


def _as_folder(value: object) -> object:
    return {"folder": value} if isinstance(value, str) else value


Data = Annotated[
    dict[str, Annotated[DataOfJob, BeforeValidator(_as_folder)]], BeforeValidator(_data)
]

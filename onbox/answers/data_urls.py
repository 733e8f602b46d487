"""Whether this box reaches the URLs of the job's data, and how large they are. They are asked by
the code that will fetch them, and by the route that a cell has. Nothing is fetched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.shared import web_file
from boxcar.shared.disk.mounts import disk_room
from boxcar.shared.files import fetched_data
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.wire import data_asks
from boxcar.shared.wire.data_asks import UrlSeen
from boxcar.shared.wire.question import RunOnBox
from onbox.answers.data_folders import there
from onbox.machine import interpreter

TIMEOUT_S = 60.0
_LOOK = """\
import json, sys
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, sys.argv[1])
from boxcar.shared import web_file

def size_of(url):
    try:
        return {"size_bytes": web_file.look_at_web_file(url, timeout_s=20).size_bytes}
    except web_file.ERRORS as error:
        return {"problem": web_file.why(error)}

with ThreadPoolExecutor(8) as pool:
    print(json.dumps({"urls": list(pool.map(size_of, sys.argv[2:]))}))
"""


def answer(question: data_asks.LookAtUrls, run: RunOnBox) -> data_asks.UrlsSeen:
    store = run.data_store(is_on_tier=question.on_tier)
    here = {one.name for one in question.urls if fetched_data.find_data(store, one)}
    asked = [one for one in question.urls if one.name not in here and _may_be_asked(one)]
    told = dict(zip([one.name for one in asked], _look(question, asked), strict=True))
    seen = tuple(_seen(one, told.get(one.name, {}), here) for one in question.urls)
    return data_asks.UrlsSeen(seen, disk_room(there(store.root)).free_bytes)


def _may_be_asked(one: DataUrl) -> bool:
    return one.url.startswith(("http://", "https://")) and one.token is None


def _look(question: data_asks.LookAtUrls, asked: Sequence[DataUrl]) -> list[Mapping[str, Any]]:
    if not asked:
        return []
    words = [str(Path(web_file.__file__).parents[2]), *(one.url for one in asked)]
    environ = {**os.environ, **question.env}
    found = interpreter.ask(sys.executable, question.hook, _LOOK, TIMEOUT_S, words, environ=environ)
    if "problem" in found:
        return [{"problem": found["problem"]}] * len(asked)
    rows: list[Mapping[str, Any]] = found["urls"]
    return rows


def _seen(one: DataUrl, told: Mapping[str, Any], here: set[str]) -> UrlSeen:
    return UrlSeen(one.name, told.get("size_bytes"), told.get("problem"), one.name in here)

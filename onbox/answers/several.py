"""Several questions in one: each is answered as if it had come alone, up to one that goes wrong."""

from __future__ import annotations

import json
from typing import Any

from boxcar.shared.files import codec
from boxcar.shared.wire.box_asks import Answers, Several
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import door


def answer(question: Several, run: RunOnBox) -> Answers:
    answered: list[dict[str, Any]] = []
    for part in question.parts:
        answered.append(door.answer(json.dumps(part | codec.encode(run)).encode()))
        if "error" in answered[-1]:
            break
    return Answers(tuple(answered))

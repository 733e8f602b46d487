"""Boxes that a test makes up answer several questions as if each had come alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boxcar.shared.errors import BoxcarError, TemporaryError, message_of
from boxcar.shared.files import codec
from boxcar.shared.wire import envelope
from boxcar.shared.wire.all_questions import QUESTIONS
from boxcar.shared.wire.box_asks import Answers, Several


def apart(ask: Callable[..., Any]) -> Callable[..., Any]:
    """`ask` takes a box and one question, behind whatever else it takes."""

    def asked(*words: Any, **more: Any) -> Any:
        *before, question = words
        if not isinstance(question, Several):
            return ask(*words, **more)
        answers: list[dict[str, Any]] = []
        for part in question.parts:
            one = codec.decode(QUESTIONS[part["ask"]], part, part["ask"])
            try:
                answers.append(codec.encode(ask(*before, one, **more)))
            except TemporaryError:
                raise  # a link that was cut answers nothing
            except BoxcarError as error:
                answers.append(envelope.error(type(error), message_of(error)))
                break
        return Answers(tuple(answers))

    return asked

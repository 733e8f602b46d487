"""How a question and its answer travel: one JSON document in, one marked line out.

A question is `{"ask": NAME, "wire": VERSION, ...}` with the fields of RunOnBox and its own; an
answer has its own fields and `wire`, or is `{"error": {...}}`. Fields that are not known are left
out. What has no `wire` is of version 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from boxcar.shared import errors, event_words
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    TemporaryError,
    message_of,
)
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, quotation
from boxcar.shared.wire.all_questions import QUESTIONS
from boxcar.shared.wire.box_asks import Answers, Several
from boxcar.shared.wire.question import A, Question, RunOnBox

MARK = b"BOXCAR-ANSWER "
# Another meaning of a field, or a new one that must be there, is another version.
VERSION = 1
_SEND_OURS = _(
    "Remove the agent's file there (onbox-*.pyz in boxcar/ of its data folder; for a box of this "
    "machine in .boxcar/onbox/), and type the same command again: it sends its own"
)
_UPDATE = _("Update Boxcar on this machine, and type the same command again")


@dataclass(frozen=True)
class Failure:
    """What went wrong on the box. `kind` is the class of shared.errors, which says what to do."""

    kind: str
    text: str
    command: Command | None = None


def write_question(question: Question[Any], run: RunOnBox) -> bytes:
    return json.dumps(_document(question) | codec.encode(run)).encode() + b"\n"


def _document(question: Question[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = codec.encode(question)
    return {"ask": question.NAME, "wire": VERSION} | fields


def read_question(data: bytes) -> tuple[Question[Any], RunOnBox]:
    """On the box. Raises InputError that names the question and the field."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        # `from None`, and not a word of it: it may hold secrets.
        raise InputError(_("the question is not a JSON document")) from None
    if not isinstance(document, dict):
        raise InputError(_("expected a question, found {name}", name=type(document).__name__))
    name, version = document.get("ask"), document.get("wire", 1)
    if not _is_ours(version):
        raise InputError(
            _(
                "the question {name!r} is of version {version!r} of the wire, and the agent here "
                "speaks version {ours}. {send_ours}",
                name=name,
                version=version,
                ours=VERSION,
                send_ours=_SEND_OURS,
            )
        )
    if not isinstance(name, str) or name not in QUESTIONS:
        known = ", ".join(QUESTIONS)
        raise InputError(
            _(
                "the agent here has no answer to {name!r}, only to {known}. {send_ours}",
                name=name,
                known=known,
                send_ours=_SEND_OURS,
            )
        )
    where = _("the question {name!r} is not as expected", name=name)
    try:
        run = codec.decode(RunOnBox, document, where)
        return codec.decode(QUESTIONS[name], document, where), run
    except DamagedError as error:
        raise InputError(message_of(error)) from None


def write_answer(answer: dict[str, Any]) -> bytes:
    """The marked line of an answer, or of an error, that was made a JSON object."""
    said = event_words.sentences_in(answer)
    told = {event_words.SENTENCES: said} if said else {}
    spelled = json.dumps(codec.finite({"wire": VERSION} | told | answer))
    return MARK + spelled.encode() + b"\n"


def error(kind: type[BoxcarError], message: Message) -> dict[str, Any]:
    failure = Failure(kind.__name__, message.text, message.command)
    return {"error": codec.encode(failure)}


def read_answer(question: Question[A], box: str, code: int, out: bytes, err: str) -> A:
    """On the laptop: the answer among whatever else `box` printed.

    Raises again what the box raised, DamagedError with the field for an answer that is not as
    expected, InputError for one of another version, TemporaryError where it did not answer.
    """
    return _read(question, box, _marked(box, code, out, err))


def _read(question: Question[A], box: str, document: dict[str, Any]) -> A:
    _check_version(question, box, document.pop("wire", 1))
    document = event_words.hear_in(document, document.pop(event_words.SENTENCES, None))
    if "error" in document:
        raise _raised(box, document["error"])
    where = _("{box}: its answer to {name!r} is not as expected", box=box, name=question.NAME)
    answer: A = codec.decode(question.ANSWER, document, where)
    try:
        question.check(answer)
    except ValueError as problem:
        raise DamagedError(_("{head}: {text}", head=where, text=problem)) from None
    return answer


def several(questions: Sequence[Question[Any]]) -> Several:
    """All of them at once; `Replies` has the answers."""
    return Several(tuple(map(_document, questions)))


class Replies:
    """What a box answered to several questions that were asked at once."""

    def __init__(self, box: str, asked: Sequence[Question[Any]], answers: Answers) -> None:
        self._box, self._asked, self._answers = box, asked, answers.parts

    def to(self, question: Question[A]) -> A:
        """As if it had been asked alone. One that was not done raises what the one before it did,
        which went wrong.
        """
        at = next(at for at, one in enumerate(self._asked) if one is question)
        if at < len(self._answers):
            return _read(question, self._box, dict(self._answers[at]))
        if self._answers:
            self.to(self._asked[len(self._answers) - 1])
        raise DamagedError(
            _("{box}: gave no answer to {question!r}", box=self._box, question=question.NAME)
        )


def _marked(box: str, code: int, out: bytes, err: str) -> dict[str, Any]:
    lines = [line for line in out.split(b"\n") if line.startswith(MARK)]
    try:
        document = json.loads(lines[-1][len(MARK) :])
    except (IndexError, ValueError, RecursionError):
        words = err.strip()[-1500:]
        told = quotation(words) if words else _("it printed nothing")
        raise TemporaryError(
            _("{box}: did not answer (code {code}): {told}", box=box, code=code, told=told)
        ) from None
    if not isinstance(document, dict):
        raise TemporaryError(
            _("{box}: expected an answer, found {name}", box=box, name=type(document).__name__)
        )
    return document


def _check_version(question: Question[Any], box: str, version: object) -> None:
    if _is_ours(version):
        return
    is_newer = type(version) is int and version > VERSION
    about = {"box": box, "name": question.NAME, "version": version, "ours": VERSION}
    if is_newer:
        raise InputError(
            _(
                "{box}: its answer to {name!r} is of version {version!r} of the wire, from a newer "
                "Boxcar than this one, which speaks version {ours}. {what_now}",
                what_now=_UPDATE,
                **about,
            )
        )
    raise InputError(
        _(
            "{box}: its answer to {name!r} is of version {version!r} of the wire, from another "
            "Boxcar than this one, which speaks version {ours}. {what_now}",
            what_now=_SEND_OURS,
            **about,
        )
    )


def _is_ours(version: object) -> bool:
    return type(version) is int and version == VERSION


def _raised(box: str, told: object) -> BoxcarError:
    """Also an error that is not as expected is one, and its text counts."""
    try:
        failure = codec.decode(Failure, told, "error")
    except DamagedError:
        text = told.get("text") if isinstance(told, dict) else told
        failure = Failure(BoxcarError.__name__, str(text))
    known = getattr(errors, failure.kind, BoxcarError)
    is_ours = isinstance(known, type) and issubclass(known, BoxcarError)
    message = Message(failure.text, failure.command).under(box)
    return known(message) if is_ours else BoxcarError(message)

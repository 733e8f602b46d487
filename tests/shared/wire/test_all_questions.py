"""Every question and every answer as it travels, and what is told of a wrong one."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import HOUSES, ROOT, sources

from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.control import Control
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.slurm.submitted import Task
from boxcar.shared.wire import (
    box_asks,
    cluster_asks,
    data_asks,
    envelope,
    facts,
    news_asks,
    run_asks,
)
from boxcar.shared.wire.all_questions import QUESTIONS
from boxcar.shared.wire.facts import Facts, Folder, Folders, Gpu, HasRun, TrainingPython
from boxcar.shared.wire.question import Question, RunOnBox
from onbox.answers import door

RUN = RunOnBox("tiny", "/tier", "~/data")
SHA, AT = "0a" * 32, "2026-11-22T01:00:00.000Z"
LENT = Accepted("tiny", "a", SHA, AT, (), "0.1.0", is_lent=True)
UNFINISHED = f".{SHA}.0123abcd.part"
FOLDER = Folder("/data", True, True, 10, 5, 10, 5, 1, "/", "ext4", None)

EXAMPLES: list[tuple[Question[Any], Any]] = [
    (
        run_asks.Report(("q1",), True, {"queues/q1.txt": (3, SHA)}),
        run_asks.Reported(
            AT,
            "0a0a",
            True,
            {"q1": True, "q2": None},
            ("a",),
            {"a": AT},
            (run_asks.FilePart("queues/q1.txt", 1, b"\0\xff", 3, SHA),),
            ("control/q1.json",),
            False,
            {"durable_free_bytes": 7},
            written=("a",),
            mark=SHA,
        ),
    ),
    (
        run_asks.CopyUnchanged(SHA, UNFINISHED, (FileRecord("code/a.py", 3, SHA),)),
        run_asks.CopiedThere(("code/a.py",)),
    ),
    (run_asks.Wait(("q1",), SHA, 25), run_asks.Waited(True)),
    (run_asks.ReadLog(9, 0, 100, "a", wait_s=20), run_asks.LogSlice(True, b"", 9, 9, True)),
    (
        box_asks.EndItself(("q1",), "~/c", ("next",), "vast", "destroy", "28000023"),
        box_asks.EndsItself((), begun_at=AT, said="vast v0: 200"),
    ),
    (
        box_asks.EndItself((), "~/c", (), "runpod", "stop", "a1", is_look=True),
        box_asks.EndsItself((box_asks.AtWork(queue="q1"),), problem="no key"),
    ),
    (box_asks.KeepDeadline("vast", 21600, 604800), box_asks.DeadlineKept()),
    (box_asks.KeepDeadline("runpod", 60, 120), box_asks.DeadlineKept("no key")),
    (
        box_asks.TrySecondHome("s3://b", "python3", "", "print()", {"a": "b"}, {"a": "c"}),
        box_asks.SecondHomeTried("s3fs is missing"),
    ),
    (box_asks.TrySecondHome("s3://b", "python3", ":", "", {}, {}), box_asks.SecondHomeTried()),
    (
        cluster_asks.SlurmLook(),
        cluster_asks.SlurmLooked("2026-11-22T10:00:00.000Z", (), "it is silent"),
    ),
    (
        cluster_asks.SlurmLook(),
        cluster_asks.SlurmLooked(
            "2026-11-22T10:00:00.000Z",
            (Task("7_0", "q1", "PENDING", "Priority", "2026-11-22T11:00:00.000Z", "", SHA),),
        ),
    ),
    (
        cluster_asks.SlurmSubmit(
            SHA, "run_slurm_2.sh", {"0": "q1"}, (cluster_asks.Begin("q1", 3, "a"),)
        ),
        cluster_asks.SlurmSubmitted("7", ("q1",), ()),
    ),
    (
        cluster_asks.SlurmSubmit(SHA, "run_slurm.sh", {"12": "q1"}, ()),
        cluster_asks.SlurmSubmitted(None, (), ("q1",)),
    ),
    (
        cluster_asks.SlurmAudit("~/c.json", {"run_slurm.sh": ("--time=60",)}),
        cluster_asks.SlurmFacts(
            "22.05.8", 1001, {"gpu": {"State": "UP"}}, ("gpu",), {}, None, "full"
        ),
    ),
    (
        cluster_asks.SlurmTry(("--partition=gpu",), "python3", "module load cuda"),
        cluster_asks.SlurmTried(("n1", "n2"), "3.12", 2, 1, True, "works", None),
    ),
    (cluster_asks.SlurmCancel(), cluster_asks.SlurmCancelled(("7_0", "7_1"))),
    (cluster_asks.SlurmCancel(("queue_1",)), cluster_asks.SlurmCancelled(())),
    (
        envelope.several((run_asks.FindRelease(SHA), news_asks.Deliver("q1", SHA, "/c.json"))),
        box_asks.Answers(({"is_there": True, "problems": []}, {"error": {"kind": "InputError"}})),
    ),
    (run_asks.FindRelease(SHA), run_asks.FoundRelease(True, ("a.py is missing",))),
    (
        run_asks.Prepare(SHA, (1, 2), False),
        run_asks.Prepared(UNFINISHED, (f"../{SHA}", "/data/boxcar")),
    ),
    (run_asks.Prepare(SHA, (), True), run_asks.Prepared(None)),
    (run_asks.Install(SHA, UNFINISHED), run_asks.Installed(True)),
    (run_asks.PointTo(SHA), run_asks.Pointed()),
    (run_asks.Append("q1", (3, SHA), b"\xffx\n"), run_asks.Appended(4, SHA)),
    (run_asks.Append("q1", None, b""), run_asks.Appended(0, SHA)),
    (run_asks.CommentOut("q1", (3, SHA), b"# \xffx\n"), run_asks.Appended(5, SHA)),
    (run_asks.WriteControl("q1", Control("stop", AT, {"by": "me"})), run_asks.ControlWritten()),
    (box_asks.KeepCredentials("~/c.json", {"env": {"A": "b"}}), box_asks.CredentialsKept(("A",))),
    (run_asks.Start("q1", SHA, 0, ("tmux", "setsid")), run_asks.Started("tmux", 7)),
    (run_asks.Start("q1", SHA, 3, ()), run_asks.Started("running", None)),
    (run_asks.Start("q1", SHA, 0, (), sets_up_again=True), run_asks.Started("setsid", 7)),
    (
        run_asks.MoveClaim(Claim("a", "q2", "box-b", AT, moved_from="q1"), "q1", False),
        run_asks.ClaimMoved(True),
    ),
    (
        run_asks.TakeCheckpoint(
            "q1", "a", Resume("a", 1, AT, "latest.pth", FileRecord("1-2-l", 3, SHA))
        ),
        run_asks.CheckpointTaken(is_taken=False, is_lacking=True),
    ),
    (
        run_asks.ReadLog(None, 2, 100, cell="größer+2"),
        run_asks.LogSlice(True, b"\xff\n", 9, 9, False),
    ),
    (run_asks.ReadLog(7, 0, 100, queue="q1"), run_asks.LogSlice(False, b"", 0, 0, True)),
    (
        run_asks.ReadLog(None, 50, 100, cell="a", credentials="~/c.json"),
        run_asks.LogSlice(True, b"", 0, 0, True, is_clean=True),
    ),
    (news_asks.Deliver("q1", SHA, "/c.json"), news_asks.Delivered(2)),
    (
        news_asks.PostNews((news_asks.Address("bark", "https://x/y", "", ""),), "a", ""),
        news_asks.NewsPosted((news_asks.Posted("later", "Timeout"),)),
    ),
    (
        news_asks.PostNews(
            (news_asks.Address("ntfy", "https://x/y", "s", "t"),),
            "b",
            "true",
            news_asks.OneEvent("e", AT, "t", {"a": "b"}),
        ),
        news_asks.NewsPosted((news_asks.Posted("taken", "answered 200", 200, -3600),)),
    ),
    (
        run_asks.Repair({"journal/q1.jsonl": (b"{}\n",)}, True),
        run_asks.Repaired(
            (run_asks.Damage("claims/a.json", "is missing", "the journal", "x", True),)
        ),
    ),
    (
        run_asks.Accept(Accepted("tiny", "a", SHA, AT, ("model.pkl",), "0.1.0")),
        run_asks.AcceptanceKept(is_new=True),
    ),
    (run_asks.KnowResults("q1", ("a", "größer")), run_asks.ResultsKnown(("a",), (), ("größer",))),
    (
        run_asks.TakeResults(
            "q1",
            (
                run_asks.LentResult(LENT, Claim("a", "q1", "box-a", AT), b"{}\n", b"\xff", True),
                run_asks.LentResult(LENT, Claim("a", "q1", "box-a", AT), b"", None, False),
            ),
        ),
        run_asks.ResultsTaken({"a": "w.pth is missing"}),
    ),
    (
        box_asks.SeeOthers({"/data": False}),
        box_asks.OthersSeen(
            (
                box_asks.OtherRun("next", ("q1",), ("x",), {"a": SHA, "q1": None}, ("0", "1")),
                box_asks.OtherRun("last", (), (), {}, takes_free_gpus=True),
            ),
            (box_asks.Stranger(4711, "python3", "bob", ("0",)), box_asks.Stranger(1, "sh", "0")),
        ),
    ),
    (
        box_asks.End(("q1",), "/c", ("last",)),
        box_asks.Ended((box_asks.AtWork("q1", run="next"), box_asks.AtWork(cell="x", run="next"))),
    ),
    (
        box_asks.End(("q1",), "/c"),
        box_asks.Ended((box_asks.AtWork("q1"), box_asks.AtWork(cell="a"))),
    ),
    (
        box_asks.Audit("/c.json", "python3", "module load x", (), {"a": "b"}, True),
        Facts(
            AT,
            "box-a",
            "0a0a",
            "root",
            8,
            (Gpu("A100", 1, 2, 3, 4), Gpu(problem="lost")),
            Folders(FOLDER, Folder("/fs", False, False, problem="gone"), FOLDER),
            TrainingPython("/python", "3.11", {"torch": None}, None, True, "12.8", None),
            {"tmux": "/usr/bin/tmux", "rsync": None},
            None,
            HasRun(False, True),
            cpu_quota_cores=0.5,
        ),
    ),
    (
        data_asks.FindData(True, is_thorough=True),
        data_asks.DataFound((data_asks.DataSeen(SHA, 10, 2, ("a is missing",), ("tiny",)),), 5),
    ),
    (
        data_asks.PrepareData(False, SHA, (1, 2)),
        data_asks.DataPrepared(f"/data/boxcar/.data/{SHA}.part/files"),
    ),
    (
        data_asks.InstallData(False, SHA, (FileRecord("a/b", 1, SHA),)),
        data_asks.DataInstalled(True),
    ),
    (data_asks.RemoveData(False, SHA), data_asks.DataRemoved(3)),
    (
        data_asks.LookAtUrls(
            False, (DataUrl("pde", "https://h/a.h5", None, True),), "source /etc/x", {"A": "1"}
        ),
        data_asks.UrlsSeen((data_asks.UrlSeen("pde", None, "HTTP 404", False),), 5),
    ),
    (box_asks.TierProbe("write", "ab" * 8, "box-a"), box_asks.TierProbed(sha256=SHA)),
    (
        box_asks.TierProbe("read", "ab" * 8, "box-a", ("box-a", "box-b")),
        box_asks.TierProbed(files={"box-a": SHA, "box-b": None}),
    ),
    (box_asks.TierProbe("claim", "ab" * 8, "box-a"), box_asks.TierProbed(has_won=False)),
    (box_asks.TierProbe("owner", "ab" * 8, "box-a"), box_asks.TierProbed(owner=None)),
    (box_asks.TierProbe("clean", "ab" * 8, "box-a"), box_asks.TierProbed(problem="/x: denied")),
]
IDS = [f"{question.NAME} {at}" for at, (question, _) in enumerate(EXAMPLES)]
every_example = pytest.mark.parametrize(("question", "answer"), EXAMPLES, ids=IDS)


def document_of(question: Question[Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(envelope.write_question(question, RUN))
    return found


def asked(document: Any) -> Question[Any]:
    return envelope.read_question(json.dumps(document).encode())[0]


def answered(question: Question[Any], document: dict[str, Any]) -> Any:
    return envelope.read_answer(question, "box-a", 0, envelope.write_answer(document), "")


# --- what is written is what is read


@every_example
def test_every_question_is_read_as_it_was_asked(question, answer):
    sent = envelope.write_question(question, RUN)
    assert envelope.read_question(sent) == (question, RUN)
    assert sent.count(b"\n") == 1
    assert json.loads(sent)["ask"] == question.NAME


@every_example
def test_every_answer_is_read_as_it_was_given(question, answer):
    assert type(answer) is question.ANSWER
    assert answered(question, codec.encode(answer)) == answer


@given(data=st.binary(), size=st.integers(0), text=st.text())
def test_whatever_bytes_and_texts_travel_arrive(data, size, text):
    append = run_asks.Append("q1", (size, SHA), data)
    assert asked(document_of(append)) == append
    piece = run_asks.FilePart(text, size, data, size, SHA)
    reported = dataclasses.replace(EXAMPLES[0][1], files=(piece,), gone=(text,), boot_id=text)
    assert answered(EXAMPLES[0][0], codec.encode(reported)) == reported
    audit = box_asks.Audit("/c", text, text)
    assert asked(document_of(audit)) == audit


# --- what is not as expected

MISSING = object()
# One of each type that JSON has.
WRONG = [MISSING, None, "x", -1, 1.5, True, [["x"]], {"a": {"b": 1}}]


def changed(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The name of a part, what is put in its place, and the same JSON with that."""
    if not isinstance(value, (dict, list)):
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        for wrong in WRONG:
            if part is not None and type(wrong) is not type(part):
                yield str(key), wrong, _with(value, key, wrong)
        for name, wrong, inside in changed(part):
            yield name, wrong, _with(value, key, inside)


def _with(value: Any, key: Any, part: Any) -> Any:
    copy = value.copy()
    if part is MISSING:
        del copy[key]
    else:
        copy[key] = part
    return copy


def _is_record(value: object) -> bool:
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def spoken(value: Any) -> Any:
    """Without what says nothing: a field that is null or empty need not be written."""
    if isinstance(value, dict):
        return {key: spoken(item) for key, item in value.items() if item not in (None, [], {})}
    return [spoken(item) for item in value] if isinstance(value, list) else value


ASKS = (box_asks, data_asks, cluster_asks, news_asks, run_asks)
RECORDS = [value for one in (*ASKS, facts) for value in vars(one).values() if _is_record(value)]
FIELDS = [field for record in RECORDS for field in dataclasses.fields(record)]
# Fields that may be null or left out, and the keys of the examples' maps, which have no names.
MAY_MISS = {field.name for field in FIELDS if "None" in str(field.type)} | {
    "bases",
    "packages",
    "requirements",
    "names",
    "is_newest",
    "is_clean",
    "is_look",
    "sets_up_again",
    "env",
    "has_pip",
    "is_limit",
    "begin_until",
    "is_lent",
    "waiting_of",
    "written",
    "wait_s",
    "unpack",
}
KEYS = {
    "journal/q1.jsonl",
    "a",
    "q1",
    "q2",
    "queues/q1.txt",
    "durable_free_bytes",
    "torch",
    "tmux",
    "rsync",
    "/data",
}
KEYS |= {"A", "box-a", "box-b", "wire", "run_slurm.sh", "gpu", "State"}
# What may be anything: fields of a control file that are not known, and the credentials.
ANYTHING = {("control", "by"), ("credentials", "env"), ("credentials", "A"), ("post_news", "a")}


def is_right(question: Question[Any], name: str, part: Any) -> bool:
    """Whether that is no fault there."""
    if question.NAME == "several" and name != "parts":
        return True  # a part is a question of its own, and is refused alone
    if (question.NAME, name) in ANYTHING or (name, part) == ("cpu_quota_cores", -1):
        return True
    if part is MISSING and name.isdigit():
        return True  # a shorter list
    return part in (MISSING, None) and name in MAY_MISS | KEYS


@every_example
def test_a_question_with_a_wrong_field_is_refused_by_its_name(question, answer):
    for name, part, document in changed(document_of(question)):
        if document.get("ask") != question.NAME:
            continue  # another question, see test_envelope
        try:
            found = asked(document)
        except InputError as error:
            assert name in str(error) or name.isdigit(), document
        else:
            assert is_right(question, name, part), document
            head = {"ask": question.NAME, "wire": 1} | codec.encode(RUN)
            assert spoken(head | codec.encode(found)) == spoken({"wire": 1} | document)


@every_example
def test_an_answer_with_a_wrong_field_is_told_with_the_box_the_question_and_the_field(
    question, answer
):
    where = f"box-a: its answer to {question.NAME!r} is not as expected: "
    for name, part, document in changed(codec.encode(answer)):
        try:
            found = answered(question, document)
        except DamagedError as error:
            assert str(error).startswith(where)
            assert name in str(error) or name.isdigit(), document
        else:
            assert is_right(question, name, part), document
            assert spoken(codec.encode(found)) == spoken(document)


@pytest.mark.parametrize(
    ("question", "document", "told"),
    [
        (EXAMPLES[0][0], {"files": [{"path": "x"}]}, "the field 'at' is missing"),
        (box_asks.End((), "/c"), {"alive": "no"}, "alive: expected a list, found str"),
        (box_asks.End((), "/c"), {}, "the field 'alive' is missing"),
        (
            box_asks.End((), "/c"),
            {"alive": [{}]},
            "alive[0]: expected a cell or a queue, and not both",
        ),
        (news_asks.Deliver("q1", SHA, "/c"), {"left": -1}, "left: expected 0 or more, found -1"),
        (
            run_asks.Start("q1", SHA, 0, ()),
            {"by": "luck", "pid": 1},
            "by: expected tmux or setsid or ",
        ),
        (
            run_asks.Prepare(SHA, (), False),
            {"kept": "../../x"},
            "kept: expected the name of this release",
        ),
        (
            run_asks.Prepare(SHA, (), False),
            {"kept": f".{'0b' * 32}.0123abcd.part"},
            "kept: expected the name of this release",
        ),
        (
            run_asks.Prepare(SHA, (), False),
            {"kept": None, "bases": ["../x y"]},
            "bases: expected releases and plain absolute paths",
        ),
        (box_asks.TierProbe("write", "ab" * 8, "b"), {}, "the field 'sha256' is missing"),
        (
            box_asks.TierProbe("claim", "ab" * 8, "b"),
            {"owner": "b"},
            "the field 'has_won' is missing",
        ),
        (box_asks.TierProbe("read", "ab" * 8, "b", ("b", "c")), {"files": {"b": None}}, "files: "),
    ],
)
def test_an_answer_that_is_none_is_one_clear_sentence(question, document, told):
    with pytest.raises(DamagedError) as caught:
        answered(question, document)
    where = f"box-a: its answer to {question.NAME!r} is not as expected: "
    assert str(caught.value).startswith(where + told)


def test_the_way_to_a_wrong_field_is_spelled():
    question, answer = EXAMPLES[0]
    document = codec.encode(answer)
    document["files"][0]["size_bytes"] = "3"
    with pytest.raises(DamagedError) as caught:
        answered(question, document)
    assert str(caught.value) == (
        "box-a: its answer to 'report' is not as expected: "
        "files[0].size_bytes: expected int, found str"
    )


@pytest.mark.parametrize(
    ("question", "words", "told"),
    [
        (
            run_asks.ReadLog(None, 1, 1, cell="a"),
            {"queue": "q"},
            "a cell or of a queue, and not both",
        ),
        (
            run_asks.ReadLog(None, 1, 1, cell="a"),
            {"cell": None},
            "a cell or of a queue, and not both",
        ),
        (
            run_asks.Start("q1", SHA, 0, ()),
            {"detach": ["nohup"]},
            "detach[0]: expected tmux or setsid",
        ),
        (run_asks.Start("q1", SHA, 0, ()), {"start_index": True}, "start_index: expected int"),
        (run_asks.Install(SHA, UNFINISHED), {"unfinished": "../x"}, "unfinished: '../x' is not "),
        (run_asks.Install(SHA, UNFINISHED), {"digest": "0b" * 32}, "unfinished: "),
        (run_asks.Append("q", None, b""), {"data": "A AH/"}, "data: expected base64"),
        (
            box_asks.TierProbe("clean", "ab" * 8, "b"),
            {"step": "remove"},
            "step: expected write or ",
        ),
        (
            box_asks.End((), "/c"),
            {"queues": ["q1", "../q2"]},
            "queues[1]: '../q2' cannot be a name",
        ),
        (box_asks.End((), "/c"), {"run": "../x"}, "run: '../x' cannot be a name"),
        (box_asks.End((), "/c"), {"durable_dir": "x"}, "durable_dir: expected an absolute path"),
    ],
)
def test_a_question_that_is_none_is_one_clear_sentence(question, words, told):
    with pytest.raises(InputError) as caught:
        asked(document_of(question) | words)
    assert str(caught.value).startswith(f"the question {question.NAME!r} is not as expected: ")
    assert told in str(caught.value)


def test_fields_that_nobody_knows_are_left_out():
    question, answer = news_asks.Deliver("q1", SHA, "/c"), news_asks.Delivered(2)
    assert asked(document_of(question) | {"newer": [1]}) == question
    assert answered(question, {"left": 2, "newer": [1]}) == answer


def test_no_secret_is_shown_by_what_holds_it():
    question = box_asks.KeepCredentials("/c", {"env": {"A": "s3cr3t"}})
    assert "s3cr3t" not in repr(question)
    for words in ({"record": "s3cr3t"}, {"record": ["s3cr3t"]}, {"path": ["s3cr3t"]}):
        with pytest.raises(InputError) as caught:
            asked(document_of(question) | words)
        assert "s3cr3t" not in str(caught.value)


# --- each is described, answered and spelled once


def test_every_question_has_an_answer_somebody_who_gives_it_and_an_example():
    questions = set(QUESTIONS.values())
    spelled = {
        one
        for one in Question.__subclasses__()
        if one.__module__ in {home.__name__ for home in ASKS}
    }
    assert spelled == questions == set(door.MODULES) == {type(one) for one, _ in EXAMPLES}
    assert len(QUESTIONS) == len(questions) == 39
    for question, answer in EXAMPLES:
        assert type(answer) is question.ANSWER
        for record in (question, answer):
            assert dataclasses.is_dataclass(record)
            with pytest.raises(dataclasses.FrozenInstanceError):
                record.anything = 1  # type: ignore[attr-defined]


def test_the_page_of_formats_has_every_question_with_its_fields_and_those_of_its_answer():
    text = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    section = text[text.index("## The wire") :].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|", section, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(QUESTIONS)
    for name, needs, told in rows:
        question = QUESTIONS[name]
        for column, record in ((needs, question), (told, question.ANSWER)):
            named = set(re.findall(r"`(\w+)`", column))
            fields = {field.name for field in dataclasses.fields(record)}
            assert fields == named, f"{name}: {record.__name__}"


def spelled_questions(source: str) -> list[int]:
    """The lines that spell a question by hand: asked for by its name, or as a JSON object."""
    if not re.search(rf"([\"'])({'|'.join(QUESTIONS)})\1", source):
        return []
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            words = [word.value for word in node.args if isinstance(word, ast.Constant)]
            if called == "ask" and set(words) & set(QUESTIONS):
                lines.append(node.lineno)
        elif isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            names = [one.value for one in node.values if isinstance(one, ast.Constant)]
            is_table = len(set(keys) & set(QUESTIONS)) > 4
            if is_table or ("ask" in keys and set(names) & set(QUESTIONS)):
                lines.append(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [one.value for one in (node.left, *node.comparators) if _is_text(one)]
            if set(sides) & set(QUESTIONS) and "NAME" in ast.dump(node):
                lines.append(node.lineno)
        elif _is_text(node) and node.value in UNMISTAKABLE:
            lines.append(node.lineno)
    return lines


# Of the names these are nothing else but questions; the others are English words.
UNMISTAKABLE = {"tier_probe"}


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_a_question_is_spelled_in_one_file():
    found = {path: spelled_questions(text) for path, text in sources(*HOUSES).items()}
    elsewhere = [path for path, lines in found.items() if lines and not path.endswith("_asks.py")]
    assert elsewhere == []


@pytest.mark.parametrize(
    "source",
    [
        "boxes.ask('box-a', 'report')",
        "ask(box, 'log', cell='a')",
        "x = {'ask': 'start', 'run': 'tiny'}",
        "if question.NAME == 'end': pass",
        "T = {'report': 1, 'log': 2, 'end': 3, 'start': 4, 'audit': 5}",
        "name = 'tier_probe'",
    ],
)
def test_a_second_spelling_is_found(source):
    assert spelled_questions(source) == [1]

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.laptop.project.queues.sync import (
    Ahead,
    Append,
    CommentedThere,
    CommentOut,
    Diverged,
    Same,
    anew,
    complete,
    decide,
    read_tier_queue,
    reconcile,
    to_comment_out,
)
from boxcar.shared.errors import InputError

A, B, C = b"configs/a.yaml t 1\n", b"configs/b.yaml t\n", b"# later\nconfigs/c.yaml t\n"
LINES = st.lists(st.text(alphabet="ab# \té\ufeff", max_size=4), max_size=4).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@pytest.mark.parametrize(
    ("local", "shared", "expected"),
    [
        pytest.param(A + B, None, Append(A + B), id="nothing is there yet"),
        pytest.param(b"", None, Append(b""), id="an empty queue is created too"),
        pytest.param(A + B, A + B, Same(), id="the same"),
        pytest.param(A + B + C, A, Append(B + C), id="new lines"),
        pytest.param(A, b"", Append(A), id="the shared file is empty"),
        pytest.param(A, A + B, Ahead((B.decode().strip(),)), id="appended on the tier"),
        pytest.param(A, A + b"conf", Ahead(("conf",)), id="being typed on the tier"),
        pytest.param(b"\xef\xbb\xbf" + A.replace(b"\n", b"\r\n"), A, Same(), id="BOM and CRLF"),
        pytest.param(A + B, A.replace(b"\n", b"\r\n"), Append(B), id="CRLF on the tier"),
        pytest.param(A + B.strip(), A, Append(B), id="no line feed at the end"),
        pytest.param(A + B, A + B.strip(), Append(b"\n"), id="no line feed on the tier"),
        pytest.param(A + B, A + B[:5], Append(B[5:]), id="torn by a crash"),
    ],
)
def test_reconcile(local: bytes, shared: bytes | None, expected: object) -> None:
    assert reconcile(local, shared) == expected


@pytest.mark.parametrize(
    ("local", "shared"),
    [
        pytest.param(A + B, A + C, id="both have new lines"),
        pytest.param(B + A, A + B, id="another order"),
        pytest.param(A.replace(b"1", b"2"), A, id="a line was edited"),
        pytest.param(A + B, b"# " + A + C, id="a # on the tier, and other lines"),
        pytest.param(b"# dropped " + A, A, id="more than a # was typed"),
        pytest.param(b"# " + A, A + b"confi", id="while somebody types on the tier"),
        pytest.param(A + A, A + A[:5] + b"x\n", id="torn, and then gone on with"),
    ],
)
def test_an_edited_line_is_divergence_with_a_diff(local: bytes, shared: bytes) -> None:
    change = reconcile(local, shared)
    assert isinstance(change, Diverged)
    assert {line[0] for line in change.diff[3:]} >= {"-", "+"}


@pytest.mark.parametrize(
    ("local", "shared", "after"),
    [
        pytest.param(b"# " + A + B, A + B, b"# " + A + B, id="one line"),
        pytest.param(b" #" + A + B, A + B, b" #" + A + B, id="as an editor does it"),
        pytest.param(b"#" + A + B + C, A + B, b"#" + A + B + C, id="with new lines"),
        pytest.param(b"#" + A, A + B, b"#" + A + B, id="with lines that only the tier has"),
        pytest.param(b"#" + A[:-1] + b"\r\n", A, b"#" + A, id="with CRLF"),
    ],
)
def test_a_line_that_is_commented_out_here_is_to_be_commented_out_there(
    local: bytes, shared: bytes, after: bytes
) -> None:
    assert reconcile(local, shared) == CommentOut(after, (A.decode().rstrip(),))
    there = reconcile(local, after)
    assert isinstance(there, Same | Ahead)


@pytest.mark.parametrize(
    ("local", "shared", "change"),
    [
        pytest.param(A, b"# " + A, Same(), id="that alone"),
        pytest.param(A + B, b"#" + A, Append(B), id="with new lines here"),
        pytest.param(A, b"#" + A + B, Ahead((B.decode().rstrip(),)), id="with new lines there"),
        pytest.param(
            A + b"#" + B,
            b"#" + A + B,
            CommentOut(b"#" + A + b"#" + B, (B.decode().rstrip(),)),
            id="with another # here",
        ),
    ],
)
def test_a_line_that_is_commented_out_on_the_tier_stays_so_and_refuses_nothing(
    local: bytes, shared: bytes, change: object
) -> None:
    assert reconcile(local, shared) == CommentedThere(((1, A.decode().rstrip()),), change)


def test_the_command_puts_the_same_comments_into_the_local_file(tmp_path: Path) -> None:
    local = tmp_path / "my q.txt"
    local.write_bytes(A + B + C)
    found = reconcile(local.read_bytes(), b"# " + A + b"# " + B + C)
    assert isinstance(found, CommentedThere)
    subprocess.run(["sh", "-c", to_comment_out(local, found.lines)], check=True)
    assert reconcile(local.read_bytes(), b"# " + A + b"# " + B + C) == Same()


@given(LINES, LINES, LINES)
def test_appending_twice_is_appending_at_once(first: bytes, second: bytes, third: bytes) -> None:
    shared = b""
    for local in (first, first + second, first + second + third):
        change = reconcile(local, shared)
        assert isinstance(change, Append | Same)
        shared += change.data if isinstance(change, Append) else b""
    at_once = reconcile(first + second + third, None)
    assert isinstance(at_once, Append)
    assert complete(shared) == at_once.data


@given(st.binary(max_size=30), st.none() | st.binary(max_size=30))
def test_what_was_appended_is_never_asked_for_again(local: bytes, shared: bytes | None) -> None:
    change = reconcile(local, shared)
    if isinstance(change, Append):
        assert complete((shared or b"") + change.data) == complete(local)
        assert not isinstance(reconcile(local, (shared or b"") + change.data), Append | Diverged)


def test_a_queue_is_created_then_appended_to_then_left(tmp_path: Path) -> None:
    local, shared = tmp_path / "q.txt", tmp_path / "tier" / "queues" / "q.txt"
    local.write_bytes(A.replace(b"\n", b"\r\n"))
    assert read_tier_queue(shared) is None
    assert decide(local, shared, read_tier_queue(shared)) == Append(A)
    shared.parent.mkdir(parents=True)
    shared.write_bytes(A)
    assert decide(local, shared, read_tier_queue(shared)) == Same()
    local.write_bytes(A + B.strip())
    assert decide(local, shared, read_tier_queue(shared)) == Append(B)


def test_queues_that_diverged_are_refused_with_the_way_out(tmp_path: Path) -> None:
    local, shared = tmp_path / "my q.txt", tmp_path / "shared.txt"
    local.write_bytes(A + B)
    shared.write_bytes(A + C)
    with pytest.raises(InputError) as caught:
        decide(local, shared, read_tier_queue(shared))
    message = str(caught.value)
    assert "-configs/c.yaml t\n" in message
    assert "+configs/b.yaml t\n" in message
    assert f"cp {shared} '{local}'" in message
    assert (local.read_bytes(), shared.read_bytes()) == (A + B, A + C)


def test_of_many_lines_that_differ_the_first_are_shown(tmp_path: Path) -> None:
    local, shared = tmp_path / "q.txt", tmp_path / "shared.txt"
    for path, cfg in ((local, "a"), (shared, "b")):
        path.write_text("".join(f"{cfg}{n} t\n" for n in range(1000)))
    with pytest.raises(InputError) as caught:
        decide(local, shared, read_tier_queue(shared))
    assert len(str(caught.value).splitlines()) == 24
    assert "and 1,983 more lines" in str(caught.value)


@pytest.mark.parametrize(
    ("known", "sent"),
    [
        (None, b"a t 1\nb t 1\n"),
        (b"a t 1\n", b"a t 1\nb t 1\n"),
        (b"a t 1\nb t 1\nc t 1", b"a t 1\nb t 1\nc t 1\n"),
    ],
)
def test_a_box_that_has_no_lines_gets_all_that_are_known(
    tmp_path: Path, known: bytes | None, sent: bytes
) -> None:
    local = tmp_path / "q1.txt"
    local.write_bytes(b"a t 1\nb t 1")
    assert anew(local, known) == Append(sent)

from __future__ import annotations

from pathlib import Path

from boxcar.laptop.project.queue_files import bad_lines, nearest_file, queue_lines, read_queue_file
from boxcar.shared.files import queue_line


def write(root: Path, name: str, data: bytes) -> Path:
    path = root / "queues" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


TO_DO = ". Write one with lines <cfg> <task> [epochs], or remove it here"


def test_a_queue_file_is_read_with_its_name_box_and_place(tmp_path: Path) -> None:
    path = write(tmp_path, "q1.txt", b"a.json t 3 lr=1\n")
    found = read_queue_file(tmp_path, "queues/q1.txt", "box-a")
    assert (found.name, found.queues, found.path) == ("q1", {"q1": "box-a"}, path)
    assert not found.unread and not found.is_pool
    [line] = found.queue.cells
    assert line.overrides == ("lr=1",) and found.at(line) == "queues/q1.txt:1"


def test_each_box_of_a_pool_is_a_queue_of_its_own_even_a_single_one(tmp_path: Path) -> None:
    write(tmp_path, "all.txt", b"a.json t\n")
    found = read_queue_file(tmp_path, "queues/all.txt", ("box-a", "box-b"))
    assert found.queues == {"all@box-a": "box-a", "all@box-b": "box-b"} and found.is_pool
    assert read_queue_file(tmp_path, "queues/all.txt", ("box-a",)).is_pool


def test_a_last_line_without_a_line_feed_counts_here(tmp_path: Path) -> None:
    write(tmp_path, "q1.txt", b"a.json t\nb.json t lr=1")
    found = read_queue_file(tmp_path, "queues/q1.txt", "box-a").queue
    assert [line.name for line in found.cells] == ["a", "b_lr1"]


def test_one_mistake_in_many_lines_is_told_once(tmp_path: Path) -> None:
    write(tmp_path, "q1.txt", b"a.json\nb.json t\nc.json\nd.json t 1e3\n")
    write(tmp_path, "q2.txt", b"".join(b"%d.json\n" % number for number in range(400)))
    queues = [read_queue_file(tmp_path, f"queues/q{n}.txt", "box") for n in (1, 2)]
    one, other, many = bad_lines(queues)
    assert one.startswith("queues/q1.txt:1: expected <cfg> <task>") and one.endswith("line 3")
    assert other.startswith("queues/q1.txt:4: epochs must be")
    assert many.startswith("queues/q2.txt:1: expected <cfg> <task>")
    assert many.endswith(". The same on 399 more lines, the last is line 400")


def test_a_file_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "q1.txt", b"")
    found = read_queue_file(tmp_path, "queues/q2.txt", "box-a")
    near = "(did you mean 'queues/q1.txt'?)"
    assert found.unread == f"the queue file does not exist {near}{TO_DO}"
    assert found.queue.lines == ()


def test_of_a_file_that_is_not_there_none_that_is_in_use_or_only_ends_alike_is_meant(
    tmp_path: Path,
) -> None:
    write(tmp_path, "q1.txt", b"")
    write(tmp_path, "seg_no_skip.txt", b"")
    in_use = ["queues/q1.txt", "queues/q2.txt"]
    found = read_queue_file(tmp_path, "queues/q2.txt", "box-a", in_use=in_use)
    assert found.unread == f"the queue file does not exist{TO_DO}"
    assert nearest_file(tmp_path, "queues/nope.txt") == ""
    assert nearest_file(tmp_path, "queues/seg_skip.txt") == (
        " (did you mean 'queues/seg_no_skip.txt'?)"
    )


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert nearest_file(tmp_path, "no/q1.txt") == f": no folder {tmp_path / 'no'}"


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "q1.txt").mkdir()
    assert "cannot be read: Is a directory" in read_queue_file(tmp_path, "q1.txt", "box-a").unread


def test_no_more_is_read_than_a_queue_may_have(tmp_path: Path) -> None:
    line = b"#" * 1023 + b"\n"
    write(tmp_path, "q1.txt", line * (queue_line.LARGEST_FILE_BYTES // len(line) + 9))
    [bad] = read_queue_file(tmp_path, "queues/q1.txt", "box-a").queue.bad
    assert "is larger than" in bad.reason


def test_the_lines_of_all_queues_come_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, "q1.txt", b"a.json t\n# b.json t\nbad\nc.json t\n")
    write(tmp_path, "q2.txt", b"d.json t\n")
    files = [read_queue_file(tmp_path, f"queues/{name}.txt", "box") for name in ("q1", "q2")]
    assert [(file.name, line.name) for file, line in queue_lines(files)] == [
        ("q1", "a"), ("q1", "c"), ("q2", "d"),
    ]  # fmt: skip

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_line, cell_name
from boxcar.shared.files import queue_line
from boxcar.shared.files.queue_line import (
    BadLine,
    CellLine,
    Queue,
    commented_out,
    normalise,
    parse_queue,
)

BOM = b"\xef\xbb\xbf"
GOOD = b"configs/recon_baseline.yaml reconstruction 20\n"


def only_line(line: str | bytes) -> CellLine | BadLine:
    """What one complete line says."""
    data = line.encode() if isinstance(line, str) else line
    [found] = parse_queue(data + b"\n").lines
    return found


def cell(line: str | bytes) -> CellLine:
    found = only_line(line)
    assert isinstance(found, CellLine), found
    return found


def reason(line: str | bytes) -> str:
    found = only_line(line)
    assert isinstance(found, BadLine), found
    return found.reason


# --- what a line says


def test_a_line_is_a_config_a_task_and_maybe_epochs():
    assert parse_queue(GOOD + b"configs/det_baseline.yaml detection\n").lines == (
        CellLine(
            index=0,
            number=1,
            name="recon_baseline",
            cfg="configs/recon_baseline.yaml",
            task="reconstruction",
            epochs=20,
        ),
        CellLine(1, 2, "det_baseline", "configs/det_baseline.yaml", "detection", None),
    )


@pytest.mark.parametrize("line", ["a.yaml  t\t 3", "\ta.yaml t 3  ", '"a.yaml" "t" "3"'])
def test_white_space_and_quotes_around_fields_do_not_count(line):
    found = cell(line)
    assert (found.cfg, found.task, found.epochs) == ("a.yaml", "t", 3)


@pytest.mark.parametrize(
    ("line", "cfg", "task"),
    [
        ("'my configs/a.yaml' \"two words\"", "my configs/a.yaml", "two words"),
        (r"my\ configs/a.yaml t", "my configs/a.yaml", "t"),
        ("$(touch x)/a.yaml `id`", None, None),
        ("'$(touch x)/a.yaml' '`id`;rm -rf ~'", "$(touch x)/a.yaml", "`id`;rm -rf ~"),
        ("~/a.yaml $HOME", "~/a.yaml", "$HOME"),
        ("*.d/a.yaml t|cat>x&", "*.d/a.yaml", "t|cat>x&"),
    ],
)
def test_quotes_are_read_and_nothing_is_expanded(line, cfg, task):
    found = only_line(line)
    if cfg is None:
        assert isinstance(found, BadLine)
    else:
        assert isinstance(found, CellLine)
        assert (found.cfg, found.task) == (cfg, task)


@pytest.mark.parametrize("line", ["a.yaml", '""'])
def test_another_number_of_fields_is_said(line):
    assert "expected <cfg> <task> [epochs], found" in reason(line)


@pytest.mark.parametrize("line", ["don't.yaml t", 'a.yaml "t', "a.yaml t\\"])
def test_an_open_quote_or_escape_is_a_bad_line(line):
    assert "quotation mark" in reason(line) or "ends with a \\" in reason(line)


@pytest.mark.parametrize("task", ['""', "''", "-x", "--resume=/etc/passwd"])
def test_a_task_that_is_nothing_or_looks_like_a_flag_is_refused(task):
    assert "task" in reason(f"a.yaml {task}")


# --- epochs


@pytest.mark.parametrize(("text", "epochs"), [("1", 1), ("020", 20), ("999999999", 999_999_999)])
def test_epochs_are_a_whole_number_of_at_least_one(text, epochs):
    assert cell(f"a.yaml t {text}").epochs == epochs


@pytest.mark.parametrize(
    "text",
    ["0", "00", "+1", "1.0", "1e3", "0x10", "1_000", "ten", "٣", "²", "''", "9" * 10, "9" * 4000],
)
def test_epochs_that_are_no_such_number_are_refused_with_what_was_found(text):
    assert reason(f"a.yaml t {text}") == (
        f"epochs must be a whole number, 1 or more; found {text.strip(chr(39))!r}"
    )


# --- names


@pytest.mark.parametrize(
    ("cfg", "name"),
    [
        ("recon_baseline.yaml", "recon_baseline"),
        ("configs/deep/er/recon.small.json", "recon.small"),
        ("./configs/no_suffix", "no_suffix"),
        ("configs/größe.yaml", "größe"),
        ("configs/实验_1.yaml", "实验_1"),
        ("configs/lr=1e-3,w+b@2.yaml", "lr=1e-3,w+b@2"),
        ("x" * 100 + ".yaml", "x" * 100),
        (f"configs/{unicodedata.normalize('NFD', 'größe')}.yaml", "größe"),
    ],
)
def test_a_cell_is_named_by_its_config(cfg, name):
    assert cell(f"{cfg} t").name == name


@pytest.mark.parametrize(
    ("text", "cfg"),
    [
        ("configs/a.yaml", "configs/a.yaml"),
        ("./configs/a.yaml", "configs/a.yaml"),
        ("configs//a.yaml", "configs/a.yaml"),
        (".//configs/././a.yaml", "configs/a.yaml"),
        ("configs/a.d/", "configs/a.d"),
        (f"configs/{unicodedata.normalize('NFD', 'größe')}.yaml", "configs/größe.yaml"),
    ],
)
def test_a_configs_path_has_one_spelling(text, cfg):
    assert cell(f"{text} t").cfg == cfg


def test_two_names_that_differ_only_in_their_form_are_one_config():
    composed, apart = (
        f"configs/{unicodedata.normalize(form, 'ü')}.yaml" for form in ("NFC", "NFD")
    )
    assert cell_name.stored_names([composed, "a.yaml", apart]) == {
        composed: [composed, apart],
        "a.yaml": ["a.yaml"],
    }


@pytest.mark.parametrize(
    "cfg",
    [
        "configs/.yaml",
        "configs/.hidden.yaml",
        "configs/_private.yaml",
        "configs/-flag.yaml",
        "configs/a..yaml",
        "'configs/a b.yaml'",
        "'configs/a;b.yaml'",
        "'configs/$(touch x).yaml'",
        "configs/a:b.yaml",
        "configs/a%2Fb.yaml",
        "configs/😀.yaml",
        "configs/a\u200bb.yaml",  # an invisible space
        "configs/a\u202eb.yaml",  # turns the reading direction
        "'configs/a\u2028b.yaml'",  # a line end to some readers
        "x" * 101 + ".yaml",
        "''",
        ".",
    ],
)
def test_a_name_that_makes_no_good_folder_is_refused(cfg):
    assert "use letters, digits" in reason(f"{cfg} t")


def test_a_name_leaves_room_for_the_endings_that_boxcar_gives_it():
    # 255 bytes is the longest name of a file: `.<name>.json.01234567.part` must fit in.
    assert "bytes" in reason("名" * 100 + ".yaml t")
    assert "bytes" in reason("名" * 67 + ".yaml t")
    longest = cell("名" * 66 + "ab.yaml t").name
    assert len(longest.encode()) == 200
    assert len(f".{longest}.json.01234567.part".encode()) <= 255


@pytest.mark.parametrize(
    "cfg", ["../a.yaml", "configs/../../a.yaml", "..", "a/..", "/etc/a.yaml", "//a.yaml"]
)
def test_a_config_outside_the_code_folder_is_refused(cfg):
    assert "inside the code folder" in reason(f"{cfg} t")


def test_a_config_that_looks_like_a_flag_is_refused():
    for cfg in ("-rf/a.yaml", "./-rf/a.yaml"):
        assert "read as a flag" in reason(f"{cfg} t")


@pytest.mark.parametrize(
    "other",
    [
        "configs/grösse.yaml",
        "elsewhere/grösse.json",
        "configs/GRÖSSE.yaml",
        "configs/Größe.yaml",
        f"configs/{unicodedata.normalize('NFD', 'grösse')}.yaml",
    ],
)
def test_two_cells_that_would_share_a_folder_somewhere_are_refused(other):
    queue = parse_queue(f"configs/grösse.yaml t\n# between\n{other} t\nb.yaml t\n".encode())
    assert [found.name for found in queue.cells] == ["grösse", "b"]
    [bad] = queue.bad
    assert (bad.index, bad.number) == (1, 3)
    name = unicodedata.normalize("NFC", other.rpartition("/")[2].partition(".")[0])
    if name == "grösse":
        assert "cell 'grösse' is already on line 1" in bad.reason
    else:
        assert f"cell '{name}' and 'grösse' on line 1 would share a folder on" in bad.reason


def test_a_bad_line_does_not_use_up_its_name():
    queue = parse_queue(b"a.yaml t 0\na.yaml t 1\n")
    assert [type(line) for line in queue.lines] == [BadLine, CellLine]


# --- lines, comments, indices


def test_comments_and_blank_lines_do_not_count_and_bad_lines_do():
    queue = parse_queue(b"# head\n\na.yaml t\n  \t\n  # indented\nbad\n#\n\xff\nb.yaml t\n")
    assert [(line.index, line.number) for line in queue.lines] == [(0, 3), (1, 6), (2, 8), (3, 9)]
    assert [type(line) for line in queue.lines] == [CellLine, BadLine, BadLine, CellLine]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment\n", BOM, BOM + b"\r\n"])
def test_a_file_without_cells_is_an_empty_queue(data):
    assert parse_queue(data).lines == ()


def test_windows_line_ends_and_a_byte_order_mark_are_taken_as_what_they_mean():
    plain = b"# head\na.yaml t\n\nb.yaml t 3\n"
    assert parse_queue(BOM + plain.replace(b"\n", b"\r\n")) == parse_queue(plain)
    assert normalise(BOM + plain.replace(b"\n", b"\r\n")) == plain


def test_an_unfinished_last_line_is_said_and_not_acted_on():
    typed = b"configs/b.yaml t 2"
    assert parse_queue(GOOD + typed) == Queue(parse_queue(GOOD).lines, typed.decode())
    assert parse_queue(typed) == Queue(unfinished=typed.decode()) != Queue()
    assert parse_queue(GOOD + b"\xff\xfe").lines == parse_queue(GOOD).lines


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"a.yaml\0 t", r"'\x00'"),
        (b"a.yaml t\x1b[2J", r"'\x1b'"),
        (b"a.yaml t\x07", r"'\x07'"),
        (b"a.yaml\rt", r"'\r'"),
        (b"a.yaml \x7ft", r"'\x7f'"),
        ("a.yaml t\x85".encode(), r"'\x85'"),
    ],
)
def test_a_control_character_is_named_and_not_printed(line, said):
    assert reason(line) == f"the line contains the control character {said}"


@pytest.mark.parametrize("line", [b"a.yaml \xff", b"\xc3( t", b"a\xed\xa0\x80.yaml t"])
def test_invalid_utf8_is_a_bad_line(line):
    assert "UTF-8" in reason(line)


def test_a_line_that_is_too_long_is_said_and_the_next_one_is_read():
    queue = parse_queue(b"a" * 5000 + b".yaml t\n" + GOOD)
    assert [type(line) for line in queue.lines] == [BadLine, CellLine]
    assert "5007 bytes long; at most 4096 are allowed" in queue.bad[0].reason


def test_the_longest_line_and_the_largest_file_are_read():
    line = b"a.yaml " + b"t" * (cell_line.LONGEST_BYTES - 7)
    assert cell(line).name == "a"
    assert "are allowed" in reason(line + b"t")
    comments = b"#" * (queue_line.LARGEST_FILE_BYTES - len(GOOD) - 1) + b"\n"
    assert len(parse_queue(comments + GOOD).cells) == 1 and not parse_queue(comments + GOOD).bad


TOO_MANY = queue_line.LARGEST_FILE_BYTES + 1_000_000


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_larger_than_a_file_may_be_is_said_once_and_keeps_the_lines_before(end):
    queue = parse_queue(b"# head\n" + GOOD + b"x" * TOO_MANY + end)
    assert [(line.index, line.number) for line in queue.lines] == [(0, 2), (1, 3)]
    assert queue.cells == parse_queue(b"# head\n" + GOOD).cells
    assert "larger than" in queue.bad[0].reason
    assert len(queue.unfinished) <= cell_line.LONGEST_BYTES


def test_a_first_line_larger_than_a_file_may_be_is_line_one():
    [bad] = parse_queue(b"x" * TOO_MANY + b"\n").bad
    assert (bad.index, bad.number) == (0, 1)


# A reader that takes them one by one needs hours, and pytest ends it.
@pytest.mark.parametrize("piece", [BOM, b"\r", b"\r\n", b"'", b"#", b" ", b"\n", b"\0"])
def test_no_flood_of_one_character_holds_the_reader_up(piece):
    flood = piece * (1_000_000 // len(piece))
    for data in (flood, flood + b"\n", GOOD + flood + b"\n", flood + b"\n" + GOOD):
        assert len(parse_queue(data).lines) <= 2


# --- laws

LINES = st.sampled_from(
    [
        b"a.yaml t\n",
        b"b.yaml t 3\r\n",
        b"A.yaml t\n",
        b"bad\n",
        b"# note\n",
        b"\n",
        b"c.yaml t",
        b"\xff\n",
        b"'open\n",
        b"\r",
        b"\n",
        BOM,
        b"\0\n",
    ]
)
FILES = st.binary() | st.lists(LINES, max_size=8).map(b"".join)


@given(FILES)
def test_no_bytes_make_parse_raise_and_indices_have_no_gap(data):
    queue = parse_queue(data)
    assert [line.index for line in queue.lines] == list(range(len(queue.lines)))
    numbers = [line.number for line in queue.lines]
    assert numbers == sorted(set(numbers))
    assert len(queue.cells) + len(queue.bad) == len(queue.lines)
    assert len({cell_name.same_name_key(found.name) for found in queue.cells}) == len(queue.cells)


@given(FILES, FILES)
def test_appending_never_changes_what_the_lines_before_say(data, more):
    before, after = parse_queue(data).lines, parse_queue(data + more).lines
    assert after[: len(before)] == before


@given(FILES)
def test_the_box_reads_what_the_laptop_read(data):
    pushed = normalise(data)
    assert normalise(pushed) == pushed
    assert parse_queue(pushed) == parse_queue(data)


def test_a_line_behind_a_mark_is_known_by_its_name_and_place():
    data = b"# head\nc/a.yaml t\n#c/b.yaml t 3\n ## c/c.yaml 'two words'\n# a remark on b\n#c/d t"
    assert [(line.name, line.number, line.epochs) for line in commented_out(data)] == [
        ("b", 3, 3),
        ("c", 4, None),
    ]
    assert [line.name for line in parse_queue(data).cells] == ["a"]


@given(st.binary(max_size=60))
def test_no_bytes_make_commented_out_raise(data):
    assert all(line.index == -1 for line in commented_out(data))

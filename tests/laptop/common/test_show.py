from __future__ import annotations

import io
import json
import re

import pytest

from boxcar.laptop.common import show
from boxcar.laptop.common.progress import THINGS
from boxcar.shared import errors
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.control import Control
from boxcar.shared.sentence import _


def test_a_table_shows_markup_as_it_stands_and_never_cuts(capsys):
    show.table("[bold]t", ["name"], [["[red]x[/red]"], [None], [0.123456], ["y" * 150]])
    said = capsys.readouterr().out
    assert "[bold]t" in said and "[red]x[/red]" in said
    assert "0.1235" in said and "y" * 150 in said and "\x1b" not in said


def test_in_a_pipe_each_row_is_one_line_and_each_note_too(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = "/".join(["a long folder"] * 50)
    show.table("places", ["place", "folder", "free"], [["scratch", path, 1], ["tier", path, 2]])
    show.say(f"{path}: is there")
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines() if line] == [
        "places", "place", "scratch", "tier",
    ]  # fmt: skip
    assert not any(line.endswith(" ") for line in said.out.splitlines())
    assert said.out.count(path) == 2 and said.err == f"{path}: is there\n"


def test_a_table_without_rows_is_not_shown(capsys):
    show.table("what happened", ["at", "what"], [])
    assert capsys.readouterr().out == ""


def test_json_is_one_document_that_every_reader_takes(capsys):
    show.json_document(
        "made-up", {"loss": float("nan"), "rows": [float("inf"), 1.5], "c": Control("run", "t")}
    )
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said == {
        "format": "boxcar.made-up/1",
        "loss": "nan",
        "rows": ["inf", 1.5],
        "c": {"want": "run", "at": "t"},
    }


def test_notes_go_to_stderr_and_lines_to_stdout(capsys):
    show.say("a note")
    show.line("a result\x1b")
    said = capsys.readouterr()
    assert said.err == "a note\n"
    assert said.out == "a result\\x1b\n"


def test_commands_are_shown_as_the_person_types_them(capsys):
    pull = Message("12 cells are not here yet", Command("pull"))
    errors.type_as("boxcar")
    show.say(pull)
    errors.type_as("invoke")
    show.line(pull)
    said = capsys.readouterr()
    assert said.err == "12 cells are not here yet: boxcar pull\n"
    assert said.out == "12 cells are not here yet: invoke pull\n"


def test_commands_in_a_table_are_shown_as_the_person_types_them(capsys):
    errors.type_as("boxcar")
    show.table("t", ["next"], [[Command("pull")]])
    assert "boxcar pull" in capsys.readouterr().out


@pytest.mark.parametrize("program", ["boxcar", "invoke"])
def test_json_has_messages_and_commands_as_the_person_types_them(program: str, capsys):
    errors.type_as(program)
    logs = Command("logs", ("--cell", "a b"))
    show.json_document("made-up", {"next": logs, "problems": [Message("it failed", logs)]})
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "format": "boxcar.made-up/1",
        "next": f"{program} logs --cell 'a b'",
        "problems": [f"it failed: {program} logs --cell 'a b'"],
    }


def test_a_question_that_nobody_answers_is_answered_with_nothing(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert show.ask("sure? ") == ""
    monkeypatch.setattr("sys.stdin", io.StringIO(" yes \n"))
    assert show.ask("sure? ") == "yes"


def test_a_suggested_command_carries_the_flags_that_were_typed(monkeypatch):
    errors.type_as("boxcar")
    monkeypatch.setattr(show, "_flags", [])
    down = Message("Again", Command("down", ("--abandon", "a")))
    assert show.typed(down) == "Again: boxcar down --abandon a"
    show.remember_flags("autodl", "my jobs/$(x).yaml")
    wanted = "boxcar explain --job 'my jobs/$(x).yaml' --profile lambda"
    assert show.typed(Command("explain", ("--profile", "lambda"))) == wanted
    show.remember_flags("", "job.yaml")
    choice = Command("drain", note="the cell ends", or_else=Command("stop"))
    wanted = "boxcar drain --job job.yaml (the cell ends), or boxcar stop --job job.yaml"
    assert show.typed(choice) == wanted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch, term="xterm-256color"):
    """stderr as a terminal of 40 columns. No fixture: pytest puts its own stderr back after one."""
    for name in ("NO_COLOR", "LC_ALL", "LANG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "40")
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    return made


def test_on_a_terminal_notes_wrap_at_words(monkeypatch):
    stderr = terminal(monkeypatch)
    show.say("the boxes are awake and switched on, and all of them answer")
    assert stderr.getvalue() == ("the boxes are awake and switched on, and\nall of them answer\n")


def stdout_of_40_columns(monkeypatch):
    terminal(monkeypatch)
    made = Terminal()
    monkeypatch.setattr("sys.stdout", made)
    return made


def test_on_a_terminal_a_line_of_a_result_wraps_at_words_too(monkeypatch):
    stdout = stdout_of_40_columns(monkeypatch)
    show.line("  the boxes are awake and switched on, and all of them answer")
    assert stdout.getvalue() == "  the boxes are awake and switched on,\n  and all of them answer\n"


def test_on_a_terminal_lines_of_a_file_stay_as_they_are(monkeypatch):
    stdout = stdout_of_40_columns(monkeypatch)
    row = "# a remark of a file that somebody may want to copy"
    show.verbatim(f"{row}\nkey: 1")
    assert stdout.getvalue() == f"{row}\nkey: 1\n"


def test_on_a_terminal_no_name_breaks_and_what_may_go_goes(monkeypatch):
    stdout = stdout_of_40_columns(monkeypatch)
    row = ["recon_skip_connection_q1_seed3", "accepted_here", "c0ffee"]
    show.table("results", ["cell", "state", "release"], [row], first_to_go=["release"])
    _, head, cells, *_ = re.sub(r"\x1b\[[0-9;]*m", "", stdout.getvalue()).splitlines()
    assert head.split() == ["cell", "state"] and cells.split()[1] == "accepted_here"
    assert cells.startswith("recon_s") and cells.split()[0].endswith("_q1_seed3")
    assert "…" in cells and "c0ffee" not in cells


def test_what_a_script_printed_is_never_wrapped(monkeypatch):
    stderr = terminal(monkeypatch)
    line = "x = some_function(with, many, words, " * 3
    show.quote(line)
    assert stderr.getvalue().rstrip() == line.rstrip()


def test_what_moves_is_one_at_a_time_and_what_is_said_goes_through_it(monkeypatch):
    stderr = terminal(monkeypatch)
    with show.waiting("asking"):
        waiting = show._moving[-1]
        with show.progress("smoke", THINGS) as bar:
            assert show._moving[-1] is not waiting
            with show.waiting("asking again"):
                assert len(show._moving) == 2
            bar.part(3).add()
            assert show._stderr() is show._moving[-1].console
            show.say("a note")
        assert show._moving == [waiting]
    assert show._moving == [] and "a note\n" in stderr.getvalue()


def test_a_note_is_said_to_what_moves(monkeypatch):
    terminal(monkeypatch)
    said = []
    with show.waiting("asking"):
        console = show._moving[-1].console
        monkeypatch.setattr(console, "out", lambda text, **how: said.append(text))
        show.say("a note")
        show.quote("a \x1b[31mline")
    assert said == ["a note", r"a \x1b[31mline"]


ROW = ["recon_skip_connection_q1_seed3", "accepted_here", "c0ffee"]


def test_a_table_is_as_wide_as_its_own_stream_says(monkeypatch):
    terminal(monkeypatch)
    piped = io.StringIO()
    monkeypatch.setattr("sys.stdout", piped)
    show.table("results", ["cell", "state", "release"], [ROW])
    assert piped.getvalue().splitlines()[2].split() == ROW
    stdout = stdout_of_40_columns(monkeypatch)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    show.table("results", ["cell", "state", "release"], [ROW])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stdout.getvalue()).splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 40


def test_a_note_in_a_pipe_is_one_write_and_drives_no_terminal(monkeypatch):
    written = []
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "write", written.append)
    monkeypatch.setattr("sys.stderr", stderr)
    show.say("a \x1b[31mnote")
    show.quote("a \x07line")
    assert written == ["a \\x1b[31mnote\n", "a \\x07line\n"]


def test_an_error_ends_what_moves(monkeypatch):
    terminal(monkeypatch)
    with pytest.raises(ValueError), show.progress("push"):
        raise ValueError
    assert show._moving == []


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch, term):
    stderr = terminal(monkeypatch, term)
    with show.progress("push") as bar:
        bar.part(3).add()
        show.say("a note")
    assert stderr.getvalue() == "a note\n"


def test_in_a_pipe_a_progress_says_nothing_for_what_ends_soon(capsys):
    with show.progress("push") as bar, show.waiting("asking"):
        bar.part(3).add()
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


REST = Command("verify", ("--all",))


def on_80_columns(monkeypatch, *, is_all=False):
    """stdout and stderr as one terminal, which a verb of 40 lines begins to write to."""
    made = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", made)
    errors.type_as("boxcar")
    show.begin()
    show.shorten(REST, is_all=is_all)
    return lambda: re.sub(r"\x1b\[[0-9;]*m", "", made.getvalue()).splitlines()


MISSING = Message("is not published", Command("launch"))


def failed(n):
    return Message("it failed", Command("explain", ("--cell", f"cell_{n}")))


def test_a_terminal_gets_forty_lines_of_a_thousand_and_the_command_that_shows_all(monkeypatch):
    lines = on_80_columns(monkeypatch)
    show.table("results", ["cell", "psnr"], [[f"cell_{n}", n / 7] for n in range(1000)])
    show.say_of_each((f"cell_{n}", f"{n} things are wrong") for n in range(1000))
    show.table("again", ["cell", "psnr"], [[f"cell_{n}", n / 7] for n in range(1000)])
    show.say("the receipt")
    shown = lines()
    assert len(shown) <= show.MOST_LINES and shown[-1] == "the receipt"
    left_out = [
        int(line.split()[1]) for line in shown if line.endswith(" more: boxcar verify --all")
    ]
    counted = sum(line.startswith("cell_") for line in shown) + sum(left_out)
    assert len(left_out) == 3 and counted == 3000


def test_what_has_room_is_whole_on_a_terminal_too(monkeypatch):
    lines = on_80_columns(monkeypatch)
    show.table("results", ["cell", "psnr"], [[f"cell_{n}", n / 7] for n in range(24)])
    assert len([line for line in lines() if line.startswith("cell_")]) == 24
    assert "more" not in " ".join(lines())


@pytest.mark.parametrize("is_all", [True, False])
def test_the_same_of_many_cells_is_one_note_unless_all_was_asked_for(monkeypatch, is_all):
    lines = on_80_columns(monkeypatch, is_all=is_all)
    show.say_of_each(
        [("the run", Message("it is late"))]
        + [(f"cell_{n}", MISSING if n % 2 else failed(n)) for n in range(12)]
    )
    if is_all:
        assert len(lines()) == 13 and "cell_10: it failed: boxcar explain --cell cell_10" in lines()
        return
    assert lines() == [
        "the run: it is late",
        "6 cells (cell_0, cell_2, cell_4 and 3 more): it failed:",
        "boxcar explain --cell cell_0",
        "6 cells (cell_1, cell_3, cell_5 and 3 more): is not published: boxcar launch",
    ]


def test_what_can_be_said_of_many_cells_is_said_of_them(monkeypatch):
    lines = on_80_columns(monkeypatch)
    name = "recon_no_skip_connection_seed_"
    missing = Message(_("{cells:is|are} not published", cells=1), Command("launch"))
    show.say_of_each((f"{name}{n}", missing) for n in range(577))
    shown = " ".join(lines())
    assert shown.startswith("577 cells (recon_no…nnection_seed_0, ")
    assert shown.endswith(" and 574 more) are not published: boxcar launch")


def test_many_cells_of_which_a_table_says_the_same_are_one_row(monkeypatch):
    lines = on_80_columns(monkeypatch)
    rows = [[f"cell_{n}", "missing" if n % 2 else "verified", n % 2 or n] for n in range(60)]
    show.table("results", ["cell", "state", "psnr"], rows)
    shown = lines()
    assert len([line for line in shown if line.startswith("cell_")]) + 30 + int(
        next(line for line in shown if line.endswith("more: boxcar verify --all")).split()[1]
    ) == len(rows)
    assert [line.split() for line in shown if " cells " in line] == [
        ["30", "cells", "missing", "1"]
    ]


def test_a_column_in_which_nothing_is_said_is_not_missed(monkeypatch):
    lines = on_80_columns(monkeypatch)
    show.table("t", ["cell", "why", "psnr", "state"], [["n" * 70, None, None, "verified"]])
    assert "no room" not in " ".join(lines())


def test_three_cells_of_which_the_same_is_said_have_a_note_each(monkeypatch):
    lines = on_80_columns(monkeypatch)
    show.say_of_each((f"cell_{n}", MISSING) for n in range(3))
    assert lines() == [f"cell_{n}: is not published: boxcar launch" for n in range(3)]
    assert show.listed(["a"] * 7) == "a, a, a, a, a and 2 more"


def test_in_a_pipe_nothing_is_one_note_and_no_row_is_left_out(capsys):
    errors.type_as("boxcar")
    show.begin()
    show.shorten(REST)
    show.table("results", ["cell", "state"], [[f"cell_{n}", "verified"] for n in range(1000)])
    show.say_of_each((f"cell_{n}", MISSING) for n in range(1000))
    said = capsys.readouterr()
    assert said.out.count("cell_") == said.err.count("cell_") == 1000
    assert show.listed(["a"] * 700).count("a") == 700


def test_a_column_that_has_no_room_is_named_with_the_command_that_shows_it(monkeypatch):
    lines = on_80_columns(monkeypatch)
    row = ["n" * 60, "0.8735±0.0094", "v" * 20, "47f769376547", "w" * 12]
    heads = ["cell", "psnr", "state", "release", "why"]
    show.table("t", heads, [row], first_to_go=["release"])
    assert "… no room for release: boxcar verify --all | less -S" in lines()
    assert "0.8735±0.0094" in lines()[2]


def test_what_is_said_of_one_cell_goes_on_from_its_name(monkeypatch):
    lines = on_80_columns(monkeypatch)
    show.say_of_each(
        [("a", Message(_("{cells:is|are} not published", cells=1), Command("launch")))]
    )
    assert lines() == ["a is not published: boxcar launch"]

from __future__ import annotations

import ast

import pytest
import strange_sources

from boxcar.laptop.init import flags
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.source import UNKNOWN


def only(source: str) -> Flag:
    [flag] = read(source)
    return flag


def read(source: str) -> tuple[Flag, ...]:
    return flags.read_flags([("t.py", node) for node in ast.walk(ast.parse(source))])


@pytest.mark.parametrize(
    ("call", "word", "key"),
    [
        ("p.add_argument('--lr', type=float)", "--lr", "lr"),
        ("p.add_argument('-b', '--batch-size')", "--batch-size", "batch_size"),
        ("p.add_argument('data')", "data", "data"),
        ("group.add_argument('-o')", "-o", "o"),
        ("@click.option('--out-dir', 'out')\ndef f(): ...", "--out-dir", "out_dir"),
    ],
)
def test_a_flag_has_the_name_that_people_type(call: str, word: str, key: str) -> None:
    flag = only(call)
    assert (flag.word, flag.key) == (word, key)


@pytest.mark.parametrize(
    ("more", "is_switch", "is_required", "default"),
    [
        ("action='store_true'", True, False, None),
        ("action=argparse.BooleanOptionalAction", True, False, None),
        ("nargs='?', const='auto'", True, False, None),
        ("required=True", False, True, None),
        ("default=3", False, False, 3),
        ("default=os.environ['X']", False, False, UNKNOWN),
        ("is_flag=True", True, False, None),
    ],
)
def test_what_a_flag_takes_stands_beside_it(
    more: str, is_switch: bool, is_required: bool, default: object
) -> None:
    flag = only(f"p.add_argument('--x', {more})")
    assert (flag.is_switch, flag.is_required, flag.default) == (is_switch, is_required, default)


@pytest.mark.parametrize(
    ("more", "is_required"), [("", True), (", nargs='?'", False), (", default='x'", False)]
)
def test_a_positional_argument_is_required_unless_it_may_be_left_out(
    more: str, is_required: bool
) -> None:
    assert only(f"p.add_argument('data'{more})").is_required == is_required


def test_fields_of_a_dataclass_are_flags_only_where_a_parser_makes_them_such() -> None:
    source = "@dataclass\nclass Args:\n    lr: float = 0.1\n    name: str\n"
    assert read(source) == ()
    found = read(f"{source}HfArgumentParser(Args)\n")
    assert [(flag.word, flag.default, flag.is_required) for flag in found] == [
        ("--lr", 0.1, False),
        ("--name", None, True),
    ]


def test_settings_are_the_globals_above_the_line_that_replaces_them() -> None:
    found = flags.settings(ast.parse(strange_sources.SETTINGS), "t.py")
    assert [flag.word for flag in found] == ["--out_dir", "--init_from", "--max_iters", "--backend"]
    assert all(flag.is_setting for flag in found)
    assert flags.settings(ast.parse("lr = 0.1\n"), "t.py") == ()

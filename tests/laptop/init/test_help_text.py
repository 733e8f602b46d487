"""Flags out of what `--help` printed: each text is a library's own, with some lines wrapped."""

from __future__ import annotations

import pytest

from boxcar.laptop.init import flags
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.source import UNKNOWN

ARGPARSE = """\
usage: a_argparse.py [-h] --data DATA [--epochs EPOCHS] [--lr LR] [--amp] [--ema | --no-ema]
                     [--opt {adam,sgd}] [--resume [RESUME]] out_dir

positional arguments:
  out_dir               where it goes

options:
  -h, --help            show this help message and exit
  --data DATA
  --epochs EPOCHS, -e EPOCHS
                        how long to train, in a long sentence
                        that is wrapped (default: 7)
  --lr LR               step (not too large) (default: 0.001)
  --amp
  --ema, --no-ema
  --opt {adam,sgd}
  --resume [RESUME]
"""
CLICK = """\
Usage: b_click.py [OPTIONS] NAME

Options:
  --epochs INTEGER  How long.  [default: 5]
  --out PATH        [required]
  --amp / --no-amp
  -v, --verbose     say more
  --help            Show this message and exit.
"""
TYPER = """\

 Usage: c_typer.py [OPTIONS] {name}

╭─ Arguments ──────────────────────────────╮
│ *    name      <str>  [required]   │
╰──────────────────────────────╯
╭─ Options ──────────────────────────────╮
│ *  --out                   <str>   [required]   │
│    --epochs                <int>   [default: 5]   │
│    --amp       --no-amp    <bool>  [default: no-amp]   │
│    --help                  <bool>  Show this message and exit.   │
╰──────────────────────────────╯

"""
FIRE = """\
INFO: Showing help with the command 'd_fire.py -- --help'.

NAME
    d_fire.py - Train it.

SYNOPSIS
    d_fire.py OUT <flags>

DESCRIPTION
    Train it.

POSITIONAL ARGUMENTS
    OUT

FLAGS
    -e, --epochs=EPOCHS
        Default: 5
    -l, --lr=LR
        Default: 0.1
    -a, --amp=AMP
        Default: False

NOTES
    You can also use flags syntax for POSITIONAL ARGUMENTS
"""
ABSL = """\

       USAGE: e_absl.py [flags]
flags:

e_absl.py:
  --[no]amp: Mixed precision.
    (default: 'false')
  --epochs: How long.
    (default: '5')
    (an integer)
  --out: Where.

Try --helpfull to get a list of all flags.
"""
TYRO = """\
usage: f_tyro.py [-h] --out STR [--epochs INT] [--amp | --no-amp]

╭─ options ──────────────────────────────╮
│ -h, --help       show this help message and exit │
│ --out STR        (required)                      │
│ --epochs INT     (default: 5)                    │
│ --amp, --no-amp  (default: False)                │
╰──────────────────────────────╯
"""
SIMPLE = """\
usage: g_simple.py [-h] --out str [--epochs int] [--amp bool]

options:
  -h, --help            show this help message and exit

Args ['config']:
  Args(out: str, epochs: int = 5, amp: bool = False)

  --out str             where (default: None)
  --epochs int          how long (default: 5)
  --amp bool, --noamp bool
                        (default: False)
"""
JSON = """\
usage: h_json.py [--config CONFIG] [--epochs EPOCHS] [--amp {true,false}] out

Train.

positional arguments:
  out                   where (required, type: str)

options:
  -h, --help            Show this help message and exit.
  --config CONFIG       Path to a configuration file.
  --print_config \b[=flags]
                        Print the configuration after applying all other arguments and exit.
  --epochs EPOCHS       how long (type: int, default: 5)
  --amp {true,false}    (type: bool, default: False)
"""


def flag(word: str, default: object = UNKNOWN, **more: bool) -> Flag:
    return Flag((word,), 0, default, **more)


def short(flags: tuple[Flag, ...]) -> list[Flag]:
    """By the word that is typed in full."""
    return [
        Flag((f.word,), f.line, f.default, is_switch=f.is_switch, is_required=f.is_required)
        for f in flags
    ]


OUT = flag("--out", is_required=True)
EPOCHS = flag("--epochs", 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ARGPARSE,
            [
                flag("out_dir", is_required=True),
                flag("--data", is_required=True),
                flag("--epochs", 7),
                flag("--lr", 0.001),
                flag("--amp", is_switch=True),
                flag("--ema", is_switch=True),
                flag("--opt"),
                flag("--resume"),
            ],
        ),
        (
            CLICK,
            [EPOCHS, OUT, flag("--amp", is_switch=True), flag("--verbose", is_switch=True)],
        ),
        (
            TYPER,
            [flag("name", is_required=True), OUT, EPOCHS, flag("--amp", "no-amp", is_switch=True)],
        ),
        (FIRE, [flag("OUT", is_required=True), EPOCHS, flag("--lr", 0.1), flag("--amp", False)]),
        (ABSL, [flag("--amp", "false", is_switch=True), EPOCHS, flag("--out")]),
        (TYRO, [OUT, EPOCHS, flag("--amp", False, is_switch=True)]),
        (SIMPLE, [flag("--out", None, is_required=True), EPOCHS, flag("--amp", False)]),
        (
            JSON,
            [
                flag("out", is_required=True),
                flag("--config"),
                flag("--print_config"),
                EPOCHS,
                flag("--amp", False),
            ],
        ),
    ],
    ids=["argparse", "click", "typer", "fire", "absl", "tyro", "simple_parsing", "jsonargparse"],
)
def test_each_librarys_help_is_read(text: str, expected: list[Flag]) -> None:
    assert short(flags.flags_of_help(text)) == expected


def test_what_is_printed_around_it_does_not_matter() -> None:
    noise = "WARNING: no GPU\n2026-11-22 loading - 3 files\n"
    assert flags.flags_of_help(noise + ARGPARSE) == flags.flags_of_help(ARGPARSE)


@pytest.mark.parametrize(
    "text",
    ["", "epoch 1 loss 0.5\nepoch 2 loss 0.4\n", "- a\n- b\n-----\n", "Traceback (most recent"],
)
def test_a_training_that_ignores_the_flag_names_none(text: str) -> None:
    assert flags.flags_of_help(text) == ()


def test_a_text_of_any_length_and_shape_is_read_at_once() -> None:
    for text in ("(" * 20_000, "usage: " + "[" * 20_000, "  --a " + "[default: (" * 20_000):
        flags.flags_of_help(text)

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.shared.errors import InputError


class Wheel(Model):
    size: int = Field(default=1, ge=1)


class Cart(Model):
    name: str
    epochs: int | None = None
    flag: str = ""
    notes: tuple[str, ...] = ()
    wheels: dict[str, Wheel] = Field(default_factory=dict)
    spare: tuple[Wheel, ...] = ()


def parse(text: str | bytes) -> Cart:
    data = text if isinstance(text, bytes) else text.encode()
    return yaml_models.parse(data, "cart.yaml", Cart)


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text)
    return list(caught.value.problems)


@pytest.mark.parametrize("typed", ["no", "010", "1:30", "1e3", "0x1f", "2024-01-01", "~", "null"])
def test_a_scalar_stays_the_text_that_was_typed(typed: str) -> None:
    assert parse(f"name: a\nflag: {typed}\n").flag == typed


def test_a_number_is_made_of_text_where_the_model_wants_one() -> None:
    assert parse('name: a\nepochs: "20"\n').epochs == 20
    assert parse("name: a\nepochs: 010\n").epochs == 10


def test_nothing_after_the_colon_is_none_and_quotes_are_an_empty_text() -> None:
    cart = parse('name: ""\nepochs:\n')
    assert (cart.name, cart.epochs) == ("", None)


def test_crlf_and_a_byte_order_mark_are_taken_as_what_they_mean() -> None:
    cart = parse(b"\xef\xbb\xbfname: a\r\nflag: b\r\nnotes: [c,\r\n d]\r\n")
    assert (cart.name, cart.flag, cart.notes) == ("a", "b", ("c", "d"))


def test_all_problems_are_told_at_once_in_the_order_of_their_lines() -> None:
    assert problems("epochs: x\nartefacts: 1\nwheels:\n  left:\n    size: 0\n    sise: 1\n") == [
        "cart.yaml:1: epochs: expected a whole number, found 'x'",
        "cart.yaml:1: the key 'name' is missing",
        "cart.yaml:2: unknown key 'artefacts'",
        "cart.yaml:5: wheels.left.size: expected a number of 1 or more, found '0'",
        "cart.yaml:6: unknown key 'wheels.left.sise' (did you mean 'size'?)",
    ]


def test_an_unknown_key_names_the_nearest_one() -> None:
    assert problems("name: a\nnote: [b]\n") == [
        "cart.yaml:2: unknown key 'note' (did you mean 'notes'?)"
    ]
    assert problems("name: a\nspare:\n - sice: 2\n") == [
        "cart.yaml:3: unknown key 'spare[0].sice' (did you mean 'size'?)"
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: [a]\n", "cart.yaml:1: name: expected text, found a list"),
        ("name:\n", "cart.yaml:1: name: expected text, found nothing"),
        ("name: a\nnotes: b\n", "cart.yaml:2: notes: expected a list, found 'b'"),
        ("name: a\nwheels: b\n", "cart.yaml:2: wheels: expected keys with values, found 'b'"),
        ("name: a\nspare:\n- 1\n", "cart.yaml:3: spare[0]: expected keys with values, found '1'"),
        ("- name\n", "cart.yaml:1: expected keys with values, found a list"),
    ],
)
def test_a_wrong_shape_says_what_was_expected_and_found(text: str, sentence: str) -> None:
    assert problems(text) == [sentence]


def test_a_long_value_is_cut_in_the_message() -> None:
    (sentence,) = problems(f"name: a\nepochs: {'x' * 5000}\n")
    assert len(sentence) < 150


def test_a_key_that_stands_twice_names_both_lines() -> None:
    assert problems("name: a\nflag: b\nname: c\n") == [
        "cart.yaml:3: the key 'name' is already on line 1"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: a\nflag: 'b\n", "cart.yaml:2: the quote that opens here is never closed"),
        ("name: a\nnotes: [b\n", "cart.yaml:2: the bracket that opens here is never closed"),
        ("wheels:\n\tleft: 1\n", "a tab where only spaces are allowed:"),
        (
            "name: a\nnotes: [*.pth]\n",
            "cart.yaml:2: a value that begins with * or & must be quoted",
        ),
        ("name: a: b\n", "cart.yaml:1: a second ': ' in this line"),
        ("name: a\n---\nname: b\n", "cart.yaml:2: not YAML (expected a single document"),
        ("name: a\nflag: \x01\n", "cart.yaml:2: the character '\\x01' is not allowed"),
        ('name: a\nflag: "\\0"\n', "cart.yaml:2: flag: contains the character '\\x00'"),
        ('name: a\nflag: "\\ud800"\n', "cart.yaml:2: flag: contains the character '\\ud800'"),
        ('name: "\\UFFFFFFFF"\n', "cart.yaml: cannot be read as YAML"),
        ("name: a\n? [b]\n: c\n", "cart.yaml:2: a key must be text"),
        (
            "name: !!python/name:os.system a\n",
            "the tag 'python/name:os.system' is not allowed here",
        ),
        ("", "cart.yaml: the file is empty"),
        ("# nothing\n", "cart.yaml: the file is empty"),
    ],
)
def test_what_is_no_yaml_is_one_sentence_with_its_line(text: str, words: str) -> None:
    (sentence, *_) = problems(text)
    assert words in sentence
    assert "\n" not in sentence


def test_text_that_is_not_utf8_names_line_and_byte() -> None:
    assert problems(b"name: a\nflag: \xe4\n") == [
        "cart.yaml:2: not UTF-8 text (byte 0xe4). Save the file as UTF-8"
    ]


def test_an_alias_is_taken_where_it_is_small() -> None:
    assert parse("name: &n a\nflag: *n\n").flag == "a"


def test_aliases_that_grow_without_bound_are_refused() -> None:
    lines = ["l0: &l0 [a, a, a, a, a, a, a, a, a]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 10)]
    assert "aliases make more than 10000 values" in problems("\n".join(lines))[0]


@pytest.mark.parametrize("text", ["name: &a [*a]\n", "name: " + "[" * 60 + "]" * 60 + "\n"])
def test_endless_nesting_is_refused(text: str) -> None:
    assert "nested deeper than 50 levels" in problems(text)[0]


def test_nesting_that_the_reader_itself_cannot_follow_is_refused() -> None:
    assert "nested deeper than 50 levels" in problems("name: " + "[" * 5000)[0]


def test_a_file_of_too_many_values_or_bytes_is_refused() -> None:
    assert "more than 10000 values" in problems("- a\n" * 20_000)[0]
    assert "larger than" in problems("#" * (yaml_models.LARGEST_FILE_BYTES + 1))[0]


def test_a_missing_file_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file. To see .* ls "):
        yaml_models.load(tmp_path / "cart.yaml", Cart)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        yaml_models.load(tmp_path, Cart)


def test_a_loaded_model_knows_the_lines_of_its_places(tmp_path: Path) -> None:
    path = tmp_path / "cart.yaml"
    path.write_text("name: a\nwheels:\n  left:\n    size: 2\n")
    cart = yaml_models.load(path, Cart)
    assert cart.at("wheels", "left") == f"{path}:3: wheels.left"
    assert cart.at("notes") == f"{path}:1: notes"
    assert Cart(name="a").at("notes") == "notes"


@given(st.one_of(st.text(), st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,? \n\t\\0x~<"), st.binary()))
def test_any_input_is_a_model_or_an_input_error(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    for head in (b"", b"name: a\nflag: "):
        try:
            assert isinstance(yaml_models.parse(head + data, "cart.yaml", Cart), Cart)
        except InputError as error:
            assert all("cart.yaml" in problem for problem in error.problems)


# --- one file over another


def over(own: str, base: str) -> Cart:
    documents = [
        yaml_models.parse_document(text.encode(), where)
        for text, where in ((own, "own.yaml"), (base, "base.yaml"))
    ]
    return yaml_models.build(yaml_models.laid_over(*documents), Cart)


def test_what_one_file_leaves_out_the_other_says() -> None:
    cart = over("name: a\nwheels: {left: {size: 2}}\n", "name: b\nflag: f\nwheels: {right: {}}\n")
    assert (cart.name, cart.flag) == ("a", "f")
    assert {name: wheel.size for name, wheel in cart.wheels.items()} == {"left": 2, "right": 1}
    assert cart.at("wheels", "left") == "own.yaml:2: wheels.left"
    assert cart.at("flag") == "base.yaml:2: flag"


def test_a_problem_names_the_file_that_says_it() -> None:
    with pytest.raises(InputError) as caught:
        over("epochs: x\n", "\nname: b\nspare: [{size: 0}]\n")
    assert list(caught.value.problems) == [
        "base.yaml:3: spare[0].size: expected a number of 1 or more, found '0'",
        "own.yaml:1: epochs: expected a whole number, found 'x'",
    ]


def test_what_is_replaced_whole_has_no_line_in_the_other_file() -> None:
    with pytest.raises(InputError) as caught:
        over("name: a\nspare:\n  - sice: 1\n", "name: b\nspare:\n - sice: 1\n   size: 2\n")
    assert list(caught.value.problems) == [
        "own.yaml:3: unknown key 'spare[0].sice' (did you mean 'size'?)"
    ]
    cart = over("name: a\nspare: [{size: 1}]\n", "name: b\nspare:\n - size: 2\n - size: 3\n")
    assert cart.at("spare", 1) == "own.yaml:2: spare[1]"

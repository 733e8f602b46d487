from __future__ import annotations

import io
import math
import random
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from boxcar.shared.metrics import read, records
from boxcar.shared.metrics.read import Match, NoNumberError, in_csv, in_json, in_log
from boxcar.shared.metrics.tfevents import Scalar, scalars

LOSS = re.compile(r"val loss ([0-9.]+|nan)")


def chosen(found: Iterable[Match], best: str | None) -> float:
    return read.chosen(found, best)[0]


def of_json(data: bytes, key: str, best: str | None = None) -> float:
    return chosen(in_json(data, key), best)


def of_log(text: str | bytes, *, begins_at: int = 0, best: str | None = None) -> float:
    data = text.encode() if isinstance(text, str) else text
    return chosen(in_log(io.BytesIO(data), begins_at, LOSS, lambda: None), best)


def why(call: object, *arguments: object) -> str:
    with pytest.raises(NoNumberError) as found:
        call(*arguments)  # type: ignore[operator]
    return str(found.value)


def test_of_a_log_the_last_match_counts_or_the_best():
    text = "val loss 0.9\nval loss 0.3, lr 1\nval loss 0.5.\n"
    assert of_log(text) == 0.5
    assert of_log(text, best="min") == 0.3
    assert of_log(text, best="max") == 0.9


def test_a_line_that_is_drawn_over_is_a_line_and_one_without_an_end_counts():
    assert of_log("val loss 0.9\rval loss 0.4\rval loss 0.2") == 0.2


def test_what_an_earlier_attempt_printed_does_not_count():
    earlier = "val loss 0.1\n"
    assert of_log(f"{earlier}val loss 0.7\n", begins_at=len(earlier), best="min") == 0.7
    assert of_log("val loss 0.7\n", begins_at=999) == 0.7, "a log that somebody has cut is whole"


def test_matches_are_found_across_windows_and_behind_megabytes_without_one():
    line = b"a line of a progress bar, again and again\n"
    many = line * (3 * read.WINDOW_BYTES // len(line))
    assert of_log(b"val loss 0.25\n" + many + b"val loss 0.75\n" + many) == 0.75
    assert of_log(b"val loss 0.25\n" + many + b"val loss 0.75\n" + many, best="min") == 0.25


def test_a_line_is_cut_and_one_that_never_ends_takes_no_memory():
    assert of_log("x" * 4000 + " val loss 0.5\n") == 0.5
    endless = b"x" * (5 * read.WINDOW_BYTES)
    assert why(of_log, endless + b" val loss 0.5\n") == "nothing was found"
    assert of_log(endless + b"\nval loss 0.5\n") == 0.5


def test_each_window_is_announced():
    seen: list[int] = []
    data = io.BytesIO(b"val loss 0.5\n" * 20_000)
    chosen(in_log(data, 0, LOSS, lambda: seen.append(1)), None)
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("text", "best", "expected"),
    [
        ("val loss 0.5\nval loss nan\n", None, "'nan' is not a number"),
        ("val loss 0.5\nval loss nan\n", "min", 0.5),
        ("val loss nan\n", "min", "'nan' is not a number"),
        ("val loss 1.2.3\n", None, "'1.2.3' is not a number"),
        ("loss 0.5\n", None, "nothing was found"),
        ("", None, "nothing was found"),
    ],
)
def test_what_is_no_number_is_no_zero(text, best, expected):
    if isinstance(expected, float):
        assert of_log(text, best=best) == expected
    else:
        with pytest.raises(NoNumberError) as found:
            of_log(text, best=best)
        assert str(found.value) == expected


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("val loss ([0-9.]+)", "step 2: val loss 9.5e-05", 9.5e-05),
        ("val loss ([0-9.]+)", "val loss 9.5e-05, lr 1", 9.5e-05),
        ("val loss ([0-9.]+)", "val loss 9.5E+2s", 950),
        (r"ep_rew_mean +\| ([0-9.]+)", "|    ep_rew_mean      | 1.23e+03     |", 1230),
        ("'learning_rate': '?([0-9.]+)", "{'learning_rate': '9.537e-05'}", 9.537e-05),
        ("loss ([0-9.e]+)", "loss 9.5e-05", 9.5e-05),
        (r"loss (-?\d)", "loss -12.75", -12.75),
        (r"loss:(\s*\d+)", "loss:  12.75e1", 127.5),
        ("([0-9.]+)", "9.5e-05", 9.5e-05),
        ("loss ([0-9.]+)", "loss 0.5.", 0.5),
        (r"epoch (\d+)", "epoch 3/40", 3),
        (r"on (\d+)", "on 27.11.2026", 27),
        (r"seed (\d+)", "seed 3 e5", 3),
        (r"loss ([-+.0-9e]+)", "loss 9.5e-05", 9.5e-05),
    ],
)
def test_a_match_that_ends_inside_a_number_is_the_whole_number(pattern, line, expected):
    found = in_log(io.BytesIO(line.encode()), 0, re.compile(pattern), lambda: None)
    assert chosen(found, None) == expected


def test_a_number_that_is_cut_by_the_longest_line_is_read_whole():
    assert of_log("x" * (read.LONGEST_LINE - 12) + "val loss 0.0625\n") == 0.0625


def test_of_a_log_that_grows_a_number_at_its_very_end_may_be_half_of_one():
    for end, expected in (("0.2", 0.9), ("9.5e-", 0.9), ("0.2 ", 0.2), ("0.2\r", 0.2)):
        log = io.BytesIO(f"val loss 0.9\nval loss {end}".encode())
        assert chosen(in_log(log, 0, LOSS, lambda: None, is_growing=True), None) == expected


CSV = b"epoch,top1 , note\n1,0.5,\n2,0.75,a\n3,0.6,\n"


def test_of_a_csv_the_last_row_counts_or_the_best():
    assert chosen(in_csv(CSV, "top1"), None) == 0.6
    assert chosen(in_csv(CSV, "top1"), "max") == 0.75
    assert chosen(in_csv(b"\xef\xbb\xbfa;b\r\n1;2\r\n", "b"), None) == 2


def test_rows_that_say_nothing_of_the_column_are_passed_over():
    """Lightning writes a row for the training and one for the validation."""
    data = b"epoch,train,val\n1,0.9,\n1,,0.4\n2,0.8,\n3\n"
    assert chosen(in_csv(data, "val"), None) == 0.4


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (CSV, "no column 'acc'; columns: epoch, top1, note"),
        (b"", "no column 'acc'; columns: none"),
        (b"acc\n0.5\nnan\n", "'nan' is not a number"),
        (b"acc\n0.5\ndiverged\n", "'diverged' is not a number"),
        (b"acc\n", "nothing was found"),
        (b"acc\n" + b"x" * 200_000, "not a CSV file: field larger than field limit (131072)"),
    ],
)
def test_a_csv_without_the_number_says_why(data, sentence):
    assert why(lambda: chosen(in_csv(data, "acc"), None)) == sentence


def test_a_key_of_json_is_spelled_out_or_leads_into_objects():
    data = b'{"test": {"dice": 0.5}, "a.b": 2, "n": 7}'
    assert [of_json(data, key) for key in ("test.dice", "a.b", "n")] == [0.5, 2, 7]


@pytest.mark.parametrize(
    ("data", "key", "sentence"),
    [
        (b'{"a": 1}', "b", "no key 'b'"),
        (b'{"a": {"c": 1}}', "a.b", "no key 'a.b'"),
        (b'{"a": 1}', "a.b", "no key 'a.b'"),
        (b"[1]", "0", "no key '0'"),
        (b'{"a": "0.5"}', "a", "'\"0.5\"' is not a number"),
        (b'{"a": true}', "a", "'true' is not a number"),
        (b'{"a": NaN}', "a", "'NaN' is not a number"),
        (b'{"a": 1' + b"0" * 400 + b"}", "a", f"'1{'0' * 35}... is not a number"),
    ],
)
def test_a_json_without_the_number_says_why(data, key, sentence):
    assert why(of_json, data, key) == sentence


def real(path: str) -> bytes:
    return (Path(__file__).parents[2] / "data" / "numbers" / path).read_bytes()


def test_of_json_lines_the_last_line_with_the_key_counts_or_the_best():
    data = real("sb3/progress.json")
    assert of_json(data, "rollout/ep_rew_mean") == 22.272727272727273
    assert of_json(data, "rollout/ep_rew_mean", "max") == 30.0
    assert of_json(real("ray/result.json"), "config.lr") == 0.1
    assert of_json(b'{"a": 1}\n{"b": 2}\n{"a": 3', "a") == 1, "a last line that was cut off"


def test_of_a_trainers_state_the_last_that_it_logged_counts_or_the_best():
    data = real("trainer/trainer_state.json")
    assert of_json(data, "eval_loss") == 1.0815927982330322
    assert of_json(data, "loss", "max") > of_json(data, "loss", "min") > 0
    assert of_json(data, "global_step") == 12


@pytest.mark.parametrize("best", [None, "min"])
def test_a_loss_that_transformers_logs_as_0_for_nan_is_no_number(best):
    state, log = real("trainer_nan/trainer_state.json"), real("trainer_nan/train.log")
    found = in_log(io.BytesIO(log), 0, re.compile(r"'loss': '([^']+)"), lambda: None)
    if best:
        assert of_json(state, "loss", best) == 4.385199069976807
        assert chosen(found, best) == 4.385
    else:
        assert why(of_json, state, "loss").startswith("0 beside a grad_norm that is not finite")
        assert why(chosen, found, None).startswith("0 beside a grad_norm that is not finite")


def test_the_comment_before_the_names_of_sb3s_monitor_is_none_of_them():
    assert chosen(in_csv(real("sb3/train.monitor.csv"), "r"), "max") == 55.0


def test_where_a_number_stands_is_told():
    found = in_log(io.BytesIO(b"a\nstep 3: val loss 0.5, x\n"), 0, LOSS, lambda: None)
    assert read.chosen(found, None)[1].where == "step 3: val loss 0.5, x"
    long = b"y" * 200 + b" val loss 0.5 " + b"z" * 200
    where = read.chosen(in_log(io.BytesIO(long), 0, LOSS, lambda: None), None)[1].where
    assert "val loss 0.5" in where and len(where) < 80
    assert read.chosen(in_csv(CSV, "top1"), "max")[1].where == "row 2"


def test_pythons_own_spelling_of_a_number_is_none():
    assert why(lambda: chosen(in_csv(b"a\n1_2\n", "a"), None)) == "'1_2' is not a number"


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000])
def test_what_is_no_json_says_so(data):
    assert why(of_json, data, "a").startswith("not JSON")


# --- records


def test_a_counter_that_begins_anew_with_each_epoch_is_no_step():
    rows = [{"epoch": e, "iter": i, "loss": 1.0} for e in (1, 2) for i in (1, 2)]
    assert [step for step, _, _ in records.points(rows, "loss")] == [None] * 4


def test_a_step_that_goes_back_with_its_epoch_was_resumed():
    rows = [{"epoch": s // 2, "step": s, "loss": 1.0} for s in (1, 2, 3, 2, 3, 4)]
    assert [step for step, _, _ in records.points(rows, "loss")] == [1, 2, 3, 2, 3, 4]


def test_what_became_null_because_it_was_not_finite_is_nan():
    rows = [{"step": 1, "loss": None, "nonfinite": ["loss"], "note": "x", "ok": True}]
    [(step, at, value)] = records.all_points(rows)["loss"]
    assert (step, at) == (1, None) and math.isnan(value)


def test_the_time_of_a_row_is_its_own_word_or_its_stamp():
    rows = [{"a": 1, "at": "1970-01-01T00:00:10.000Z"}, {"a": 1, "timestamp": 1.7e9}]
    rows += [{"a": 1, "timestamp": 12.5}, {"a": 1, "at": "yesterday"}]
    assert [at for _, at, _ in records.points(rows, "a")] == [10.0, 1.7e9, None, None]


def test_a_loss_of_0_beside_a_gradient_that_is_not_finite_is_nan():
    for text, is_nan in (("NaN", True), ("Infinity", True), ("0.5", False)):
        [row] = records.of_json(f'{{"loss": 0.0, "grad_norm": {text}}}'.encode())
        [(_, _, value)] = records.points([row], "loss")
        assert math.isnan(value) == is_nan


def test_yes_and_no_are_no_numbers():
    rows = records.of_json(b'{"ok": true, "loss": 1, "step": 1}')
    assert records.all_points(rows).keys() == {"loss", "step"}
    assert list(records.points(rows, "ok")) == []


# --- event files


REAL = Path(__file__).parents[2] / "data" / "numbers"
TORCH = (REAL / "torch" / "events.out.tfevents.torch").read_bytes()


def of(data: bytes) -> list[Scalar]:
    return list(scalars(io.BytesIO(data)))


def test_scalars_of_both_ways_are_read_with_step_time_and_nan():
    found = of(TORCH)
    loss = [one for one in found if one.tag == "loss/val"]
    assert [one.step for one in loss] == [0, 1, 2, 3, 4, 5]
    assert (loss[1].value, loss[1].at) == (0.5, 1795000010.0) and math.isnan(loss[5].value)
    acc = [one.value for one in found if one.tag == "acc"]
    assert acc == [struct.unpack("<f", struct.pack("<f", 0.5 + n / 10))[0] for n in range(5)]
    assert next(one for one in found if one.tag == "before").step == -1


def test_pictures_texts_and_histograms_are_no_scalars():
    assert {one.tag for one in of(TORCH)} == {"loss/val", "acc", "before"}


def test_of_a_file_that_is_cut_off_what_came_before_counts():
    whole = of(TORCH)
    for size in range(0, len(TORCH), 7):
        found = of(TORCH[:size])
        assert repr(found) == repr(whole[: len(found)])


def test_a_length_of_nonsense_ends_the_reading_and_asks_for_no_memory():
    assert of(struct.pack("<Q", 2**63) + bytes(100)) == []
    assert of(TORCH + struct.pack("<Q", 2**40) + bytes(64))[-1] == of(TORCH)[-1]
    assert of(b"") == of(b"\x00" * 11) == []


def test_damage_anywhere_raises_nothing():
    chance = random.Random(0)
    for _ in range(2000):
        data = bytearray(TORCH)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for one in of(bytes(data)):
            assert math.isfinite(one.at) and isinstance(one.value, float)


def test_a_record_larger_than_any_scalar_is_passed_over():
    size = 1024 * 1024
    large = struct.pack("<Q", size) + bytes(4) + bytes(size) + bytes(4)
    assert repr(of(large + TORCH)) == repr(of(TORCH))


def field(number: int, data: bytes) -> bytes:
    """A field of bytes of a message, its length as a varint."""
    size, length = len(data), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def event(value: bytes, at: float = 1.5, tag: str = "loss") -> bytes:
    """A record: an Event of wall time, step 7 and a Summary with one Value."""
    return record(field(5, field(1, field(1, tag.encode()) + value)), at)


def record(summary: bytes, at: float = 1.5) -> bytes:
    data = b"\x09" + struct.pack("<d", at) + b"\x10\x07" + summary
    return struct.pack("<Q", len(data)) + bytes(4) + data + bytes(4)


def tensor(dtype: int, *fields: bytes) -> bytes:
    """A Value's tensor of that type, as TensorFlow 2 and JAX write scalars."""
    return field(8, bytes([0x08, dtype]) + b"".join(fields))


SIMPLE = b"\x15" + struct.pack("<f", 0.25)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (SIMPLE, 0.25),
        (tensor(1, field(4, struct.pack("<f", 0.25))), 0.25),
        (tensor(2, field(4, struct.pack("<d", 0.1))), 0.1),
        (tensor(19, field(4, struct.pack("<e", 0.5))), 0.5),
        (tensor(1, field(5, struct.pack("<f", 0.25))), 0.25),
        (tensor(2, field(6, struct.pack("<d", 0.1))), 0.1),
    ],
)
def test_a_scalar_is_a_number_or_a_tensor_of_any_float(value, number):
    assert of(event(value)) == [Scalar("loss", 7, 1.5, number)]


def test_a_tensor_of_a_shape_is_no_scalar_though_it_has_one_number():
    one = field(2, field(2, b"\x08\x01"))
    assert of(event(tensor(1, one, field(4, struct.pack("<f", 0.25)))) + event(SIMPLE)) == of(
        event(SIMPLE)
    )


@pytest.mark.parametrize("at", [math.nan, math.inf])
def test_a_time_that_is_none_makes_no_scalar(at):
    assert of(event(SIMPLE, at)) == []


def test_a_scalar_in_a_record_larger_than_any_is_passed_over():
    assert of(event(SIMPLE, tag="x" * 100_000) + event(SIMPLE)) == of(event(SIMPLE))


def test_a_field_that_says_more_bytes_than_there_are_ends_the_reading():
    value = field(1, field(1, b"loss") + SIMPLE)
    cut = bytes([5 << 3 | 2, len(value) + 1]) + value
    assert of(event(SIMPLE) + record(cut) + event(SIMPLE)) == of(event(SIMPLE))

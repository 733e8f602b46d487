from __future__ import annotations

import pytest

from boxcar.laptop.common import units


def test_durations_read_as_people_say_them():
    spelled = [units.duration(seconds) for seconds in (0.4, 59.9, 83, 3599, 7500)]
    assert spelled == ["0s", "59s", "1m23s", "59m59s", "2h05m"]


def test_times_in_narrow_columns_are_shorter_and_still_say_days():
    spelled = [units.about(seconds) for seconds in (41, 725, 7500, 273_000)]
    assert spelled == ["41s", "12m", "2h05m", "3d03h"]


@pytest.mark.parametrize(
    ("size_bytes", "spelled"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (3e14, "300.0 TB")]
)
def test_sizes_read_as_people_say_them(size_bytes, spelled):
    assert units.size(size_bytes) == spelled


def test_counts_are_exact_up_to_what_a_column_has_room_for():
    spelled = [units.count(number) for number in (0, 9999, 10_000, 1_499_600)]
    assert spelled == ["0", "9999", "10k", "1,500k"]


def test_of_a_measured_number_four_digits_are_shown():
    assert [units.four_digits(n) for n in (0.98765, 1.2349e-5, 12)] == ["0.9877", "1.235e-05", "12"]

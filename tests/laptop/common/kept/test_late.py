from __future__ import annotations

from boxcar.laptop.common.kept.late import Late, LateEach


def test_it_is_made_once_and_only_for_who_asks() -> None:
    made = list[str]()
    late = Late(lambda: [made.append("once") or "a", "b", "c"])
    assert not made
    assert (len(late), late[1], late[-1], [*late], late[1:]) == (
        *(3, "b", "c", ["a", "b", "c"]),
        ("b", "c"),
    )
    assert late == ("a", "b", "c") == late and late != ("a",) and hash(late) == hash((*late,))
    assert made == ["once"]


def test_each_is_made_when_it_is_asked_for() -> None:
    made = list[int]()
    late = LateEach(range(10), lambda one: made.append(one) or -one)
    assert (len(late), late[3], late[-1], late[1:3], made) == (10, -3, -9, [-1, -2], [3, 9, 1, 2])
    assert [*late] == [-one for one in range(10)] and late == [*late]

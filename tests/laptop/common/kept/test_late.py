from __future__ import annotations

from boxcar.laptop.common.kept.late import Late


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

from __future__ import annotations

import pytest

from boxcar.laptop.project.grids.grid_axes import MOST_CELLS, axis, combinations


def words(word: str) -> list[str]:
    return list(axis(word).words())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("lr=1e-3,3e-4", ["lr=1e-3", "lr=3e-4"]),
        ("seed=0..2", ["seed=0", "seed=1", "seed=2"]),
        ("seed=-1..1,7", ["seed=-1", "seed=0", "seed=1", "seed=7"]),
        ("layers=[1,2]", ["layers=[1,2]"]),
        ("layers=[1,2],[3,(4,5)]", ["layers=[1,2]", "layers=[3,(4,5)]"]),
        ('names="a,b",c', ["names=a,b", "names=c"]),
        ("x=['a,]',2]", ["x=['a,]',2]"]),
        ("{a:1,b:2}=3", ["{a:1,b:2}=3"]),
        ("--lr=1,2", ["--lr=1", "--lr=2"]),
        ("+a.b=1,2", ["+a.b=1", "+a.b=2"]),
        ("--amp", ["--amp"]),
        ("data=../a,../b", ["data=../a", "data=../b"]),
        ("u=k=v,w", ["u=k=v", "u=w"]),
        ("数据=甲,乙", ["数据=甲", "数据=乙"]),
    ],
)
def test_a_word_has_its_values(word: str, expected: list[str]) -> None:
    assert words(word) == expected


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("lr", "expected key=value,value or key=0..2, found 'lr'"),
        ("=1", "expected key=value"),
        ("--", "expected key=value"),
        ("lr=", "empty value"),
        ("lr=1,,2", "empty value"),
        ("lr=''", "empty value"),
        ("seed=0..10..5", "a range is two whole numbers,"),
        ("seed=0.1..0.5", "a range is two whole numbers,"),
        ("seed=01..10", "a range is two whole numbers,"),
        (f"seed=0..{10**30}", "a range is two whole numbers,"),
        ("seed=3..1", "ends before it begins"),
        ("x=[1,2", "] is missing at the end"),
        ("x=it's", "' is missing at the end"),
    ],
)
def test_what_is_no_axis_is_refused_with_the_word(word: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        axis(word)
    assert said in str(caught.value)


def test_the_last_axis_changes_fastest() -> None:
    found = combinations([axis("a=1,2"), axis("--on"), axis("b=x,y")])
    assert found == [
        ("a=1", "--on", "b=x"),
        ("a=1", "--on", "b=y"),
        ("a=2", "--on", "b=x"),
        ("a=2", "--on", "b=y"),
    ]


def test_a_grid_that_is_too_large_is_refused_with_its_size_before_it_is_made() -> None:
    assert len(combinations([axis("a=1..100"), axis("b=1..100")])) == MOST_CELLS
    with pytest.raises(ValueError, match=r"has 10,100 cells \(101 x 100\), the limit is 10,000"):
        combinations([axis("a=0..100"), axis("b=1..100"), axis("c=7")])
    with pytest.raises(ValueError, match=r"has 1,000,000,000,000 cells"):
        combinations([axis("a=1..1000000"), axis("b=1..1000000")])


@pytest.mark.parametrize("word", ["lr=1,1", "seed=0..3,2"])
def test_a_value_that_stands_twice_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is twice in the grid"):
        combinations([axis(word)])

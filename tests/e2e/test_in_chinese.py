"""A failing run, walked by a reader of Chinese from plan to the teardown, with real agents."""

from __future__ import annotations

import re

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# What is typed, where something lies, and a sign of a clock.
NO_SENTENCE = re.compile(r"boxcar [\w -]+|/\S+|\{[^}]*\}|`[^`]*`|\S+\.\S+|⠋.*")
ENGLISH = re.compile(r"(?<![\w-])[A-Za-z']+ [a-z']+ [a-z']+")
# Western punctuation between Chinese words.
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:?!()]|[,;:?!()][\u4e00-\u9fff]")
NOT_OURS = ("KeyError: 'lr schedule is missing'",)
ZH = {"LC_ALL": "zh_CN.UTF-8", "COLUMNS": "200"}


def test_a_failing_run_is_walked_in_one_language(project):
    run = project({"q1": ["configs/a.json one", "configs/b.json one", "configs/c.json one"]})
    run.write_config("b", exit_code=3)
    train = run.root / "train.py"
    raises = f"if config.get('x') == 9:\n    raise {NOT_OURS[0].replace(': ', '(', 1)})\n"
    train.write_text(train.read_text() + raises)
    run.write_config("c", x=9)
    walk = [
        ("plan",),
        ("launch", "--no-smoke"),
        ("watch",),
        ("status",),
        *(("explain", cell) for cell in "abc"),
        ("pull",),
        ("verify",),
        ("report",),
        ("runs",),
        ("down",),
        ("down", "--abandon", "b", "--abandon", "c", "--because", "不需要了"),
        ("explain", "b"),
        ("status",),
    ]
    for words in walk:
        said = run.boxcar(*words, env=ZH)
        text = said.out + said.err
        for theirs in NOT_OURS:
            text = text.replace(theirs, "")
        assert "Traceback" not in text and CHINESE.search(text), str(said)
        lines = [NO_SENTENCE.sub("", line) for line in text.splitlines()]
        assert not [one for one in lines if ENGLISH.search(one)], str(said)
        assert not [one for one in lines if HALF_WIDTH.search(one)], str(said)
    assert "已放弃：不需要了" in run.boxcar("explain", "c", env=ZH).out

"""The corpus of texts, and docs/triage.md: how often one gets the right class and name."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from triage_corpus import DATA, Case, cases

from boxcar.shared.triage.evidence import Course, Evidence
from boxcar.shared.triage.judge import judge
from boxcar.shared.triage.signatures.all_rows import BY_ID, SIGNATURES

PAGE = Path(__file__).parents[3] / "docs" / "triage.md"
# Texts, classes right and names right before anything was learned from them, and what they were.
_BATCHES: tuple[tuple[int, int, int | None, str], ...] = (
    (115, 103, 102, "in the habits of torchrun, Hugging Face, Slurm, Kubernetes, ..."),
    (54, 50, 49, "the same"),
    (25, 21, None, "the same"),
    (92, 66, 45, "public threads, like all below"),
    (43, 30, 24, "AMD's and Huawei's accelerators among them"),
    (31, 26, 23, ""),
    (63, 58, 56, "some were cut off before their error, and were completed"),
    (47, 41, 34, "the same"),
    (17, 15, 13, ""),
    (49, 36, 31, "schedulers, containers, AMD, Huawei, builds"),
    (39, 29, 26, "pictures, speech, language; single sentences among them"),
    (30, 23, 20, "half of them single lines that people quote"),
    (31, 27, 25, "of many kinds"),
    (31, 30, 25, "of many kinds"),
    (15, 10, 10, "most of one CUDA extension"),
    (32, 23, 18, "labelled and judged by others, like all below; `PY` does not count as a name"),
    (31, 25, 20, "gym, lmdb, Intel's GPUs among them"),
    (30, 27, 24, "of many kinds"),
    (30, 29, 29, "famous errors, fewer exotic ones"),
    (32, 24, 21, "less famous ones: NPUs, TPUs, ROCm, shared memory"),
    (32, 28, 20, "famous and rarer ones: gloo, Intel's GPUs, Paddle, Keras"),
    (31, 26, 21, "graphs, speech, medicine, robots, Horovod, the kernel's log"),
    (31, 27, 26, "a second judge's: clusters, hubs, trackers, data"),
    (26, 21, 21, "the first judge's: famous ones, memory of other accelerators"),
    (34, 28, 27, "the second judge's: containers, Ray, kills, trackers"),
    (29, 23, 23, "machines: C++ aborts, dead GPUs, containers, trackers, NPUs"),
    (25, 17, 14, "machines: Horovod, TPUs, ROCm, SageMaker, builds"),
    (19, 11, 9, "machines: PBS, LSF, InfiniBand, Intel's GPUs, a launcher's hosts"),
    (43, 42, 41, "a third judge's: what most people meet; two classes allowed for most"),
    (43, 41, 41, "the third judge's: rarer ones; two classes allowed for most"),
)
_HEAD = """# How well failures are named

{own} texts of failures were written with the signatures, and {others} after them. The table shows
what each later batch got at first sight, before anything was learned from it, in order of time.
Labels of public threads were written before any text was judged. Some allow several classes.

| texts | class right | name right | |
| --- | --- | --- | --- |
{batches}

Below are all texts as they are judged now. A row is the right class, a column the class that came
out. Where several classes are right, any of them counts. The texts are in `tests/data/triage/`.
This page is made from them:
`BOXCAR_GOLDEN=write .venv/bin/pytest tests/shared/triage/test_confusion.py`.

"""


def _batches() -> str:
    return "\n".join(
        f"| {texts} | {_of_100(classes, texts)} | {_of_100(names, texts)} | {remark} |"
        for texts, classes, names, remark in _BATCHES
    )


def _of_100(right: int | None, texts: int) -> str:
    return "" if right is None else f"{right} ({100 * right / texts:.0f} of 100)"


def right(found: list[Case]) -> tuple[int, int]:
    """How many have the right class, and how many the right name."""
    pairs = [is_right(case) for case in found]
    return sum(course for course, _ in pairs), sum(name for _, name in pairs)


def is_right(case: Case) -> tuple[bool, bool]:
    return case.judged.course.value in case.courses, case.is_named(case.judged.id)


def page() -> str:
    own, others = cases("own"), cases("heldout")
    table: Counter[tuple[str, str]] = Counter()
    for case in (*own, *others):
        found = case.judged.course.value
        table[found if found in case.courses else case.courses[0], found] += 1
    names = [course.value for course in Course]
    rows = [
        "| " + " | ".join([f"`{a}`", *(str(table[a, b] or "") for b in names)]) + " |"
        for a in names
    ]
    head = "| | " + " | ".join(f"`{name}`" for name in names) + " |"
    lines = [head, "|" + " --- |" * (len(names) + 1), *rows, ""]
    for what, found in (("written with the signatures", own), ("written after them", others)):
        classes, ids = right(found)
        lines.append(f"Texts {what}: {len(found)}; class right {classes}, name right {ids}.")
    return (
        _HEAD.format(own=len(own), others=len(others), batches=_batches()) + "\n".join(lines) + "\n"
    )


def test_each_text_of_the_signatures_is_named_and_done_the_right_thing_about():
    wrong = [(one.file, one.ids, one.judged) for one in cases("own") if not all(is_right(one))]
    assert wrong == []


def test_every_row_has_a_text_and_an_id_of_its_own():
    without = {row.id for row in SIGNATURES} - {id for case in cases("own") for id in case.ids}
    assert without == set()
    assert len(BY_ID) == len(SIGNATURES)


def test_what_a_training_says_while_all_is_well_names_no_failure_of_its_end():
    step, killed = "epoch 1 step 1 loss 0.5\n", "run.sh: line 3: 99 Killed  python train.py\n"
    for line in (DATA / "ordinary.txt").read_text("utf-8").splitlines():
        log = f"{step}{line}\n{step}{step}"
        found = (judge(Evidence(log)), judge(Evidence(log + killed, rcs=frozenset({137}))))
        assert [cause.id for cause in found] == ["", "137-N"], line


def test_a_line_of_a_rank_counts_where_only_other_ranks_go_on():
    log = "[rank1]: CUDA error: out of memory\n" + "[rank0]: epoch 1 step 1 loss 0.5\n" * 3
    assert judge(Evidence(log)).id == "M2"
    assert judge(Evidence(log.replace("[rank0]", "[rank1]"))).id == ""


def test_at_least_90_in_100_of_other_texts_get_the_right_class_and_75_the_right_name():
    others = cases("heldout")
    classes, names = right(others)
    assert classes >= 0.9 * len(others)
    assert names >= 0.75 * len(others)


def test_the_page_is_as_the_texts_are_judged():
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()

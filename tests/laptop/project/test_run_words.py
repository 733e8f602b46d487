from __future__ import annotations

import pytest

from boxcar.laptop.project import job_values


def test_each_file_is_a_queue_with_a_box_of_its_own() -> None:
    assert job_values.queues_of("bash run_queue.sh queue.txt 'more queues/b.txt'") == {
        "queue.txt": "box-a",
        "more queues/b.txt": "box-b",
    }


@pytest.mark.parametrize(
    "text",
    [
        "bash run_queue.sh",
        "sh run_queue.sh a.txt",
        "bash other.sh a.txt",
        "run_queue.sh a.txt",
        "bash 'a",
        "",
        3,
        "bash run_queue.sh " + " ".join(f"{n}.txt" for n in range(27)),
    ],
)
def test_any_other_words_are_refused(text: object) -> None:
    with pytest.raises(ValueError):
        job_values.queues_of(text)

from __future__ import annotations

from boxcar.shared.files.heartbeat import Copying
from onbox.agent.settler import CopySoFar


def test_each_byte_counts_when_it_is_written_and_when_it_is_read_back() -> None:
    one = CopySoFar()
    assert one.now is None
    on_chunk = one.begin("a", 100)
    on_chunk(60)
    assert one.now
    assert one.now == Copying("a", one.now.since, 60, 200)
    on_chunk(40)
    on_chunk(100)
    assert one.now.done_bytes == one.now.total_bytes == 200
    one.end()
    assert one.now is None


def test_of_a_file_that_grows_meanwhile_no_more_is_done_than_there_is() -> None:
    one = CopySoFar()
    one.begin("a", 10)(50)
    assert one.now
    assert one.now.done_bytes == 20

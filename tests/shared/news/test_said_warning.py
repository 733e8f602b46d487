from __future__ import annotations

import pytest

from boxcar.shared.catalogue.sentence import in_language
from boxcar.shared.news import text

LATE = {"what": "mirror_late", "text": "as the box says it", "cell": "a", "seconds": 30.0}


@pytest.mark.parametrize(
    ("data", "language", "said"),
    [
        ({"what": "disk_full", "text": "its own words"}, "zh", "its own words"),
        (
            LATE | {"mirrored_at": "2026-11-23T04:05:06.789Z"},
            "en",
            "the newest checkpoint of a did not reach the durable tier within the 30 s that the "
            "box had: the one there is from 2026-11-23 04:05:06 UTC",
        ),
        (
            LATE,
            "zh",
            "机器只剩 30 秒，a 的 checkpoint 一份也没传到持久存储："
            "如果机器没了，这个 cell 要从头开始",
        ),
    ],
)
def test_a_warning_is_said_in_the_readers_language_where_its_fields_tell(data, language, said):
    assert in_language(text.said_warning(data), language) == said

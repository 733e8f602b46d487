"""What `plan` says when it ends: how much it is, and what is to be done first."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "size": Said(
        "{cells:,} {cells:cell|cells}, {boxes} {boxes:box|boxes}",
        "{cells:,} 个 cell，{boxes} 台机器",
    ),
    "size_and_time": Said(
        "{size}, about {time} (from earlier runs)", "{size}，约需 {time}（按以往的运行估计）"
    ),
    "next": Said("{size}. Next", "{size}。下一步"),
    "not_yet": Said("{size}. Fix what is said above, then", "{size}。请先解决上述问题，然后"),
    "no_candidate": Said(
        "{at}: there is no profile {name!r}{near}; it is left out of the choice. Take it out, or "
        "write the name of one: {known}",
        "{at}：没有名为 {name!r} 的 profile{near}，选择时会被忽略。请删除它，"
        "或改成已有的名称：{known}",
    ),
}

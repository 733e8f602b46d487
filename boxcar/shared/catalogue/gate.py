"""What `down` says and asks before anything ends."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "will": Said("{verb!r} will {does}. This is lost:", "{verb!r} 将会 {does}。以下内容会丢失："),
    "stays": Said("This stays: {folder} ({size})", "以下内容保留：{folder}（{size}）"),
    "type": Said(
        "Type the run's name ({run}) to approve {verb!r}: ",
        "请输入 run 的名字（{run}）以批准 {verb!r}：",
    ),
    "not_its_name": Said(
        "{typed!r} is not the run's name; nothing was touched",
        "{typed!r} 不是该 run 的名字；没有做任何改动",
    ),
    "refused": Said(
        "refused, and nothing removed: {n} {n:thing|things} missing",
        "已拒绝，没有删除任何东西：还缺 {n} 项",
    ),
    "results_stay": Said("The results stay in {folder}", "结果保留在 {folder}"),
    "done": Said(
        "{verb}: done at {at}, approval {approval}", "{verb}：已于 {at} 完成，批准凭据 {approval}"
    ),
}

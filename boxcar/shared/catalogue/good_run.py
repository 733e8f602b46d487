"""What a run that goes well shows, from smoke to verify."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "under": Said("{head}: {text}", "{head}：{text}"),
    "next": Said("Next", "下一步"),
    # smoke
    "smoke_of": Said("smoke of {run}", "{run} 的试跑"),
    "passed": Said("passed", "通过"),
    "passed_before": Said("passed before", "此前已通过"),
    "smoke_failed": Said(
        "{bad} of {n} {n:cell|cells} failed. Fix that, then",
        "{n} 个 cell 中有 {bad} 个失败。请先修复，然后",
    ),
    # audit
    "audit_of": Said("{run}: audit", "{run}：检查机器"),
    "audit_fine": Said("all is as it should be. Next", "一切正常。下一步"),
    "audit_warned": Said(
        "nothing is refused, {n} {n:warning|warnings}. Next", "没有被拒绝的项，{n} 条警告。下一步"
    ),
    # push
    "release_new": Said("release {release} is new: {origin}", "新的 release {release}：{origin}"),
    "release_there": Said(
        "release {release} was there already: {origin}", "release {release} 已在那里：{origin}"
    ),
    "commit": Said("commit {commit}", "提交 {commit}"),
    "commit_changed": Said(
        "commit {commit} with changes (kept as code.diff)",
        "提交 {commit}，另有未提交的改动（保存为 code.diff）",
    ),
    "no_commit": Said("the code is in no git commit", "代码不在任何 git 提交中"),
    "appended": Said(
        "{queue}: {n} {n:line|lines} appended to {file}", "{queue}：已向 {file} 追加 {n} 行"
    ),
    # launch
    "runs": Said("runs {cell} on {box}", "正在 {box} 上运行 {cell}"),
    "waits": Said("its agent runs and waits for lines", "agent 已启动，等待新的行"),
    "done": Said("done", "已完成"),
    "left_alone": Said(
        "{queue}: its agent is running and was left alone", "{queue}：agent 正在运行，未作改动"
    ),
    # pull
    "here": Said(
        "{here} of {n} {n:cell|cells} here: {folder}", "{n} 个 cell 中已取回 {here} 个：{folder}"
    ),
    "here_next": Said("{here}. Next", "{here}。下一步"),
    "not_published": Said("not published yet: {cells}", "尚未发布：{cells}"),
    # verify
    "loading": Said("loading {n} {n:artifact|artifacts}", "正在加载 {n} 个产物"),
    "results_of": Said("{run}: results", "{run}：结果"),
    "settled": Said(
        "{settled} of {n} cells are verified or abandoned; receipt {receipt}: {file}",
        "{n} 个 cell 中 {settled} 个已验证或已放弃；凭据 {receipt}：{file}",
    ),
    "settled_dropped": Said(
        "{settled} of {n} cells are verified, dropped or abandoned; receipt {receipt}: {file}",
        "{n} 个 cell 中 {settled} 个已验证、已移除或已放弃；凭据 {receipt}：{file}",
    ),
}

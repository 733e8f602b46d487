"""What a run that goes well shows, from smoke to verify."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "under": Said("{head}: {text}", "{head}：{text}"),
    "what_then": Said("{what}. {then}", "{what}。{then}"),
    "next": Said("Next", "下一步"),
    # smoke
    "smoke_of": Said("smoke of {run}", "{run} 的试跑"),
    "passed": Said("passed", "通过"),
    "passed_before": Said("passed before", "此前已通过"),
    "failed": Said("failed", "失败"),
    "timed_out": Said("timed out", "超时"),
    "skipped": Said("skipped", "跳过"),
    "not_tried": Said("not tried", "未试"),
    "n_more": Said("{n} more", "另外 {n} 个"),
    "one_of_each_kind": Said(
        "one of each kind was tried; smoke --all tries each",
        "每一类试了一个；smoke --all 会逐个试",
    ),
    "smoke_at_work": Said(
        "{folder}: another smoke or rehearse of this run is at work there (process {pid}). Wait "
        "for its end, or end it: kill {pid}",
        "{folder}：本运行的另一个 smoke 或 rehearse 正在使用它（进程 {pid}）。"
        "请等它结束，或结束它：kill {pid}",
    ),
    "try_at_work": Said(
        "{folder}: a try goes on there whose smoke or rehearse was killed. End it, then run this "
        "again: kill -- -{pid}",
        "{folder}：smoke 或 rehearse 已被杀死，但它试跑的进程还在。"
        "请结束它，再重试：kill -- -{pid}",
    ),
    "unknown_at_work": Said(
        "{folder}: somebody is at work there. To see which process: lsof {file}. Run this again "
        "when it has ended",
        "{folder}：有进程正在使用它。查看是哪个进程：lsof {file}。等它结束后再重试",
    ),
    "fewer_ranks": Said(
        "cells with more ranks are tried with {n}", "进程数更多的 cell 用 {n} 个进程试跑"
    ),
    "end_of_log": Said(
        "--- {cells}: {why}. The end of {log}:", "--- {cells}：{why}。{log} 的末尾："
    ),
    "by_hand": Said("by hand: {command}", "手动重现：{command}"),
    "not_written": Said(
        "not written in so short a run: {files} ({cells}). A finished cell must hold that; see "
        "that your script writes it into {{out}} when it ends",
        "这么短的试跑没有写出：{files}（{cells}）。"
        "跑完的 cell 必须有它；请确认脚本结束时会写入 {{out}}",
    ),
    "does_not_load": Said(
        "what it wrote is none that a box takes (BAD-ART): {problems}",
        "它写出的产物机器不会接受（BAD-ART）：{problems}",
    ),
    "in_no_cell": Said(
        "no cell wrote {files}, though the short run wrote others: on a box each would fail for it "
        "after its whole training (NO-ART). Correct artifacts in job.yaml to what was written; "
        "where only a longer run writes it, give smoke words that come to it",
        "没有 cell 写出 {files}，而短试跑写出了别的产物：在机器上每个 cell 都会在整个训练之后"
        "因此失败（NO-ART）。请把 job.yaml 的 artifacts 改成实际写出的；"
        "若只有更长的运行才会写出它，请给 smoke 能跑到那一步的参数",
    ),
    "found_in": Said(
        "{name} is {value}: {where} of {file} ({cells})",
        "{name} 为 {value}：{file} 的 {where}（{cells}）",
    ),
    "found_in_log": Said(
        "{name} is {value}, by this line of the log: {line} ({cells})",
        "{name} 为 {value}，取自日志中的这一行：{line}（{cells}）",
    ),
    "not_found": Said("{name}: {why} ({cells})", "{name}：{why}（{cells}）"),
    "no_match": Said("nothing in the log matches {of}", "日志中没有内容匹配 {of}"),
    "did_not_write": Said("did not write {files}", "没有写出 {files}"),
    "wrote": Said("but wrote {files}", "只写出了 {files}"),
    "wrote_beside": Said("wrote {files} beside its code", "在代码旁写了 {files}"),
    "reserved": Said("{files}: names that Boxcar uses itself", "{files}：Boxcar 自己使用的名字"),
    "rename": Said(
        "a box leaves out {files}: Boxcar uses these names itself. Rename them in your script; a "
        "cell that leaves nothing else of an artifact fails",
        "机器不会发布 {files}：这些名字由 Boxcar 自己使用。请在脚本里改名；"
        "若某个 artifact 只有它们，cell 会失败",
    ),
    "same_as": Said("the same as {cell}", "与 {cell} 相同"),
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
    # verify, of what collect brought along
    "carried": Said(
        "carried, not proven: {n:,} {n:file|files} ({size}) of {cells} of {all} {all:cell|cells}",
        "一并带回、未经证明：{n:,} 个文件（{size}），来自 {all} 个 cell 中的 {cells} 个",
    ),
    "carried_lost": Said(
        "{n:,} carried {n:file is|files are} not here as published",
        "{n:,} 个一并带回的文件与发布时不符，或已不在这里",
    ),
    "not_carried": Said(
        "left out of it, {why}: of {n} {n:cell|cells}; explain --cell CELL names the files",
        "其中未带回的（{why}）：涉及 {n} 个 cell；用 explain --cell CELL 查看文件名",
    ),
    "not_come": Said(
        "{cell}: {n:,} carried {n:file|files} did not come as published: {names}",
        "{cell}：{n:,} 个一并带回的文件与发布时不符，或缺失：{names}",
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
    "box_here": Said("{box}, which is a folder on this machine", "{box}（本机上的一个目录）"),
    "waits": Said("its agent runs and waits for lines", "agent 已启动，等待新的行"),
    "done": Said("done", "已完成"),
    "took_its_turn": Said(
        "its first task has ended with its cell; the next one takes the next cell",
        "首个任务已完成其单元并结束，下一个任务接着做下一个",
    ),
    "waits_already": Said(
        "{queue}: is submitted already and was left alone, with the limits it was submitted with "
        "(stop, then launch, gives it the new ones): {why}",
        "{queue}：此前已提交，未作改动，仍用提交时的限制（先 stop 再 launch 才用新的）：{why}",
    ),
    "nothing_left": Said(
        "{queue}: every cell of it is verified, so no job is submitted for it",
        "{queue}：所有 cell 都已验证，不再提交作业",
    ),
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
    "hashed": Said(
        "there is no torch here: {n} {n:artifact|artifacts} hashed. Whether they load is the word "
        "of their boxes. To load them here too: {how}",
        "本机没有 torch：{n} 个产物只校验了哈希，能否加载以各机器的结论为准。要在本机也加载：{how}",
    ),
    "unpickled": Said(
        "{file}: unpickled at {at}, as a person had allowed, and not again",
        "{file}：已于 {at} 经人允许加载（unpickle），不再重复",
    ),
    "abandoned": Said("abandoned because {because}", "已放弃，原因：{because}"),
    "dropped": Said(
        "dropped: it never ran, and its line is commented out",
        "已移除：从未运行，它的那一行已被注释掉",
    ),
    "no_number": Said("{metric} is not known: {note}", "{metric} 未知：{note}"),
    # how far the artifacts of a cell were looked into
    "n_loaded": Said("{n} loaded", "{n} 个已加载"),
    "n_hashed": Said("{n} hashed{where}", "{n} 个已校验哈希{where}"),
    "n_trusted": Said("{n} trusted{where}", "{n} 个受信加载{where}"),
    "n_bad": Said("{n} bad", "{n} 个无法加载"),
    "n_bytes_only": Said("{n} bytes only", "{n} 个仅校验字节"),
    "n_in_part": Said("{n} in part", "{n} 个部分检查"),
    "n_gaps": Said("{n} {n:gap|gaps}", "{n} 处缺口"),
    "loaded_on": Said(" (loaded on {boxes})", "（在 {boxes} 上加载）"),
    "then": Said("{first}; {second}", "{first}；{second}"),
    "and": Said("{first}, {second}", "{first}，{second}"),
    "settled": Said(
        "{settled} of {n} cells are verified or abandoned; receipt {receipt}: {file}",
        "{n} 个 cell 中 {settled} 个已验证或已放弃；凭据 {receipt}：{file}",
    ),
    "settled_dropped": Said(
        "{settled} of {n} cells are verified, dropped or abandoned; receipt {receipt}: {file}",
        "{n} 个 cell 中 {settled} 个已验证、已移除或已放弃；凭据 {receipt}：{file}",
    ),
}

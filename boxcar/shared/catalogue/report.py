"""The report of a run."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "title": Said("{run}: {task}", "{run}：{task}"),
    "receipt": Said("receipt {digest}", "凭据 {digest}"),
    "table": Said("{runs}: {task}; baseline: {baseline}", "{runs}：{task}；基线：{baseline}"),
    "baseline": Said("baseline: {baseline}", "基线：{baseline}"),
    "incomplete": Said(
        "{group} is incomplete: {why}. Its numbers stand in brackets",
        "{group} 不完整：{why}。其数值放在括号中",
    ),
    "in_doubt": Said(
        "{group} is in doubt: {why}. Its numbers stand in brackets",
        "{group} 存疑：{why}。其数值放在括号中",
    ),
    "in_doubt_alone": Said("{group} is in doubt: {why}", "{group} 存疑：{why}"),
    "no_number": Said("{group} has no number: {why}", "{group} 没有数值：{why}"),
    "also": Said("{one}; {other}", "{one}；{other}"),
    "not_clean": Said(
        "(!) {n} {n:group differs|groups differ} from the baseline in more than one key: no clean "
        "ablation",
        "(!) {n} 组与基线有多处不同：不是干净的消融",
    ),
    "same_seed": Said(
        "{group} has {n} cells of the seed {seed}: they are repetitions, and their spread is not "
        "that over seeds",
        "{group} 中有 {n} 个 cell 的种子同为 {seed}：它们是重复，其离散程度不代表不同种子",
    ),
    "alike": Said(
        "{group} has {n} cells that are alike and name no seed: they are repetitions, and their "
        "spread is not that over seeds",
        "{group} 中有 {n} 个 cell 完全相同，也没有写明种子：它们是重复，其离散程度不代表不同种子",
    ),
    "seed": Said("seed {seed} {why}", "种子 {seed} {why}"),
    "no_metric": Said("has no {metric}", "没有 {metric}"),
    "no_metric_for": Said("has no {metric}: {note}", "没有 {metric}：{note}"),
    "abandoned": Said("was abandoned: {because}", "已放弃：{because}"),
    "failed": Said("failed ({failure})", "失败（{failure}）"),
    "not_verified": Said("is not verified", "尚未验证"),
    "changed_since": Said("is not as the receipt says: verify again", "与凭据不符：请重新 verify"),
    "interval": Said(
        "mean±standard deviation over seeds; a difference has its 95 % interval (Welch) where both "
        "sides have three seeds",
        "均值±标准差（按种子）；双方都有三个种子时，差值附 95 % 置信区间（Welch）",
    ),
    "hours": Said(
        "GPU-h: hours of all attempts, times the ranks", "GPU-h：所有尝试的小时数乘以 rank 数"
    ),
    "cell": Said("cell", "cell"),
    "n": Said("n", "n"),
    "delta": Said("Δ baseline", "Δ 基线"),
    "changed": Said("changed against baseline", "相对基线的改动"),
    "spent": Said("cost", "花费"),
    "attempts": Said("attempts", "尝试"),
    "money": Said("Cost against {metric}", "花费与 {metric}"),
    "cost": Said("Hours against {metric}", "GPU 小时与 {metric}"),
    "more": Said("{n} more", "另有 {n} 个"),
    # Under the axis of a chart.
    "number": Said("number of the report", "第几次上报"),
    "nothing": Said(
        "{run}: nothing is verified yet, so a report would have no number",
        "{run}：还没有验证任何结果，报告没有数值可写",
    ),
    "left_out": Said(
        "{n} incomplete {n:group is|groups are} left out: {names}. With --incomplete {n:it stands|"
        "they stand} there in brackets",
        "{n} 个不完整的组未列出：{names}。加 --incomplete 则以括号列出",
    ),
    "page": Said("page {file}. The table", "网页 {file}。查看表格"),
    "no_page": Said(
        "the report's page was not written: {why}. Try again", "未能写出报告网页：{why}。重试"
    ),
    "written": Said("written: {file}", "已写入：{file}"),
    # export to a tracker
    "export_nothing": Said(
        "nothing changed: {n} {n:cell is|cells are} in {folder} as they are in the results",
        "没有变化：{folder} 中的 {n} 个 cell 与结果一致",
    ),
    "export_done": Said(
        "{folder}: {added} added, {changed} changed, {same} as before",
        "{folder}：新增 {added}，更新 {changed}，不变 {same}",
    ),
    "export_left_out": Said("{cell} is left out: {why}", "未导出 {cell}：{why}"),
    "export_stale": Said(
        "{cell} was exported when it was proven; what lies there is of then: {where}",
        "{cell} 此前已证实时导出过；那份内容仍在 {where}",
    ),
    "export_trained_again": Said(
        "{cell} is another result by now, under the same id ({id}); what was sent on before is not "
        "changed by this",
        "{cell} 的结果已经变了，id 不变（{id}）；此前已上传的内容不受影响",
    ),
    "export_changed": Said(
        "{file} {problem}, and a curve of it would prove nothing",
        "{file} {problem}，由它画出的曲线不能作数",
    ),
    "export_next": Said("nothing was sent. Next: {step}", "没有上传任何内容。下一步：{step}"),
}

"""What to type next, and why."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "next": Said("next: {command}  ({because})", "下一步：{command}  （{because}）"),
    "nothing": Said("next: {because}", "下一步：{because}"),
    "at_work": Said("agents are at work; there is nothing to do", "agent 正在工作，无需操作"),
    "at_work_failed": Said(
        "agents are at work; {n} {n:cell|cells} failed", "agent 正在工作；{n} 个 cell 失败"
    ),
    "verify": Said(
        "every cell is here; load them all before anything is torn down",
        "所有 cell 都已拉回；拆除之前先全部加载验证",
    ),
    "down": Said(
        "every cell is verified, dropped or abandoned; the boxes may go when you say so",
        "每个 cell 都已验证、移除或放弃；你同意后即可释放实例",
    ),
    "failed": Said("{n} {n:cell|cells} failed", "{n} 个 cell 失败"),
    "to_pull": Said("{n} verified {n:cell|cells} not here yet", "{n} 个已验证的 cell 还没有拉回"),
    "unfinished": Said("{n} {n:cell|cells} not run to the end", "{n} 个 cell 还没有跑完"),
}

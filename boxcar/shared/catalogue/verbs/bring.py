"""What `pull`, `verify`, `watch`, `down` and `demo` say beside what good_run has."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- pull
    "outcome": Said("{name}: {word}", "{name}：{word}"),
    "outcome_why": Said("{name}: {word}: {why}", "{name}：{word}：{why}"),
    "checkpoint_came": Said(
        "{cell}: its checkpoint of {at} came from the second home, {url}. Next",
        "{cell}：它在 {at} 的检查点已从第二存储 {url} 取回。下一步",
    ),
    "is_aside": Said(
        "{name}: the copy that was here is now in {folder}", "{name}：原来的副本已移到 {folder}"
    ),
    "came": Said("{name}: pulled {why}", "{name}：已拉回，{why}"),
    "from_second": Said("from the second home, {url}", "来自第二存储 {url}"),
    "not_pulled": Said("{name} {n:was|were} not pulled: {why}", "{name} 没有拉回（{n} 个）：{why}"),
    "failed_log": Said("{cell} failed; its log: {file}", "{cell} 失败；它的日志：{file}"),
    "no_failed_log": Said(
        "{cell}: its log could not be brought here: {why}", "{cell}：日志没能取回：{why}"
    ),
    "here_failed": Said(
        "{here}; {n} {n:cell|cells} failed. Why", "{here}；{n} 个 cell 失败。原因请看"
    ),
    "here_unchecked": Said(
        "{here}; {n} {n:is still checked by its box|are still checked by their boxes}: {cells}. "
        "In a moment",
        "{here}；其中 {n} 个仍由机器检查中：{cells}。稍后再次",
    ),
    "dropped": Said("dropped, so not waited for: {cells}", "已移除，不再等待：{cells}"),
    "here_rest": Said(
        "{here}; the others are not published yet. To look", "{here}；其余尚未发布。查看"
    ),
    # --- verify
    "aside": Said(
        "{problem}. It is now in {file}; abandon again what it had abandoned",
        "{problem}。它已移到 {file}；此前放弃的 cell 需要重新放弃",
    ),
    "box_not_told": Said(
        "{cell} is proven here, but its box was not told: {why}; a launch may train it again",
        "{cell} 已在本机验证，但没能通知它的机器：{why}；launch 可能会重新训练它",
    ),
    # --- watch
    "delivered": Said(
        "{queue}: {n} late {n:webhook|webhooks} delivered", "{queue}：已补发 {n} 条 webhook"
    ),
    "due": Said("{n} {n:event|events} still due", "还有 {n} 条未送达"),
    "undelivered": Said(
        "{queue}: webhooks wait in the journal and could not be delivered: {why}\nThey are kept. "
        "Try again",
        "{queue}：日志中有 webhook 未能送达：{why}\n它们已保留。再试一次",
    ),
    "new_not_pulled": Said("the new results were not pulled: {error}", "新的结果没有拉回：{error}"),
    # --- down
    "tier_is_gone": Said(
        "{tier} is said to be gone: the results here are compared with {with_what}, not with it",
        "已声明 {tier} 永久丢失：本机结果与{with_what}核对，而不是与它核对",
    ),
    "with_reports": Said("what the boxes had last reported of it", "各机器最后一次的报告"),
    "with_manifests": Said("their own manifests and the receipt", "结果自己的清单和凭据"),
    # --- demo
    "demo_begins": Said(
        "[1/4] two queues on two local boxes; the project is {folder}",
        "[1/4] 两个队列，两台本机机器；项目在 {folder}",
    ),
    "demo_pull": Said(
        "[2/4] pull: every result to this machine, checked against its manifest",
        "[2/4] pull：把所有结果拉回本机，逐一与清单核对",
    ),
    "demo_verify": Said(
        "[3/4] verify: every artifact is loaded and checked",
        "[3/4] verify：加载并检查每个产物",
    ),
    "demo_down": Said("[4/4] down: the gate", "[4/4] down：最后一道关"),
    "demo_aside": Said(
        "the results of the last demo were put aside: {folder}", "上次演示的结果已移到 {folder}"
    ),
    "demo_event": Said("  webhook  {event}", "  webhook  {event}"),
    "demo_webhooks": Said(
        "      webhooks arrive, signed, at {url}", "      webhook 带签名发往 {url}"
    ),
    "demo_again": Said(
        "the agent of {queues} is gone; launching again resumes its queue",
        "{queues} 的 agent 已退出；重新启动会继续它的队列",
    ),
    "demo_took": Said(
        "{run}: {n} {n:cell|cells} in {time} s", "{run}：{n} 个 cell，用时 {time} 秒"
    ),
    "demo_results": Said("results   {path}", "结果   {path}"),
    "demo_receipt": Said("receipt   {path}", "凭据   {path}"),
    "demo_journals": Said("journals  {path}", "日志   {path}"),
    "demo_ended": Said(
        "The local boxes are gone; the results stay. Again", "本机机器已移除，结果保留。再来一次"
    ),
    "demo_kept": Said(
        "The run is still there, and nothing was removed. Look around in {folder}, then",
        "run 还在，没有删除任何东西。可以先看看 {folder}，然后",
    ),
    "demo_lacks": Said(
        "the demo trains with {needs}, and {python} has no {missing}. To install it for the CPU, "
        "type: {line}",
        "演示需要 {needs} 来训练，而 {python} 没有 {missing}。安装 CPU 版，请输入：{line}",
    ),
    # --- check-profiles
    "profiles": Said(
        "{n} {n:profile|profiles}: {old} {old:group|groups} of facts older than {months} months, "
        "{lost} durable {lost:tier|tiers} that would be lost",
        "{n} 个 profile：{old} 组事实早于 {months} 个月，{lost} 个持久盘会丢失",
    ),
}

"""What `down` says and asks before anything ends."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "will": Said("{verb!r} will {does}. This is lost:", "{verb!r} 将会{does}。以下内容会丢失："),
    "item": Said("  {sentence}", "  {sentence}"),
    "credentials": Said("credentials: {file}", "凭据文件：{file}"),
    "credentials_on": Said("credentials: {file} on {box}", "凭据文件：{box} 上的 {file}"),
    "folder": Said("{what}: {folder} ({size})", "{what}：{folder}（{size}）"),
    "unseen": Said(
        "what {box} did after {at}, its last answer", "{box} 在 {at}（最后一次应答）之后所做的一切"
    ),
    "where_mounted": Said("wherever it is mounted", "它挂载的位置"),
    "on_platform": Said("{tier} on the platform: {folder}", "平台上的 {tier}：{folder}"),
    "as_it_is": Said("as it is", "保持原样"),
    "still_bills": Said("still bills: {what}", "仍会计费：{what}"),
    "abandoned": Said(
        "the cell {cell}, abandoned because {because}", "cell {cell}，已放弃，原因：{because}"
    ),
    "dropped": Said(
        "the cell {cell}, dropped: its line is commented out",
        "cell {cell}，已移除：它的那一行已被注释掉",
    ),
    "in_doubt": Said(
        "the box on which the cell {cell} could be trained again; its result is in doubt: {doubt}",
        "可以重新训练 cell {cell} 的机器；它的结果存疑：{doubt}",
    ),
    "hashed": Said(
        "{n} {n:artifact|artifacts}: each was hashed here and loaded by its box alone, as verify "
        "found no torch",
        "{n} 个产物：本机只校验了哈希，只有它的机器加载过，因为 verify 没有找到 torch",
    ),
    "stays": Said("This stays: {folder} ({size})", "以下内容保留：{folder}（{size}）"),
    "type": Said(
        "Type the run's name ({run}) to approve {verb!r}: ",
        "请输入 run 的名字（{run}）以批准 {verb!r}：",
    ),
    "not_its_name": Said(
        "{typed!r} is not the run's name; nothing was touched",
        "{typed!r} 不是该 run 的名字；没有做任何改动",
    ),
    "the_run": Said("the run", "此 run"),
    # --- who else is on its boxes
    "works_beside": Said(
        "the run {run} is at work on {box} ({what}), which this would end",
        "run {run} 正在 {box} 上工作（{what}），这会把那台机器一起结束",
    ),
    "results_beside": Said(
        "the run {run} has {n} {n:cell|cells} on {box} that this machine does not have verified "
        "({cells}), and they go with the box",
        "run {run} 在 {box} 上有 {n} 个 cell 没有在本机校验通过（{cells}），它们会随机器一起消失",
    ),
    "stranger": Said(
        "on {box}: {program} (process {pid} of {user}), which works on its GPU and is no run's",
        "{box} 上：{program}（{user} 的进程 {pid}），正在使用它的 GPU，不属于任何 run",
    ),
    "others_unseen": Said(
        "who else works on {box} is not known: {why}", "无法得知还有谁在 {box} 上工作：{why}"
    ),
    "type_beside": Said(
        "Type that run's name ({run}) to end the box all the same: ",
        "若仍要结束这台机器，请输入那个 run 的名字（{run}）：",
    ),
    "type_beside_note": Said(
        "and type {run} when it asks, to end the box all the same",
        "若仍要结束这台机器，在询问时输入 {run}",
    ),
    "of_run": Said("{what} of the run {run}", "run {run} 的 {what}"),
    # --- why it stays shut
    "no_tier": Said(
        "the run is not on its durable tier, {tier}, so the results cannot be compared with it. "
        "Mount the tier. A run that was never launched has nothing to end",
        "持久盘 {tier} 上没有此 run，无法用它核对结果。请挂载持久盘。"
        "从未启动过的 run 没有什么可结束的",
    ),
    "never_launched": Said(
        "was never launched, as far as this machine and its boxes know, so there is nothing to "
        "end. To start it",
        "据本机和各台机器所知从未启动过，没有什么可结束的。若要启动",
    ),
    "tier_gone": Said("only for a tier that is gone for good", "仅当持久盘永久丢失时"),
    "empty_roster": Said(
        "the roster is empty: nothing is known of this run", "清单是空的：对此 run 一无所知"
    ),
    "no_receipt": Said("there is no receipt", "还没有凭据"),
    "other_receipt": Said(
        "the receipt is that of the run {found!r}, expected {run!r}",
        "凭据属于 run {found!r}，而这里是 {run!r}",
    ),
    "not_in_roster": Said(
        "is in the receipt, but no longer in the roster", "在凭据中，但已不在清单里"
    ),
    "not_in_receipt": Said("is not in the receipt", "不在凭据中"),
    "changed_since": Said("is not as it was when the receipt was made", "与生成凭据时不一致"),
    "not_approved": Said("nobody has approved it", "还没有人批准"),
    "not_the_name": Said(
        "expected the run's name {run!r}, found {typed!r}",
        "应输入 run 的名字 {run!r}，而输入的是 {typed!r}",
    ),
    "other_state": Said(
        "{given!r} approves another state of the results than this one ({digest}); look at it "
        "again, then approve it",
        "{given!r} 批准的不是结果的当前状态（{digest}）；请重新查看，然后再批准",
    ),
    "other_results": Said(
        "the teardown that was begun was approved for other results",
        "已开始的拆除是针对另一份结果批准的",
    ),
    "at_work": Said("the agent of {queue} is at work", "{queue} 的 agent 正在工作"),
    "still_runs": Said(
        "still runs on {box}, but its agent is dead", "仍在 {box} 上运行，但它的 agent 已退出"
    ),
    "not_asked": Said("it cannot be asked whether {what}: {why}", "无法得知是否{what}：{why}"),
    "no_answer": Said("its box does not answer", "它的机器没有应答"),
    "finishes": Said("it finishes its cell", "先跑完当前 cell"),
    "takes_over": Said("it takes the cell over; then stop it", "它会接管该 cell；然后再 stop"),
    "noted": Said("noted as replaced: {names}", "已记下更换：{names}"),
    "rotate": Said(
        "rotate {name}: {boxes} still holds it. Replace it: {where}",
        "请更换 {name}：{boxes} 上还留有它。更换处：{where}",
    ),
    "when_rotated": Said("When that is done", "更换之后"),
    "where_made": Said("where you made it", "你当初创建它的地方"),
    "keeps": Said(
        "{box} keeps the run's credentials, so rotate these: {names}",
        "{box} 上还留有此 run 的凭据，请更换：{names}",
    ),
    # --- what a cell lacks
    "not_pulled": Said("is published and was not pulled", "已发布但还没有拉回"),
    "not_published": Said("is not published", "尚未发布"),
    "line_gone": Said(
        "never ran, and its line is in no queue any more",
        "从未运行，且任何队列里都已没有它的那一行",
    ),
    "put_line_back": Said(
        "Put it back into {queue}; with a # the cell is dropped",
        "请把它放回 {queue}；在行首加 # 则移除这个 cell",
    ),
    "line_held_back": Said(
        "never ran: its line is only in the local file of {queue}. The shared file has other "
        "lines, so that a push is refused, and says what to do",
        "从未运行：它的那一行只在 {queue} 的本地文件里。"
        "共享文件里的行与之不同，因此 push 会被拒绝，并说明该怎么做",
    ),
    "tier_lost": Said(
        "has no manifest on the durable tier, though one was pulled",
        "持久盘上没有它的清单，而本机拉回过一份",
    ),
    "copy_as_pulled": Said(
        "{damage}. The copy here is kept as it was pulled", "{damage}。本机的副本保持拉回时的样子"
    ),
    "copy_as_published": Said(
        "{damage}. The copy here is kept as it was published",
        "{damage}。本机的副本保持发布时的样子",
    ),
    "damage": Said("is verified in its journal, but {damage}", "在日志中已验证，但 {damage}"),
    "again": Said(
        "was published again: the manifest on the tier is {there}…, the one here {here}…",
        "重新发布过：持久盘上的清单是 {there}…，本机的是 {here}…",
    ),
    "unpublished_file": Said("{file} was not published with it", "{file} 没有随它一起发布"),
    "empty_files": Said("{file} holds only empty files", "{file} 里只有空文件"),
    "not_loaded": Said("{file} was not loaded", "{file} 没有被加载过"),
    "loaded_otherwise": Said(
        "{file} was loaded as `load: {then}`, now it is `load: {now}`",
        "{file} 当时按 `load: {then}` 加载，现在是 `load: {now}`",
    ),
    "refused": Said(
        "refused, and nothing removed: {n} {n:thing|things} missing",
        "已拒绝，没有删除任何东西：还缺 {n} 项",
    ),
    "our_part": Said(
        "{verb}: Boxcar's part was done at {at}, approval {approval}.\n{to_do}",
        "{verb}：Boxcar 的部分已于 {at} 完成，批准凭据 {approval}。\n{to_do}",
    ),
    "yourself": Said(
        "Now {verb} {boxes} yourself ({where}): until then the meter runs",
        "现在请你自己对 {boxes} 执行“{verb}”（{where}）：在此之前一直计费",
    ),
    "silent": Said(
        "{box}: {verb}: it does not answer any more. The console shows the meter",
        "{box}：{verb}：已不再应答。计费情况请看控制台",
    ),
    "continued": Said("continuing the teardown that was approved at {at}", "继续 {at} 批准的拆除"),
    "results_stay": Said("The results stay in {folder}", "结果保留在 {folder}"),
    "done": Said(
        "{verb}: done at {at}, approval {approval}", "{verb}：已于 {at} 完成，批准凭据 {approval}"
    ),
}

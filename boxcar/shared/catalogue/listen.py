"""What `listen` says, and what is said of webhooks that would not arrive."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "here": Said("listening at {url}  (Ctrl-C ends it)", "正在监听 {url}  （按 Ctrl-C 结束）"),
    "through": Said(
        "{box}: its own 127.0.0.1:{port} leads here",
        "{box}：该机器上的 127.0.0.1:{port} 已通到这里",
    ),
    "exports": Said("Where you launch, type:", "在执行 launch 的终端里输入："),
    "count": Said("events: {received}; came again: {again}", "收到事件：{received}；重复：{again}"),
    "cut": Said(
        "{box}: the connection was cut; events wait on the box, and this tries again",
        "{box}：连接已断开；事件会留在机器上等待，正在重连",
    ),
    "again": Said("{box}: the connection is there again", "{box}：连接已恢复"),
    "loopback": Said(
        "the webhooks' address {address} is each box itself, not this machine: they are heard as "
        "long as somebody listens through them",
        "webhook 地址 {address} 指向的是机器自身而不是本机：只有经由这些机器监听时才能收到",
    ),
}

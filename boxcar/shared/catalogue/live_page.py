"""The board as a page of HTML, and the verb that serves or writes it. The page fills `{{}}`."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "ago": Said("looked {{}} ago,", "{{}} 前查看，"),
    "gone": Said(
        "Nobody answers here any more: the page is not refreshed. What stands below is of {{}}.",
        "这里已无人应答：页面不再刷新。以下内容截至 {{}}。",
    ),
    # Under the axis of a chart.
    "minutes": Said("minutes since its first start", "自首次启动起的分钟数"),
    "at_work": Said("agents are at work; there is nothing to do", "agent 正在工作，无需操作"),
    "which": Said(
        "board is a page of HTML, and needs to know where it shall be. On this machine, refreshed "
        "by itself, until Ctrl-C",
        "board 是一个网页，需要指明放在哪里。在本机提供、自动刷新，直到 Ctrl-C",
    ),
    "which_file": Said(
        "As a file, once, for a cron and a web server of your own",
        "写成一个文件（一次），供 cron 和自己的网页服务器使用",
    ),
    "which_terminal": Said("In the terminal", "在终端中"),
    "one_of_both": Said(
        "--serve and --to FILE are two ways: type one of them",
        "--serve 与 --to FILE 是两种方式：请只用一种",
    ),
    "port_of_serve": Said("--port belongs to --serve", "--port 只用于 --serve"),
    "serving": Said(
        "this page is refreshed every {every} until Ctrl-C; only who has its address can read it",
        "该网页每 {every} 刷新一次，直到 Ctrl-C；只有知道地址的人能读取",
    ),
    "ended": Said(
        "the page is served no more; the run continues. Again", "网页已停止提供；运行不受影响。再次"
    ),
    "no_look": Said(
        "the page stays as it was, because this look failed: {why}",
        "页面保持不变，因为这次查看失败：{why}",
    ),
    "no_folder": Said("--to: there is no folder {folder}", "--to：没有目录 {folder}"),
    "is_folder": Said(
        "--to: expected a file, and {file} is a folder", "--to：应为文件，而 {file} 是目录"
    ),
    "written": Said("{file}", "{file}"),
}

from __future__ import annotations

from pathlib import Path

from boxcar.laptop.project.job import read_job
from boxcar.laptop.project.notify.targets import targets
from boxcar.shared.channels import known

LEAST = "name: demo\ncommand: train.py\nartifacts: [best.pth]\nqueues: {queues/q.txt: box-a}\n"


def test_every_line_is_a_target_with_the_variables_that_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    lines = [known.LINES[name] for name in ("feishu", "telegram", "feishu")]
    path.write_text(LEAST + "notify:\n" + "".join(f"  - {line}\n" for line in lines))
    environ = {"TELEGRAM_TOKEN": "1:x", "TELEGRAM_CHAT": "-4711"}
    feishu, telegram, second = targets(read_job(path), environ)
    assert (feishu.label, feishu.off, feishu.endpoint) == ("feishu", "FEISHU_URL", None)
    assert telegram.variables == ("TELEGRAM_TOKEN", "TELEGRAM_CHAT")
    assert telegram.endpoint and telegram.endpoint.to == "-4711"
    assert (second.label, second.channel) == ("feishu 2", "feishu")
    assert "-4711" not in repr(telegram)

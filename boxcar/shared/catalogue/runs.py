"""The runs of a person."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "none": Said(
        "no run was launched from this machine yet. The first one",
        "本机还没有启动过任何 run。第一次",
    ),
    "gone": Said(
        "{job} is not there any more; its boxes may still bill",
        "{job} 已不存在；它的实例可能仍在计费",
    ),
}

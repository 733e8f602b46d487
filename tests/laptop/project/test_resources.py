from __future__ import annotations

import pytest

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.resources import Card, Offer, Resources, is_family, refusals
from boxcar.shared.errors import InputError

MIB = 2**20


def wish(text: str) -> Resources:
    return yaml_models.parse(text.encode(), "job.yaml", Resources)


def card(name: str, mib: int) -> Offer:
    return Offer(cards=(Card(name, mib * MIB),))


def test_everything_of_the_contract_is_understood() -> None:
    found = wish("{gpu: {name: A100, count: 1, memory: 24GB+}, disk: 100GB, shm: 8GB}")
    assert found.gpu and found.gpu.memory and found.disk and found.shm and found.gpu.count
    assert found.gpu.name == ("A100",)
    assert (found.gpu.count.least, found.gpu.count.most) == (1, 1)
    assert (found.gpu.memory.least, found.gpu.memory.most) == (24 * 10**9, None)
    assert (found.disk.least, found.disk.most) == (100 * 10**9, None)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("24GB", 24 * 10**9, 24 * 2**30),
        ("24GB+", 24 * 10**9, None),
        (">=24GB", 24 * 10**9, None),
        ("16GB-48GB", 16 * 10**9, 48 * 2**30),
        ("24GiB", 24 * 2**30, 24 * 2**30),
        ("1.5tb+", 1500 * 10**9, None),
        (" 24 GB ", 24 * 10**9, 24 * 2**30),
    ],
)
def test_a_size_may_be_a_range(text: str, least: int, most: int | None) -> None:
    gpu = wish(f"gpu: {{memory: '{text}'}}").gpu
    assert gpu and gpu.memory
    assert (gpu.memory.least, gpu.memory.most) == (least, most)


@pytest.mark.parametrize(
    "text", ["24", "GB", "24GB-", "48GB-16GB", "-24GB", "24gigs", "0GB", "1e3GB", "24GB++", "[]"]
)
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"gpu.memory: expected a size such as 24GB, 24GB\+"):
        wish(f"gpu: {{memory: {text}}}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu: {count: 0}", "expected a number of GPUs such as 1, 2+ or 1-4"),
        ("gpu: {count: many}", "expected a number of GPUs"),
        ("gpu: {name: RTX}", "expected a GPU's name such as A100"),
        ("gpu: {name: []}", "expected at least one GPU's name"),
        ("gpu: {name: [A100, {}]}", "expected a GPU's name such as A100"),
        ("disk: 1GB-2GB", "expected the smallest size you need,"),
        ("gpu: {mem: 1GB}", "did you mean 'memory'?"),
        ("disc: 1GB", "did you mean 'disk'?"),
    ],
)
def test_a_bad_wish_says_what_was_expected(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        wish(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("A100", "NVIDIA A100-SXM4-80GB"),
        ("A100", "A100 PCIe"),
        ("A100-80GB", "NVIDIA A100 80GB PCIe"),
        ("a100 sxm", "A100-SXM4-40GB"),
        ("4090", "NVIDIA GeForce RTX 4090"),
        ("RTX4090", "RTX_4090"),
        ("4090", "4090-48G"),
        ("4080 SUPER", "RTX 4080Super"),
        ("H100", "NVIDIA H100 80GB HBM3"),
        ("H100", "H100 NVL"),
        ("V100", "Tesla V100-SXM2-16GB"),
        ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"),
        ("MI300X", "AMD Instinct MI300X"),
    ],
)
def test_a_family_holds_the_builds_of_one_model(family: str, name: str) -> None:
    assert is_family(family, name)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("A100", "A10"),
        ("A10", "A100"),
        ("A10", "A10G"),
        ("A100", "A800-SXM4-80GB"),
        ("4090", "RTX 4090D"),
        ("4090", "RTX 4090 Laptop GPU"),
        ("3080", "RTX 3080 Ti"),
        ("L40", "L40S"),
        ("H200", "GH200 480GB"),
        ("RTX 6000 Ada", "Quadro RTX 6000"),
        ("A6000", "RTX 6000 Ada"),
        ("A100-80GB", "NVIDIA A100-SXM4-40GB"),
        ("A100 SXM", "A100 PCIe"),
        ("A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
    ],
)
def test_a_family_does_not_hold_another_model(family: str, name: str) -> None:
    assert not is_family(family, name)


# What the drivers of these cards report, in MiB: less than the 2^30 bytes that a GB might mean.
@pytest.mark.parametrize(
    ("sold_as", "name", "mib"),
    [
        ("16GB", "Tesla T4", 15360),
        ("16GB", "Tesla V100-SXM2-16GB", 16160),
        ("24GB", "NVIDIA L4", 23034),
        ("24GB", "NVIDIA GeForce RTX 4090", 24564),
        ("40GB", "NVIDIA A100-SXM4-40GB", 40536),
        ("48GB", "NVIDIA L40S", 46068),
        ("80GB", "NVIDIA H100 80GB HBM3", 81559),
        ("141GB", "NVIDIA H200", 143771),
    ],
)
def test_a_card_has_the_memory_that_it_is_sold_with(sold_as: str, name: str, mib: int) -> None:
    for text in (sold_as, f"{sold_as}+"):
        assert refusals(wish(f"gpu: {{memory: {text}}}"), card(name, mib)) == []
    assert refusals(wish("gpu: {memory: 1000GB+}"), card(name, mib))
    assert refusals(wish("gpu: {memory: 1GB-12GB}"), card(name, mib))


def test_the_memory_is_read_from_the_name_where_nothing_else_tells_it() -> None:
    offer = Offer(cards=(Card("A100-SXM4-40GB"),))
    assert refusals(wish("gpu: {memory: 40GB}"), offer) == []
    assert refusals(wish("gpu: {memory: 41GB+}"), offer) == []  # 40 GiB are 42.9 GB
    assert refusals(wish("gpu: {memory: 80GB+}"), offer) == [
        "the job needs a GPU with 80GB+, this box has A100-SXM4-40GB"
    ]
    assert refusals(wish("gpu: {memory: 80GB+}"), Offer(cards=(Card("A100"),))) == []


def test_each_refusal_names_what_is_wanted_and_what_is_there() -> None:
    wishes = wish("{gpu: {name: [A100, H100], count: 2+}, disk: 100GB, shm: 8GB}")
    offer = Offer((Card("RTX 4090", 24 * 2**30),), 1, 50 * 10**9, 64 * 10**6)
    assert refusals(wishes, offer) == [
        "the job needs 2+ GPUs, this box has 1",
        "the job needs A100 or H100, this box has RTX 4090 (25.8 GB)",
        "the job needs 100GB of disk, this box has 50.0 GB",
        "the job needs 8GB of /dev/shm, this box has 64.0 MB",
    ]


def test_memory_and_name_must_be_of_one_card() -> None:
    offer = Offer(cards=(Card("A100", 40 * 2**30), Card("RTX PRO 6000", 96 * 2**30)))
    assert refusals(wish("gpu: {name: A100, memory: 80GB+}"), offer)
    assert refusals(wish("gpu: {name: [A100, PRO 6000], memory: 80GB+}"), offer) == []


def test_what_is_not_known_refuses_nothing() -> None:
    wishes = wish("{gpu: {name: A100, count: 8, memory: 80GB+}, disk: 100TB, shm: 1TB}")
    assert refusals(wishes, Offer()) == []
    assert refusals(Resources(), Offer((Card("T4"),), 1, 1, 1)) == []

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from box_facts import A100, facts_of, good

from boxcar.laptop.fitness.rules import Row, Told, Wanted, judge
from boxcar.laptop.project.resources import Resources

REMOTE = Wanted("torchrun", ("tmux", "setsid"), has_mounted_tier=True)
T4 = {"name": "Tesla T4", "memory_total_bytes": 15360 * 2**20}


def rows(wanted: Wanted = REMOTE, skew_s: float = 0.0, **changed: Any) -> list[Row]:
    return judge({"box-a": Told(facts_of(good() | changed), skew_s)}, wanted)


def said(found: list[Row]) -> dict[str, str]:
    """What is not ok: what -> verdict."""
    return {row.what: row.verdict for row in found if row.verdict != "ok"}


def reason(found: list[Row], what: str) -> str:
    return next(row.reason for row in found if row.what == what and row.verdict != "ok")


def asking(**wishes: Any) -> Wanted:
    return replace(REMOTE, resources=Resources(**wishes))


def with_place(name: str, changed: dict[str, Any]) -> dict[str, Any]:
    places = good()["places"]
    return {"places": places | {name: places[name] | changed}}


def test_a_good_box_is_ok_in_every_row():
    found = rows()
    assert said(found) == {}
    assert {row.what for row in found} >= {"GPU", "CUDA", "torch", "/dev/shm", "durable tier"}


def test_a_box_that_does_not_answer_is_refused_and_nothing_else_is_said_of_it():
    found = judge(
        {"box-a": Told(None, why="the link is down"), "box-b": Told(facts_of(good()))}, REMOTE
    )
    assert [(r.box, r.verdict, r.reason) for r in found if r.verdict != "ok"] == [
        ("box-a", "refuse", "the link is down")
    ]


def test_every_fact_may_be_missing_that_is_best_effort():
    left_out = {"memory_limit_bytes", "cpu_quota_cores", "shm_size_bytes"}
    facts = {name: value for name, value in good().items() if name not in left_out}
    assert said(judge({"box-a": Told(facts_of(facts))}, REMOTE)) == {}


def test_a_training_python_that_does_not_say_what_it_is_is_refused():
    found = rows(training={"packages": {"torch": "2.9"}})
    assert said(found) == {"training Python": "refuse"}


def test_without_a_gpu_the_cpu_trains_unless_the_job_asks_for_one():
    assert said(rows(gpus=[])) == {"GPU": "warn"}
    assert said(rows(asking(gpu={"name": "A100"}), gpus=[])) == {"GPU": "refuse"}


@pytest.mark.parametrize(
    ("gpu", "gpus", "verdict"),
    [
        ({"name": "A100"}, [A100], None),
        ({"name": ["H100", "A100"], "memory": "40GB+"}, [A100], None),
        ({"name": "H100"}, [A100], "refuse"),
        ({"memory": "24GB+"}, [T4], "refuse"),
        ({"count": "2"}, [A100], "refuse"),
        ({"count": "2"}, [A100, A100], None),
        ({"name": "A100", "count": "2"}, [A100, T4], "refuse"),
    ],
)
def test_the_gpus_are_those_that_the_job_asks_for(gpu, gpus, verdict):
    assert said(rows(asking(gpu=gpu), gpus=gpus)).get("GPU") == verdict


def test_a_gpu_that_does_not_answer_is_said_beside_those_that_do():
    found = rows(gpus=[A100, {"problem": "GPU is lost"}])
    assert said(found) == {"GPU": "warn"}
    assert reason(found, "GPU") == "GPU is lost"


def test_a_torch_that_cannot_use_the_gpu_is_refused_where_one_is_asked_for():
    training = good()["training"] | {"has_cuda": False, "cuda": None}
    assert said(rows(training=training)) == {"CUDA": "warn"}
    assert said(rows(asking(gpu={"name": "A100"}), training=training)) == {"CUDA": "refuse"}


def test_a_training_python_that_is_not_there_is_refused():
    found = rows(training={"problem": "there is no program conda-python on this box"})
    assert said(found) == {"training Python": "refuse"}
    assert "conda-python" in reason(found, "training Python")


@pytest.mark.parametrize(
    ("launcher", "lacks", "verdicts"),
    [
        ("torchrun", "torch", {"torch": "refuse"}),
        ("python", "torch", {"torch": "warn"}),
        ("accelerate", "torch", {"torch": "warn", "accelerate": "refuse"}),
        ("accelerate", "deepspeed", {"accelerate": "refuse"}),
    ],
)
def test_the_package_of_the_launcher_has_to_be_there(launcher, lacks, verdicts):
    training = good()["training"]
    training = training | {"packages": training["packages"] | {lacks: None}}
    assert said(rows(replace(REMOTE, launcher=launcher), training=training)) == verdicts


@pytest.mark.parametrize(
    ("skew_s", "verdict"),
    [(0, None), (29, None), (-29, None), (31, "warn"), (-31, "warn"), (9e4, "warn")],
)
def test_a_clock_that_is_off_is_said_and_never_refused(skew_s, verdict):
    assert said(rows(skew_s=skew_s)).get("clock") == verdict


def test_a_clock_that_is_off_by_hours_is_said_with_what_fails_then():
    assert "webhooks" in reason(rows(skew_s=-7200), "clock")
    assert "webhooks" not in reason(rows(skew_s=-60), "clock")


def test_shared_memory_of_a_bare_container_is_warned_of_and_too_little_is_refused():
    assert said(rows(shm_size_bytes=64 * 2**20)) == {"/dev/shm": "warn"}
    assert "num_workers" in reason(rows(shm_size_bytes=64 * 2**20), "/dev/shm")
    assert said(rows(asking(shm="64GB"))) == {"/dev/shm": "refuse"}
    assert said(rows(asking(shm="8GB"))) == {}


def test_half_a_core_and_little_memory_are_said():
    assert said(rows(cpu_quota_cores=0.5)) == {"CPU": "warn"}
    assert said(rows(memory_limit_bytes=2 * 10**9)) == {"memory": "warn"}
    assert said(rows(memory_limit_bytes=None, memory_total_bytes=2 * 10**9)) == {"memory": "warn"}


@pytest.mark.parametrize("name", ["data", "durable", "credentials"])
def test_a_place_that_cannot_be_written_is_refused_with_its_reason(name):
    found = rows(**with_place(name, {"is_writable": False, "problem": "/x: Read-only file system"}))
    assert list(said(found).values()) == ["refuse"]
    assert any("Read-only" in row.reason for row in found)


def test_a_shared_tier_that_is_not_mounted_is_refused_unless_another_box_reads_it():
    on_system_disk = with_place("durable", {"mount": "/"})
    found = rows(**on_system_disk)
    assert said(found) == {"durable tier": "refuse"}
    assert "lost with the box" in reason(found, "durable tier")
    assert said(rows(replace(REMOTE, sharing=frozenset({"box-a"})), **on_system_disk)) == {
        "durable tier": "warn"
    }


def test_a_tier_of_the_boxs_own_may_lie_on_its_system_disk():
    on_system_disk = with_place("durable", {"mount": "/"})
    assert said(rows(replace(REMOTE, has_mounted_tier=False), **on_system_disk)) == {}


def test_secrets_never_lie_on_the_shared_tier():
    found = rows(**with_place("credentials", {"mount": "/fs"}))
    assert said(found) == {"credentials": "refuse"}


def test_where_tmux_is_not_there_the_fallback_is_named_and_without_any_it_is_refused():
    tools = good()["tools"]
    found = rows(tools=tools | {"tmux": None})
    assert said(found) == {"detach": "warn"}
    assert next(row.found for row in found if row.what == "detach") == "setsid"
    assert said(rows(tools=tools | {"tmux": None, "setsid": None})) == {"detach": "refuse"}
    assert said(rows(replace(REMOTE, detach=("process",)), tools=tools | {"tmux": None})) == {}


def test_a_box_without_rsync_or_with_an_old_bash_is_said_and_without_bash_refused():
    assert said(rows(tools=good()["tools"] | {"rsync": None})) == {"rsync": "warn"}
    assert said(rows(bash="3.2.57(1)-release")) == {"bash": "warn"}
    assert said(rows(bash=None)) == {"bash": "refuse"}


def test_all_that_is_not_ok_has_a_reason():
    found = rows(
        asking(gpu={"name": "H100"}, shm="1TB"),
        9999,
        training={"problem": "gone"},
        cpu_quota_cores=0.1,
        memory_limit_bytes=1,
        tools={},
        bash=None,
        **with_place("durable", {"mount": "/"}),
    )
    assert len(said(found)) == 10
    assert all(row.reason for row in found if row.verdict != "ok")


def test_a_tier_that_is_missing_is_said_and_the_credentials_are_not_blamed_for_it():
    """As seen where /root is a mount of its own, and autodl-fs an empty folder in it."""
    missing = with_place("durable", {"path": "/root/fs", "mount": "/root"})
    missing["places"]["credentials"] |= {"mount": "/root"}
    found = rows(**missing)
    assert said(found) == {"durable tier": "refuse"}
    assert "not mounted" in reason(found, "durable tier")
    assert said(rows(replace(REMOTE, sharing=frozenset({"box-a"})), **missing)) == {
        "credentials": "refuse"
    }, "where it was seen to be shared, the secrets do lie on it"


def test_a_host_name_without_an_address_is_said_with_the_line_that_gives_it_one():
    found = rows(hostname_problem="Name or service not known")
    assert said(found) == {"host name": "warn"}
    assert "may hang" in reason(found, "host name")
    assert 'echo "127.0.0.1 $(uname -n)" >> /etc/hosts' in reason(found, "host name")

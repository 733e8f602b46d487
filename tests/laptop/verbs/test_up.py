"""`up` and `offers` against the stand-ins: what is asked, rented once, gone on with and ended."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from forked_verb import SHUT_NETWORK
from stand_in_providers import KEY, KEYS, LOG_LINE, LOOKS_ONLY, OTHERS, SECRET


def test_offers_spend_nothing_and_say_what_fits(renter):
    document = renter.type("offers", "--json").ended(0).document
    [market] = document["markets"]
    assert market["offers"] and market["offers"][0]["rate"] > 0
    assert renter.server.ever == {}
    assert {call for call, _key in renter.server.asked} <= {"search", "user", "file_systems"}


def test_offers_and_the_question_are_in_the_readers_language(renter):
    renter.project.write_job(resources={"gpu": {"memory": "24GB+"}})
    said = renter.type("offers", LC_ALL="zh_CN.UTF-8").ended(0)
    asked = renter.type("up", "--boxes", "1", typed="n", LC_ALL="zh_CN.UTF-8").ended(1)
    assert "个报价合适" in said.err and "每小时最多" in asked.err
    assert "traffic in" not in said.out and "sha256" not in asked.err


def test_where_nothing_fits_the_nearest_are_named_with_the_reason(renter):
    renter.project.write_job(resources={"gpu": {"name": "B200"}})
    said = renter.type("offers").ended(1)
    assert "no offer fits" in said.err and "B200" in said.err
    assert said.err.count("an hour:") <= 3
    said = renter.up().ended(1)
    assert "no offer fits" in said.err and renter.server.ever == {}


def test_a_box_that_somebody_else_destroyed_is_named_by_the_next_up(renter):
    renter.up("--boxes", "1").ended(0)
    assert "does not list" not in renter.up("--boxes", "1").ended(0).err
    renter.server.boxes.clear()
    said = renter.up("--boxes", "1").ended(0)
    assert "may have been ended elsewhere" in said.err and "--replace box-a" in said.err
    renter.server.fault("list", *["html"] * 9)
    assert "without JSON" in renter.up("--boxes", "1").ended(0).err
    assert renter.server.calls("create") == 1


def test_the_nearest_offers_are_of_different_kinds(renter):
    renter.project.write_job(resources={"gpu": {"memory": "900GB+"}})
    said = renter.type("offers").ended(1)
    named = re.findall(r"^  (\d+ x .*), [\d.]+ USD an hour:", said.err, re.MULTILINE)
    assert named and len(named) == len({*named})


@pytest.mark.parametrize("words", [("--boxes", "0"), ("--hours", "0"), ("--hours", "nan")])
def test_a_number_that_asks_for_nothing_is_refused(renter, words):
    said = renter.up(*words).ended(2)
    assert words[0] in said.err and renter.server.asked == []


@pytest.mark.parametrize("kinds", [["429 3"], ["before 403"]])
def test_after_a_clear_no_it_is_said_that_nothing_was_rented(renter, kinds):
    renter.server.fault("create", *kinds)
    said = renter.up("--boxes", "1")
    assert said.code in (1, 2) and "Nothing was rented for it" in said.err
    assert renter.server.ever == {} and renter.records()[0]["refused_at"]
    chinese = renter.type("offers", LC_ALL="zh_CN.UTF-8", **{KEYS[renter.server.name]: "wrong"})
    title = {"vastai": "vast.ai", "runpod": "RunPod", "lambda": "Lambda"}[renter.server.name]
    assert f"{title}：{title}" not in chinese.err, "it is named once"


def test_the_boxes_of_the_job_are_rented_once_and_are_up(renter):
    said = renter.up("--hours", "10").ended(0)
    assert len(renter.server.boxes) == 2 == renter.server.calls("create")
    records = renter.records()
    assert {one["box"] for one in records} == {"box-a", "box-b"}
    assert all(one["up_at"] and one["id"] in renter.server.boxes for one in records)
    assert "in 10 hours" in said.err and "is ended again" in said.err
    config = (renter.project.root / ".boxcar" / "ssh_config").read_text()
    assert "Host box-a\n  HostName 127.0.0.1" in config and "Include" in said.err
    assert renter.orphans() == []
    renter.up().ended(0)  # again: nothing is missing
    assert renter.server.calls("create") == 2


@pytest.mark.parametrize("typed", ["n", "", "no"])
def test_without_a_yes_nothing_is_rented_and_the_digest_is_said(renter, typed):
    said = renter.type("up", "--boxes", "1", typed=typed).ended(1)
    assert renter.server.ever == {} and renter.records() == []
    digest = re.search(r"--approve (\w+)", said.err)[1]
    wrong = renter.type("up", "--boxes", "1", "--approve", "0" * 12).ended(2)
    assert "another sum" in wrong.err and renter.server.ever == {}
    renter.type("up", "--boxes", "1", "--approve", digest).ended(0)
    assert len(renter.server.boxes) == 1


def test_the_price_that_was_agreed_to_is_a_part_of_the_approval(renter):
    first = renter.type("up", "--boxes", "1", typed="n").err
    digest = re.search(r"--approve (\w+)", first)[1]
    renter.server.rate = 9.0
    for offer in getattr(renter.server, "offers", ()):
        offer["dph_total"] *= 9
    renter.type("up", "--boxes", "1", "--approve", digest).ended(2)
    assert renter.server.ever == {}


@pytest.mark.parametrize("kind", ["after 502", "cut after", "id 500", "html", "redirect"])
def test_after_an_unclear_answer_it_looks_and_asks_for_no_second_box(renter, kind):
    renter.server.lag = 5
    renter.server.fault("create", kind)
    took_effect = kind in ("after 502", "cut after", "id 500")
    said = renter.up("--boxes", "1").ended(0 if took_effect else 75)
    assert renter.server.calls("create") == 1
    assert len(renter.server.ever) == took_effect
    if not took_effect:
        assert "MAY STILL BILL" in said.err and "nobody knows" in said.err
        [record] = renter.records()
        assert not record["id"] and not record["missing_at"], "the intent stays"
        assert "orphans" in renter.type("status").err
        here = renter.project.boxcar("audit", "-p", "local", env=renter.env)
        assert "1 box that you rented is in no run" in here.err
        again = renter.up("--boxes", "1").ended(0)
        assert "never listed" in again.err and len(renter.server.boxes) == 1


def test_a_box_that_shows_up_after_the_look_is_found_by_the_next_up(renter):
    renter.server.lag = 16
    renter.server.fault("create", "after 502")
    renter.up("--boxes", "1").ended(75)
    renter.up("--boxes", "1").ended(0)
    assert renter.server.calls("create") == 1 and len(renter.server.boxes) == 1
    assert renter.records()[0]["up_at"]


def test_a_clear_no_rents_nothing_and_closes_the_order(renter):
    renter.server.fault("create", *["before 422"] * 3)
    renter.up("--boxes", "1").ended(1)
    assert renter.server.ever == {} and all(one["refused_at"] for one in renter.records())
    assert renter.server.calls("create") == 1


def test_an_offer_that_is_gone_by_now_gives_way_to_the_next(renter):
    if renter.server.name != "vastai":
        renter.server.fault("create", "before 400")
        said = renter.up("--boxes", "1").ended(1)
        assert "out of order" in said.err, "the service's own words, which alone tell why"
        assert renter.server.ever == {} and renter.records()[0]["refused_at"]
        return
    renter.server.fault("create", "before 404", "before 410")
    renter.up("--boxes", "1").ended(0)
    assert renter.server.calls("create") == 3 and len(renter.server.boxes) == 1
    [box] = renter.server.boxes.values()
    assert (box.gpu, box.rate) == ("RTX 4090", 0.41), "the same card, no dearer than agreed"


def test_a_box_that_never_boots_is_ended_and_seen_gone(renter):
    renter.server.boots = -1
    said = renter.up("--boxes", "1")
    assert said.code != 0 and renter.server.boxes == {}
    assert "did not come up" in said.err and "is gone, seen twice" in said.err
    assert all(one["gone_at"] for one in renter.records())
    logs = [
        path.read_text() for path in (renter.home / "state" / "boxcar" / "rented").glob("*.log")
    ]
    if renter.server.name == "lambda":
        assert logs == [], "Lambda has none"
    else:
        assert len(logs) == len(renter.records()) and all(LOG_LINE in text for text in logs)


def test_where_no_ssh_gets_out_of_this_network_it_is_said_before_and_no_other_host_is_tried(renter):
    shut = {SHUT_NETWORK: "1"}
    asked = renter.type("up", "--boxes", "1", typed="n", **shut).ended(1)
    assert "ssh does not get out of this network: no answer from gitee.com 22" in asked.err
    assert "which is paid" in asked.err and renter.server.ever == {}
    said = renter.up("--boxes", "1", **shut).ended(1)
    assert "the host may be sound, and no other is tried" in said.err
    assert renter.server.calls("create") == 1 and renter.server.boxes == {}
    assert "does not get out" not in renter.up("--boxes", "1").ended(0).err


def test_what_goes_wrong_with_one_box_leaves_no_other_unwatched(renter):
    """The second order has no answer: the first box is waited for all the same."""
    renter.server.fault("create", "", "html")
    said = renter.up().ended(75)
    assert "MAY STILL BILL" in said.err and "box-a is up" in said.err
    first, second = renter.records()
    assert first["up_at"] and not second["id"] and renter.server.calls("create") == 2


def test_after_an_order_without_an_answer_no_other_host_is_tried_for_a_box_that_is_not_up(renter):
    renter.server.boots = -1
    renter.server.fault("create", "", "html")
    said = renter.up().ended(75)
    assert "did not come up" in said.err and renter.server.calls("create") == 2
    assert renter.server.boxes == {}


def test_a_log_that_cannot_be_had_holds_up_no_end(renter):
    renter.server.boots = -1
    renter.server.fault("log", *["before 500"] * 9)
    said = renter.up("--boxes", "1")
    assert renter.server.boxes == {} and "is gone, seen twice" in said.err


def test_a_host_that_says_that_it_cannot_is_left_early_and_its_machine_blocked(renter):
    if renter.server.name != "vastai":
        pytest.skip("only vast.ai tells of its hosts")
    renter.server.bad_words = "Error response from daemon: manifest unknown"
    renter.server.boots = -1
    renter.up("--boxes", "1").ended(1)
    machines = {one["machine"] for one in renter.records()}
    assert len(machines) == 3, "another machine each time"
    renter.server.bad_words, renter.server.boots = "", 1
    said = renter.type("offers", "--json").document
    assert {one["machine"] for one in said["markets"][0]["offers"]}.isdisjoint(machines)


def test_one_that_is_dearer_than_agreed_is_ended_again(renter):
    renter.server.real_rate = 50.0
    said = renter.up("--boxes", "1")
    assert said.code and "at most" in said.err and renter.server.boxes == {}


def test_an_end_that_is_not_confirmed_is_75_and_goes_on_with_the_next_up(renter):
    renter.server.boots = -1
    renter.server.fault("end", *["nothing"] * 30)
    said = renter.up("--boxes", "1").ended(75)
    assert "MAY STILL BILL" in said.err and len(renter.server.boxes) == 1
    [old] = renter.server.boxes
    assert [one["id"] for one in renter.orphans()] == [old]
    renter.server._faults.clear()
    renter.server.boots = 1
    renter.up("--boxes", "1").ended(0)
    assert old not in renter.server.boxes and len(renter.server.boxes) == 1


def test_all_that_is_in_the_way_is_said_at_once(renter):
    (renter.home / ".ssh").unlink()
    renter.server.credit = 0.01
    said = renter.up("--spot").ended(2)
    assert "no ssh key" in said.err and "spot" in said.err.replace("--spot", "spot")
    assert ("balance" in said.err) is (renter.server.name == "vastai")
    assert renter.server.calls("create") == 0


@pytest.mark.parametrize(
    ("budget", "words"), [("0.5 USD", "at most"), ("200 CNY", "Add an amount in USD")]
)
def test_a_budget_that_is_too_small_or_in_another_currency_refuses(renter, budget, words):
    renter.project.write_job(budget=budget)
    said = renter.up("--boxes", "1").ended(2)
    assert words in said.err and renter.server.ever == {}


def test_a_bid_is_the_price_that_was_typed(renter):
    said = renter.up("--boxes", "1", "--spot", "--max-price", "0.3")
    if renter.server.name != "vastai":
        assert said.ended(2) and "no spot" in said.err
        return
    said.ended(0)
    [box] = renter.server.boxes.values()
    assert box.body["price"] == 0.3 and box.is_bid


@pytest.mark.parametrize(
    ("key", "words"), [("", "export"), ("wrong-key-1", "key"), (LOOKS_ONLY, "key")]
)
def test_a_key_that_will_not_do_rents_nothing_and_is_not_shown(renter, key, words):
    said = renter.up("--boxes", "1", **{KEYS[renter.server.name]: key})
    assert said.code and words in said.err and renter.server.ever == {}
    assert not key or key not in said.err + said.out


def test_another_accounts_key_does_not_go_on_with_these_boxes(renter):
    renter.up("--boxes", "1").ended(0)
    said = renter.up(**{KEYS[renter.server.name]: OTHERS}).ended(2)
    assert "another key" in said.err and len(renter.server.boxes) == 1


def test_a_run_of_this_name_on_another_laptop_is_said_before_anything_is_rented(renter, tmp_path):
    renter.up("--boxes", "1").ended(0)
    elsewhere = {"XDG_STATE_HOME": str(tmp_path / "another-laptop")}
    said = renter.up("--boxes", "1", **elsewhere).ended(2)
    assert "another machine" in said.err and len(renter.server.boxes) == 1


def test_a_strangers_box_of_that_name_is_nobodys_business(renter):
    renter.server.stranger("boxcar-training")
    renter.server.stranger("tiny")
    renter.up("--boxes", "1").ended(0)
    assert len(renter.server.boxes) == 3


def test_more_boxes_than_the_job_names_are_refused_with_what_to_write(renter):
    said = renter.up("--boxes", "5").ended(2)
    assert "names 2 boxes" in said.err and "pool" in said.err


def test_a_box_with_a_host_entry_of_the_person_is_theirs(renter, ssh_home):
    (renter.home / ".ssh").unlink()
    (renter.home / ".ssh").mkdir(mode=0o700)
    for name in ("id_ed25519", "id_ed25519.pub"):
        data = (ssh_home / ".ssh" / name).read_bytes()
        (renter.home / ".ssh" / name).write_bytes(data)
        (renter.home / ".ssh" / name).chmod(0o600)
    (renter.home / ".ssh" / "config").write_text("Host box-a\n  HostName 192.0.2.1\n")
    renter.up().ended(0)
    assert [one["box"] for one in renter.records()] == ["box-b"]


def test_one_that_was_lost_is_replaced_once_it_is_gone(renter):
    renter.up().ended(0)
    old = renter.records()[0]
    running = renter.up("--replace", old["box"]).ended(2)
    assert "neither gone nor stopped" in running.err and renter.server.calls("create") == 2
    del renter.server.boxes[old["id"]]
    renter.up("--replace", old["box"]).ended(0)
    now = renter.records()
    assert len(renter.server.boxes) == 2 and renter.server.calls("create") == 3
    assert [one["gone_at"] is not None for one in now if one["nonce"] == old["nonce"]] == [True]
    assert renter.server.calls("end") == 0


def test_one_that_was_outbid_is_stopped_first_and_never_destroyed(renter):
    if renter.server.name == "lambda":
        pytest.skip("Lambda has no stop")
    spot = ("--spot", "--max-price", "0.5") if renter.server.name == "vastai" else ()
    renter.up("--boxes", "1", *spot).ended(0)
    [old] = renter.records()
    renter.server.outbid(old["id"])
    said = renter.up("--replace", old["box"], *spot).ended(0)
    assert "keeps its disk" in said.err and renter.server.calls("end") == 0
    assert sorted(renter.server.boxes) == sorted(one["id"] for one in renter.records())
    assert renter.server.boxes[old["id"]].is_bid is False, "it does not start again by itself"


def test_no_key_and_no_secret_is_said_or_written(renter, tmp_path):
    said = [renter.type("offers"), renter.up("--hours", "1"), renter.type("orphans", "--json")]
    for one in said:
        assert not any(text in one.out + one.err for text in (KEY, SECRET))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_where_boxcar_cannot_rent_it_is_said_how_to(renter):
    said = renter.project.boxcar("up", "-p", "autodl", env=renter.env).ended(2)
    assert "cannot rent there" in said.err and "vastai" in said.err


def test_a_ceiling_of_rate_counts_the_live_boxes_of_all_runs(renter):
    renter.up("--boxes", "1").ended(0)
    [first] = renter.records()
    most = first["rate"] + first["most_rate"] / 2
    renter.project.write_job(max_rate=f"{most:.4f} USD/h")
    said = renter.up("--boxes", "2").ended(2)
    assert "max_rate" in said.err and "1 live box of yours" in said.err
    assert renter.server.calls("create") == 1
    renter.project.write_job(max_rate=f"{3 * first['most_rate']:.4f} USD/h")
    renter.up("--boxes", "2").ended(0)
    assert renter.server.calls("create") == 2


def test_a_ceiling_in_another_currency_refuses(renter):
    renter.project.write_job(max_rate="3 CNY/h")
    said = renter.up("--boxes", "1").ended(2)
    assert "Write it in USD" in said.err and renter.server.ever == {}


def test_a_filesystem_of_another_region_is_no_offer_and_a_missing_one_is_named(renter):
    if renter.server.name != "lambda":
        pytest.skip("only Lambda mounts a filesystem of the account")
    renter.server.file_systems = {"boxcar": "us-east-1"}
    said = renter.type("offers").ended(1)
    assert "the filesystem boxcar is in us-east-1" in said.err
    renter.server.file_systems = {}
    said = renter.up("--boxes", "1")
    assert said.code == 2 and "the account has no filesystem boxcar" in said.err
    assert renter.server.ever == {}


def test_a_deadline_is_laid_where_the_question_named_it_and_only_there(renter):
    renter.server.credit = 500.0
    said = renter.up("--hours", "100").ended(0)
    has_one = renter.server.name != "lambda"  # which has no stop
    assert ("a box stops itself" in said.err) is has_one
    [one, two] = renter.records()
    assert (one.get("quiet_s"), one.get("most_s")) == ((21600, 720000) if has_one else (None, None))
    assert renter.deadlines() == (sorted([one["id"], two["id"]]) if has_one else [])


def test_one_of_an_older_up_that_asked_for_no_deadline_gets_none(renter):
    renter.up("--boxes", "1").ended(0)
    [record] = renter.records()
    folder = renter.home / "state" / "boxcar"
    shutil.rmtree(folder / "boxes", ignore_errors=True)
    without = {name: value for name, value in record.items() if name not in ("quiet_s", "most_s")}
    (folder / "rented" / f"{record['nonce']}.json").write_text(json.dumps(without))
    renter.up("--boxes", "2").ended(0)
    assert record["id"] not in renter.deadlines()

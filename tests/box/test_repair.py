"""Damage on the tier of a rented box: found and put back over ssh, from what the laptop has."""

from __future__ import annotations

import pytest
from hosts import Hosts
from proof import assert_pulled
from rented import rent


@pytest.mark.faults
def test_a_damaged_journal_and_a_lost_manifest_are_put_back_over_ssh(
    one_box: Hosts, tmp_path
) -> None:
    run = rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one", "configs/b.json one"]})
    run.launch().ended(0)
    run.boxcar("watch", "--every", "1s").ended(0)
    journal, manifest = run.tier / "journal/q1.jsonl", run.tier / "cells/b/manifest.json"
    before = {path: path.read_bytes() for path in (journal, manifest)}
    data = bytearray(before[journal])
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    manifest.unlink()

    said = run.boxcar("status").ended(1)
    assert "q1: damaged" in said.err and "boxcar repair" in said.err
    run.boxcar("repair").ended(1)
    assert journal.read_bytes() == bytes(data) and not manifest.exists()
    run.boxcar("repair", "--put-back").ended(0)
    assert {path: path.read_bytes() for path in before} == before
    run.boxcar("status").ended(0)
    run.boxcar("pull").ended(0)
    run.boxcar("verify").ended(0)
    assert_pulled(run, ["a", "b"])

from __future__ import annotations

from boxcar.laptop.results.judge import how_checked
from boxcar.shared.files.receipt import Finding


def test_what_nobody_could_look_into_is_said_beside_what_was_loaded() -> None:
    findings = [
        Finding("best.pth", "torch"),
        Finding("art/rows.csv", "csv", facts={"gaps": 3}),
        Finding("art/model.safetensors", "safetensors", facts={"unlooked": ["every value"]}),
        Finding("art/blob", "bytes"),
    ]
    assert how_checked(findings) == "3 loaded, 1 bytes only, 1 partly checked, 3 gaps"
    assert how_checked(findings[:1]) == "1 loaded"
    assert how_checked([Finding("a.csv", "csv", facts={"gaps": 1})]) == "1 loaded, 1 gap"
    bad = Finding("best.pth", "torch", ("holds NaN",))
    assert how_checked([bad, findings[0]]) == "1 loaded, 1 bad"
    assert how_checked([]) == ""


def test_each_file_is_counted_once() -> None:
    text = Finding("model.txt", "bytes", facts={"hashed_here": True, "loaded_on": "box-a"})
    assert how_checked([text, Finding("m.json", "json")]) == "1 loaded, 1 bytes only"
    blob = Finding("b", "bytes", facts={"globals": ["a.B"]}, load="trusted")
    assert how_checked([blob]) == "1 bytes only"

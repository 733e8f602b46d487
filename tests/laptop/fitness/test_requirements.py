from __future__ import annotations

import pytest

from boxcar.laptop.fitness.requirements import AskedPackages, judge_packages, read_lines

TEXT = """\
# what the mixer needs
einops>=0.7  # shapes
timm==1.0.9 --hash=sha256:00
-r more.txt
--index-url https://mirror/simple
git+https://host/repo.git
tomli; python_version < "3.11"
"""


def test_lines_that_name_no_package_are_left_to_pip():
    assert [line.name for line in read_lines(TEXT)] == ["einops", "timm", "tomli"]


def judged(has: dict[str, str | None], text: str = TEXT, **how: bool) -> list[tuple[str, str]]:
    asked = AskedPackages(read_lines(text), **how)
    return [(verdict, str(why)) for verdict, _, why in judge_packages("3.12.3", has, asked)]


def test_a_job_without_requirements_has_no_row():
    assert judged({}, "") == []


def test_what_is_there_in_the_right_version_is_fine_and_a_marker_is_of_the_boxs_python():
    assert judged({"einops": "0.8.0", "timm": "1.0.9", "tomli": None}) == [("ok", "")]


def test_what_is_missing_or_too_old_is_named_with_what_is_there():
    [(verdict, why)] = judged({"einops": "0.6.1", "timm": None})
    assert verdict == "refuse"
    assert why == (
        "not there: einops>=0.7 (0.6.1), timm==1.0.9 (-). Install them, or write install: yes in "
        "job.yaml"
    )


@pytest.mark.parametrize(("how", "verdict"), [("has_setup", "warn"), ("is_installed", "ok")])
def test_who_installs_later_is_not_refused(how, verdict):
    [(found, _)] = judged({"einops": None, "timm": None}, **{how: True})
    assert found == verdict


def test_an_install_that_would_replace_torch_is_refused():
    [(verdict, why)] = judged({"torch": "2.6.0+cu124"}, "torch>=2.7", is_installed=True)
    assert (verdict, "torch>=2.7 (2.6.0+cu124)" in why) == ("refuse", True)
    assert judged({"torch": "2.6.0+cu124"}, "torch==2.6.0", is_installed=True) == [("ok", "")]

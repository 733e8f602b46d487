from __future__ import annotations

from pathlib import Path

from boxcar.laptop.common.home import Home

ROOT = Path("/work/digits")


def test_everything_lies_below_the_projects_own_folder_under_the_names_of_today():
    """They lie on people's disks: another name would forget the boxes and what was tried."""
    home = Home(ROOT)
    places = [
        *(home.release("ab12"), home.agent("onbox-1.pyz"), home.mirror, home.known_hosts),
        *(home.host("box-a"), home.smoke("r"), home.smoke_passes, home.seen("autodl")),
        *(home.reported("r"), home.split, home.demo),
    ]
    assert [str(place.relative_to(ROOT / ".boxcar")) for place in places] == [
        *("releases/ab12", "onbox/onbox-1.pyz", "mirror", "known_hosts"),
        *("hosts/box-a.json", "smoke/r", "smoke/passes", "seen/autodl.json"),
        *("watch/r.json", "split.json", "demo.json"),
    ]

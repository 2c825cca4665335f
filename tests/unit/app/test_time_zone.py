"""The zone of shown times: the site's, named beside each time, the same on pages, in reports and from commands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from app.kit.clock import shown, stamp
from app.reports import format as f
from app.settings import Settings, settings
from app.web.render import absolute

AT = datetime(2026, 11, 29, 20, 30, 15, tzinfo=UTC)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch):
    def set_to(name: str) -> None:
        monkeypatch.setenv("QUADGATE_TIME_ZONE", name)
        settings.cache_clear()

    yield set_to
    settings.cache_clear()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("UTC", "2026-11-29 20:30:15 UTC"),
        ("Asia/Shanghai", "2026-11-30 04:30:15 +08:00 Asia/Shanghai"),
        ("America/New_York", "2026-11-29 15:30:15 -05:00 America/New_York"),
    ],
)
def test_a_page_a_report_and_a_command_show_one_time_in_one_zone_and_name_it(zone, name: str, said: str) -> None:
    zone(name)
    assert {shown(AT), shown(stamp(AT)), shown(AT.isoformat()), absolute(AT), absolute(stamp(AT)), f.moment(AT), f.moment(stamp(AT))} == {said}
    assert shown(AT, seconds=False) == said[:16] + said[19:]
    assert stamp(AT) == "2026-11-29T20:30:15.000Z"  # what is stored and what programs read stays in UTC


def test_the_hour_that_comes_twice_has_two_offsets(zone) -> None:
    zone("Europe/Berlin")
    twice = [shown(datetime(2026, 10, 25, hour, 30, tzinfo=UTC)) for hour in (0, 1)]
    assert twice == ["2026-10-25 02:30:00 +02:00 Europe/Berlin", "2026-10-25 02:30:00 +01:00 Europe/Berlin"]


def test_no_time_and_text_that_is_none_stay_what_they_are(zone) -> None:
    zone("Asia/Shanghai")
    assert [shown(None), shown(""), shown("yesterday")] == ["", "", "yesterday"]
    assert (f.moment(None), f.moment("yesterday")) == (f.MISSING, "yesterday")


@pytest.mark.parametrize("name", ["Asia/Nowhere", "../../etc/passwd", "", "Peking"])
def test_a_zone_that_the_machine_does_not_know_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("QUADGATE_TIME_ZONE", name)
    with pytest.raises(ValidationError, match="time_zone"):
        Settings()

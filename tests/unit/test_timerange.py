"""Spans of time: durations, ISO times in a zone, and last night over the change of the clocks."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from quietburn.common.timerange import Span, iso, microseconds, span, zone_of
from quietburn.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 9, 8, 7, 30, tzinfo=UTC)


def at(text: str) -> int:
    """Return a UTC time as microseconds."""
    return microseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


def test_no_flags_leave_the_span_open() -> None:
    assert span(None, None, last_night=False, zone=None, now=NOW) == Span(None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24h", "2026-09-07T07:30:00"), ("15m", "2026-09-08T07:15:00"), ("90s", "2026-09-08T07:28:30"),
        ("1.5d", "2026-09-06T19:30:00"), ("0s", "2026-09-08T07:30:00"), (" 2h ", "2026-09-08T05:30:00"),
        ("2026-09-08T02:00:00Z", "2026-09-08T02:00:00"), ("2026-09-08T02:00:00.000001Z", "2026-09-08T02:00:00.000001"),
        ("2026-09-08T02:00:00+02:00", "2026-09-08T00:00:00"), ("2026-09-08 02:00", "2026-09-08T02:00:00"),
        ("2026-09-08", "2026-09-08T00:00:00"), ("20260908T020000Z", "2026-09-08T02:00:00"),
    ],
)
def test_a_moment_is_iso_or_a_duration_back_from_now(text: str, expected: str) -> None:
    assert span(text, None, last_night=False, zone=None, now=NOW).since_us == at(expected)
    assert span(None, text, last_night=False, zone=None, now=NOW).until_us == at(expected)


def test_a_time_without_a_zone_is_in_the_named_one() -> None:
    asked = span("2026-07-01T00:00:00", "2026-12-01T00:00:00", last_night=False, zone=BERLIN, now=NOW)
    assert asked == Span(at("2026-06-30T22:00:00"), at("2026-11-30T23:00:00"))


@pytest.mark.parametrize(
    "text", ["", "yesterday", "24", "h", "-1h", "1e3h", "24 h", "2026-13-01", "2026-09-08T25:00", "1w", "\uff11h", "1h\n2h"]
)
def test_what_is_no_moment_is_refused_with_both_forms_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--until .*: write an ISO time \(.*\) or a duration \(24h, 15m\)\.$"):
        span(None, text, last_night=False, zone=None, now=NOW)


def test_a_duration_of_more_than_a_century_is_refused() -> None:
    assert span("36600d", None, last_night=False, zone=None, now=NOW).since_us is not None
    with pytest.raises(UsageError, match="goes back too far"):
        span("36601d", None, last_night=False, zone=None, now=NOW)
    with pytest.raises(UsageError, match="goes back too far"):
        span("9" * 400 + "d", None, last_night=False, zone=None, now=NOW)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("1h", "2h"), ("1h", "1h"), ("2026-09-08T02:00:00Z", "2026-09-08T02:00:00Z"),
        ("2026-09-08T02:00Z", "2026-09-08T03:59+02:00"),
    ],
)
def test_an_empty_span_is_refused(since: str, until: str) -> None:
    with pytest.raises(UsageError, match="--since is not before --until"):
        span(since, until, last_night=False, zone=None, now=NOW)


@pytest.mark.parametrize(
    ("now", "zone", "start", "end"),
    [
        # An ordinary night, asked for in the morning, in the small hours and late in the evening.
        ("2026-09-08T07:30:00", BERLIN, "2026-09-07T16:00:00", "2026-09-08T07:00:00"),
        ("2026-09-08T01:00:00", BERLIN, "2026-09-07T16:00:00", "2026-09-08T07:00:00"),
        ("2026-09-08T21:59:59", BERLIN, "2026-09-07T16:00:00", "2026-09-08T07:00:00"),
        # 22:00 UTC is the next day in Berlin's summer.
        ("2026-09-08T22:00:00", BERLIN, "2026-09-08T16:00:00", "2026-09-09T07:00:00"),
        # 25 October 2026, clocks go back: 18:00 is at +02:00, 09:00 at +01:00, the night has sixteen hours.
        ("2026-10-25T08:30:00", BERLIN, "2026-10-24T16:00:00", "2026-10-25T08:00:00"),
        # 29 March 2026, clocks go forward: fourteen hours.
        ("2026-03-29T07:30:00", BERLIN, "2026-03-28T17:00:00", "2026-03-29T07:00:00"),
        # The same in New York (1 November 2026), and a zone of half hours.
        ("2026-11-01T15:00:00", ZoneInfo("America/New_York"), "2026-10-31T22:00:00", "2026-11-01T14:00:00"),
        ("2026-09-08T07:30:00", ZoneInfo("Asia/Kolkata"), "2026-09-07T12:30:00", "2026-09-08T03:30:00"),
        ("2026-09-08T07:30:00", UTC, "2026-09-07T18:00:00", "2026-09-08T09:00:00"),
    ],
)
def test_last_night_is_18_to_9_on_the_clocks_of_the_zone(now: str, zone: ZoneInfo, start: str, end: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert span(None, None, last_night=True, zone=zone, now=moment) == Span(at(start), at(end))


@pytest.fixture
def machine_in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("machine_in_berlin")
def test_last_night_without_a_zone_is_this_machines_with_the_change_of_the_clocks() -> None:
    back = span(None, None, last_night=True, zone=None, now=datetime(2026, 10, 25, 8, 30, tzinfo=UTC))
    assert back == Span(at("2026-10-24T16:00:00"), at("2026-10-25T08:00:00"))
    forward = span(None, None, last_night=True, zone=None, now=datetime(2026, 3, 29, 7, 30, tzinfo=UTC))
    assert forward == Span(at("2026-03-28T17:00:00"), at("2026-03-29T07:00:00"))


def test_last_night_names_a_span_already() -> None:
    for since, until in (("1h", None), (None, "1h")):
        with pytest.raises(UsageError, match="--last-night can't be combined with --since and --until"):
            span(since, until, last_night=True, zone=None, now=NOW)


def test_zones_are_known_by_their_exact_name() -> None:
    assert zone_of(None) is None
    assert zone_of("utc") is UTC
    assert zone_of("Europe/Berlin") == BERLIN


@pytest.mark.parametrize(
    "name", ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "localtime", "posixrules", "Europe", "a\0b", "x" * 5000]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no such time zone"):
        zone_of(name)


def test_a_zone_in_other_letters_is_pointed_to_the_right_name() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'Europe/Berlin'\?"):
        zone_of("europe/berlin")


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01T00:00:00Z"), (1_788_833_640_000_000, "2026-09-08T02:14:00Z"),
        (1_788_833_640_250_000, "2026-09-08T02:14:00.250000Z"), (1_788_833_640_000_001, "2026-09-08T02:14:00.000001Z"),
        (None, None),
    ],
)
def test_times_are_shown_in_utc_and_exactly(us: int | None, text: str | None) -> None:
    assert iso(us) == text
    if text:
        assert microseconds(datetime.fromisoformat(text)) == us

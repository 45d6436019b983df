"""Spans of time that a call asks for."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from quietburn.common.messages import nearest
from quietburn.errors import UsageError

_RELATIVE = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([smhd])$")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NIGHT_STARTS, _NIGHT_ENDS = time(18), time(9)
_NO_PLACES = frozenset({"localtime", "posixrules", "Factory"})  # in the folder of zones, but not one of them


@dataclass(frozen=True)
class Span:
    """A half-open span in UTC microseconds; None is open."""

    since_us: int | None = None
    until_us: int | None = None


def zone_of(name: str | None) -> tzinfo | None:
    """Return a named time zone. Raises UsageError for an unknown one."""
    if name is None:
        return None
    if name.upper() == "UTC":
        return UTC
    known = available_timezones() - _NO_PLACES
    if name not in known:
        hint = nearest(name, known) or "; use a name like Europe/Berlin or UTC"
        raise UsageError(f"tz {name!r}: no such time zone{hint}.")
    return ZoneInfo(name)


def span(
    since: str | None, until: str | None, *, last_night: bool, zone: tzinfo | None, now: datetime | None = None
) -> Span:
    """Return the span that the flags name. Raises UsageError for what can't be read.

    A duration (`24h`, `15m`) counts back from now; a time without zone is in `zone`, else UTC.
    Last night is 18:00 yesterday to 09:00 today in `zone`, else in this machine's zone.
    """
    now = now or datetime.now(UTC)
    if last_night:
        if since or until:
            raise UsageError("--last-night can't be combined with --since and --until.")
        today = now.astimezone(zone).date()
        yesterday = today - timedelta(days=1)
        return Span(_clock(yesterday, _NIGHT_STARTS, zone), _clock(today, _NIGHT_ENDS, zone))
    found = Span(_moment("--since", since, zone, now), _moment("--until", until, zone, now))
    if found.since_us is not None and found.until_us is not None and found.since_us >= found.until_us:
        raise UsageError("--since is not before --until; the time range is empty.")
    return found


def _clock(day: date, clock: time, zone: tzinfo | None) -> int:
    """Return a wall-clock time, each with the offset of its own moment (a night may change it)."""
    naive = datetime.combine(day, clock)
    return microseconds(naive.replace(tzinfo=zone) if zone else naive.astimezone())


def _moment(flag: str, text: str | None, zone: tzinfo | None, now: datetime) -> int | None:
    if text is None:
        return None
    relative = _RELATIVE.match(text.strip())
    if relative:
        seconds = float(relative[1]) * _SECONDS[relative[2]]
        if seconds > 100 * 366 * 86400:
            raise UsageError(f"{flag} {text!r}: goes back too far.")
        return microseconds(now - timedelta(seconds=seconds))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{flag} {text!r}: write an ISO time (2026-09-08T02:00:00Z) or a duration (24h, 15m).") from None
    return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=zone or UTC))


def microseconds(moment: datetime) -> int:
    """Return a moment as UTC microseconds since 1970, exactly."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def iso(us: int | None) -> str | None:
    """Return UTC microseconds as ISO 8601 with Z: whole seconds short, else with microseconds."""
    if us is None:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    return moment.isoformat(timespec="microseconds" if us % 1_000_000 else "seconds").replace("+00:00", "Z")

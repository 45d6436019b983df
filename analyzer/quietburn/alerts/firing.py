"""When an alert should fire: flagged minutes put through `for` and `keep_firing_for`."""

from collections.abc import Iterable


def firing_minutes(flagged: Iterable[int], *, hold_s: int, keep_s: int, last: int) -> list[int]:
    """Return the evaluations (minutes) at which the alert fires, up to `last`.

    As Prometheus's rules/alerting.go has it: pending turns to firing at the first evaluation at
    least `for` after the first; one evaluation without the series ends a pending alert; a firing
    one stays while less than `keep_firing_for` has passed since the first evaluation without.
    """
    true_at = set(flagged)
    firing: list[int] = []
    active: int | None = None
    fires = False
    missing_since: int | None = None
    for minute in range(min(true_at, default=last + 1), last + 1):
        if minute in true_at:
            active = minute if active is None else active
            missing_since = None
            fires = fires or (minute - active) * 60 >= hold_s
        elif fires:
            missing_since = minute if missing_since is None else missing_since
            if (minute - missing_since) * 60 >= keep_s:
                active, fires, missing_since = None, False, None
        else:
            active = None
        if fires:
            firing.append(minute)
    return firing


def runs(minutes: Iterable[int]) -> list[tuple[int, int]]:
    """Return maximal runs of consecutive minutes as (first, last)."""
    found: list[tuple[int, int]] = []
    for minute in sorted(set(minutes)):
        if found and minute == found[-1][1] + 1:
            found[-1] = (found[-1][0], minute)
        else:
            found.append((minute, minute))
    return found

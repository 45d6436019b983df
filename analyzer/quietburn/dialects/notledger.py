"""Recognise files that look like a ledger but aren't: run summaries and counters."""

from collections.abc import Mapping

from quietburn.dialects.doubts import HasValues, only_grows
from quietburn.dialects.names import plain_name

_STATISTICS = {
    "mean", "median", "avg", "average", "std", "stddev", "p50", "p75", "p90", "p95", "p99", "p999", "throughput", "goodput",
}  # fmt: skip
_OF_ONE_CALL = ("request_id", "req_id", "trace_id", "call_id", "x_request_id", "status_code", "http_status")
_PLACES = {"id", "seq", "index", "line", "offset", "number"}  # what grows from line to line by itself
_LEAST = 3
_SHOWN = 3


def what_it_is_instead(seen: Mapping[str, HasValues]) -> str | None:
    """Return why a sample's keys are no calls': a summary, or counters; None where they may be."""
    numbers = {key: found for key in seen if (found := _numbers(seen[key]))}
    names = {key: plain_name(key) for key in seen}
    if not any(name in _OF_ONE_CALL for name in names.values()):
        statistics = [key for key in numbers if set(names[key].split("_")) & _STATISTICS]
        if len(statistics) >= _LEAST:
            return (
                f"is a summary with one row per run ({', '.join(statistics[:_SHOWN])}, …); a ledger has one line per call. "
                "Make the program write each call (vllm bench serve: --save-detailed)."
            )
    moving = {key: found for key, found in numbers.items() if len(set(found)) > 1 and not set(names[key].split("_")) & _PLACES}
    if moving and all(only_grows(found) for found in moving.values()):
        return (
            f"contains counters, which only grow ({', '.join(list(moving)[:_SHOWN])}); this is a metrics scrape, "
            "and a ledger has one line per call."
        )
    return None


def _numbers(found: HasValues) -> list[float]:
    """Return a key's values where all are numbers and no times."""
    try:
        numbers = [float(value) for value in found.values.values() if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return []
    return [] if any(number > 1.4e9 for number in numbers) or len(numbers) < len(found.values) else numbers

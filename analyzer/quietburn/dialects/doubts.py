"""Reasons not to map a key to a column, from its name or from its values in a sample."""

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Protocol

from quietburn.common.columns import BY_NAME, STORED_AS, Kind
from quietburn.dialects.names import plain_name


class HasValues(Protocol):
    """What a sample shows of one key."""

    values: dict[int, Any]


_TOKENS = (
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "actual_tokens", "est_tokens",
)
_OPPOSITE = {"non", "not", "no", "without", "uncached", "un", "excluding", "except"}
_NO_COUNT = {
    "latency", "cost", "costs", "rate", "per", "price", "usd", "max", "min", "limit", "limits", "budget", "remaining", "quota",
    "avg", "mean", "median", "speed", "throughput", "second", "seconds", "allowed",
}  # fmt: skip
_OTHER_TIMES = {"expires", "expiry", "expiration", "ttl", "created", "updated", "modified", "reset", "deploy", "deployed"}
_BEGINNINGS = {"start", "started", "begin", "began", "first", "issued", "received", "arrival", "arrived", "queued"}
_SPANS = {"latency", "duration", "elapsed", "timeout"}
_SUCCESS = {"none", "null", "ok", "success", "succeeded", "false", "-", "0", "no", "true", "completed", "200"}
_FINISHES = {
    "stop", "end_turn", "stop_sequence", "eos", "complete", "completed", "length", "max_tokens", "tool_calls", "tool_use",
    "function_call", "content_filter", "refusal", "error", "abort", "cancelled", "model_length", "safety", "recitation",
}  # fmt: skip
_MOST = 0.9
_FEW = 0.05
_LEAST = 5  # lines that show a habit
_MANY = 10  # lines that grow by chance once in millions
_DAY_S = 86_400.0
# What holds the parts of one call, and so lends its last step its whole meaning.
_CONTAINERS = {
    "request", "req", "response", "resp", "http", "outcome", "result", "usage", "metrics", "attributes", "data", "call", "event",
    "token_usage", "log", "record", "fields", "payload", "body",
}  # fmt: skip


def name_doubt(column: str, key: str, *, whole: bool) -> str | None:
    """Return what a key's name says against a column; None where it says nothing.

    `whole` that a known dialect uses all of the name, not its last step alone.
    """
    steps = [plain_name(step) for step in key.strip("/").split("/")] if key.startswith("/") else [plain_name(key)]
    words = {word for step in steps for word in step.split("_")}
    if words & _OPPOSITE:
        return f"its name says {min(words & _OPPOSITE)!r}, which may mean the opposite"
    if column in _TOKENS and words & _NO_COUNT:
        return f"its name says {min(words & _NO_COUNT)!r}, which is not a count of tokens spent"
    if column in ("ts", "started_at") and words & (_OTHER_TIMES | _SPANS):
        return f"its name says {min(words & (_OTHER_TIMES | _SPANS))!r}, which is not the time of a call"
    if column == "ts" and words & _BEGINNINGS:
        return f"its name says {min(words & _BEGINNINGS)!r}, which is not an end"
    if not whole and len(steps) > 1 and "_" not in steps[-1] and not set(steps[:-1]) <= _CONTAINERS:
        return "only the last part of its name matches"
    return None


def value_doubt(column: str, key: str, seen: Mapping[str, HasValues], statuses: Mapping[int, Any]) -> str | None:
    """Return what a key's values say against a column; `statuses` are the HTTP statuses by line, where they are known."""
    values = seen[key].values
    kind = BY_NAME[STORED_AS.get(column, column)].kind
    if column == "status":
        return _status_doubt(values.values())
    if column == "error":
        return _error_doubt(values, statuses, max(len(one.values) for one in seen.values()))
    if column == "finish_reason" and _share(str(value).lower() in _FINISHES for value in values.values()) < 0.8:
        return "its values are not finish reasons"
    if kind is Kind.TIME:
        return _time_doubt(key, seen)
    if kind is Kind.COUNT:
        return _count_doubt(column, list(values.values()))
    return None


def _status_doubt(values: Iterable[Any]) -> str | None:
    codes = _share(_number(value) in range(100, 600) for value in values)
    return None if codes >= 1 - _FEW else "its values are not HTTP statuses"


def _error_doubt(values: Mapping[int, Any], statuses: Mapping[int, Any], lines: int) -> str | None:
    if _share(str(value).strip().lower() in _SUCCESS for value in values.values()) > _FEW:
        return "its values are words for success"
    answered = [line for line, status in statuses.items() if 200 <= (_number(status) or 0) < 300]
    if answered and _share(line in values for line in answered) > _FEW:
        return "it has a value on lines with a 2xx status"
    if len(values) > _MOST * lines:
        return "it has a value on nearly every line"
    return None


def _time_doubt(key: str, seen: Mapping[str, HasValues]) -> str | None:
    medians = {name: median for name, one in seen.items() if (median := _median_time(one.values.values())) is not None}
    usual = statistics.median_high(medians.values())  # of two the later: a call is logged after what it refers to
    values = list(seen[key].values.values())
    if abs(medians.get(key, math.inf) - usual) > _DAY_S:
        return "it is more than a day from the other times"
    if len(values) >= _LEAST and len(set(map(str, values))) == 1:
        return "it is the same on every line"
    return None


def _count_doubt(column: str, values: list[Any]) -> str | None:
    numbers = [number for value in values if (number := _number(value)) is not None]
    if _share(number == int(number) for number in numbers if math.isfinite(number)) < 1 - _FEW:
        return "its values are not whole numbers"
    if column in _TOKENS and only_grows(numbers):
        return "it only grows: a counter, not the duration of one call"
    if column == "answer_chars" and _share(number == 0 for number in numbers) > 0.5:
        return "it is 0 on most lines"
    return None


def only_grows(numbers: list[float]) -> bool:
    """Whether numbers in the order of lines never fall and do grow, on enough lines to be no chance."""
    return len(numbers) >= _MANY and len(set(numbers)) > 2 and all(a <= b for a, b in pairwise(numbers))


def _share(found: Iterable[bool]) -> float:
    listed = list(found)
    return sum(listed) / len(listed) if listed else 1.0


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _median_time(values: Iterable[Any]) -> float | None:
    """Return the median of values that are times, in epoch seconds; None where most are none."""
    values = list(values)
    seconds = [second for value in values if (second := _seconds(value)) is not None]
    return statistics.median(seconds) if seconds and len(seconds) >= 0.8 * len(values) else None


def _seconds(value: Any) -> float | None:
    number = None if isinstance(value, bool) else _number(value)
    if number is not None:
        return next((number / factor for factor in (1, 1e3, 1e6, 1e9) if 1_420_070_400 <= number / factor <= 4_102_444_800), None)
    if not isinstance(value, str) or not re.match(r"[0-9]{4}-", value):
        return None
    try:
        read = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return read.timestamp()

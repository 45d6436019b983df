"""The named transforms of mapping files: what a value means beyond its unit and its translation.

Each takes what JSON gave (numbers as NumberText) and returns a text, a number, a flag or None. A value
that a transform can't read is returned as it is, or becomes an object, so that the checks of its column
refuse it and count it. No call raises: see `Transform.__call__`.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from quietburn.common.columns import NO_ERROR
from quietburn.common.limits import epoch_seconds
from quietburn.dialects.contents import choices_chars, instructions, messages_chars, system_text, text_chars
from quietburn.dialects.guarded import UNREADABLE, Transform, number_of
from quietburn.records.exact import NumberText, Pairs, decode

# nginx writes a comma before the next server and a spaced colon after a redirect.
_SEPARATOR = re.compile(r",|(?<=\s):(?=\s)")
_NOTHING = ("", "-")


def _items(value: Any) -> list[Any]:
    """Return a list's items: of a JSON list, of a JSON list in a text, or of a text with commas."""
    if isinstance(value, str) and not isinstance(value, NumberText):
        if value.lstrip().startswith("["):
            inner = decode(value)
            return inner if isinstance(inner, list) and not isinstance(inner, Pairs) else [value]
        return [item.strip() for item in _SEPARATOR.split(value)]
    return value if isinstance(value, list) and not isinstance(value, Pairs) else [value]


def _told(items: Iterable[Any]) -> list[Any]:
    return [item for item in items if item is not None and not (isinstance(item, str) and item.strip() in _NOTHING)]


def last_item(value: Any) -> Any:
    """Return the last item that says something: the server that was tried last."""
    told = _told(_items(value))
    return told[-1] if told else None


def first_item(value: Any) -> Any:
    """Return the first item that says something."""
    told = _told(_items(value))
    return told[0] if told else None


def item_count(value: Any) -> Any:
    """Return how many items say something."""
    return number_of(len(_told(_items(value))))


def _as_decimal(value: Any) -> Decimal | None:
    try:
        number = Decimal(value.strip()) if isinstance(value, str) else None
    except InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None


def item_sum(value: Any) -> Any:
    """Return the sum of the items: the time of all servers that were tried."""
    told = _told(_items(value))
    numbers = [number for item in told if (number := _as_decimal(item)) is not None]
    if len(numbers) < len(told):
        return value
    return number_of(sum(numbers, Decimal(0))) if numbers else None


def plus_one(value: Any) -> Any:
    """Return the number of an attempt from the retries before it."""
    number = _as_decimal(value)
    return value if number is None else number_of(number + 1)


def _seconds(value: Any) -> float | None:
    """Return a time as seconds since 1970; a text without a zone as if it were UTC."""
    number = _as_decimal(value)
    if number is not None:  # as everywhere, the unit is told by the size
        return epoch_seconds(float(number))
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None else (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def ms_between(start: Any, end: Any) -> Any:
    """Return the milliseconds from one time to another."""
    first, last = _seconds(start), _seconds(end)
    if end is None or start is None:
        return None
    if first is None or last is None:
        return end
    return number_of(round((last - first) * 1000, 3))


def ms_to_first_chunk(start: Any, first: Any, end: Any) -> Any:
    """Return the milliseconds to the first chunk; a first chunk at the very end was no stream's."""
    return None if first == end else ms_between(start, first)


def seconds_to_first_byte(response_times: Any, header_times: Any) -> Any:
    """Return the seconds to the first byte of the server that was tried last, those before it included."""
    tried, headers = _items(response_times), _items(header_times)
    last = headers[-1] if headers else None
    if not _told([last]) or len(tried) != len(headers):
        return None
    parts = [_as_decimal(item) for item in (*_told(tried[:-1]), last)]
    return number_of(sum((part for part in parts if part is not None), Decimal(0))) if None not in parts else last


PROBE_TAGS = ("litellm-internal-health-check",)


def probe_of_tags(tags: Any) -> Any:
    """Return `probe` where a tag says that nobody asked."""
    if not all(isinstance(tag, str) for tag in _items(tags)):
        return UNREADABLE
    return "probe" if any(tag in PROBE_TAGS for tag in _items(tags) if isinstance(tag, str)) else None


# Envoy's response flags: the caller went; the answer broke after its status was sent.
_CALLER_LEFT = frozenset({"DC", "DR"})
_BROKEN = frozenset({"DC", "DR", "UC", "UR", "UT", "SI", "UMSDR", "LR", "DPE", "UPE", "DT", "OM"})


def _flags(value: Any) -> frozenset[str] | None:
    """Return the flags, none for `-`; None for what is no text of flags or list of them."""
    flags = _items(value)
    return frozenset(_told(flags)) if flags and all(isinstance(flag, str) for flag in flags) else None


def flags_caller_left(flags: Any) -> Any:
    """Return whether Envoy's response flags say that the caller left first."""
    told = _flags(flags)
    return UNREADABLE if told is None else bool(told & _CALLER_LEFT)


def flags_complete(flags: Any) -> Any:
    """Return whether an answer ended as it should, by Envoy's response flags."""
    told = _flags(flags)
    return UNREADABLE if told is None else not told & _BROKEN


def caller_broke_off(completion: Any) -> Any:
    """Return whether the caller's connection broke, by nginx's completion: `OK`, or nothing where it did.

    `OK` says nothing of the answer: it stands behind those that the backend broke off too.
    """
    if not isinstance(completion, str):
        return completion
    return False if completion == "OK" else (True if completion in _NOTHING else completion)


def all_bytes_sent(sent: Any, announced: Any) -> Any:
    """Return whether as many bytes were sent as were announced; unknown where no length was, as in a stream."""
    if not isinstance(announced, str) or announced.strip() in _NOTHING:
        return None
    bytes_sent, length = _as_decimal(sent), _as_decimal(announced)
    if bytes_sent is None or length is None:
        return announced if length is None else None
    return bytes_sent >= length


def side_of_cluster(value: Any) -> Any:
    """Return which end of the call an Istio proxy logged: outbound (the caller's) or inbound (the callee's)."""
    if not isinstance(value, str):
        return value
    name = value.strip().lower()
    if name.startswith("inbound"):
        return "inbound"
    return "outbound" if name.startswith(("outbound", "passthroughcluster")) else None


def is_event_stream(content_type: Any) -> Any:
    """Return whether a content type is that of a stream of events."""
    if content_type is None or content_type in _NOTHING:
        return None
    if not isinstance(content_type, str):
        return UNREADABLE
    return content_type.split(";")[0].strip().lower() == "text/event-stream"


def deadline_unless_stream(timeout: Any, content_type: Any) -> Any:
    """Return a read timeout as the answer's deadline: of a stream, or what may be one, it only limits the gaps."""
    return timeout if is_event_stream(content_type) is False and timeout not in _NOTHING else None


def as_tool_call(name: Any) -> Any:
    """Return `tool_call` where a call names the tool or the protocol of tools that it went to."""
    return None if name is None or name in _NOTHING else "tool_call"


def iso_time(value: Any) -> Any:
    """Return a time as ISO writes it, also from the form of access logs (`10/Oct/2026:13:55:36 +0000`)."""
    try:
        return datetime.strptime(value, "%d/%b/%Y:%H:%M:%S %z").isoformat() if isinstance(value, str) else value
    except ValueError:
        return value


def _request_line(value: Any) -> list[str]:
    return value.split(" ") if isinstance(value, str) and value.count(" ") in (1, 2) else []


def request_method(line: Any) -> Any:
    """Return the method of a request line (`POST /v1/messages HTTP/1.1`)."""
    return next(iter(_request_line(line)), None) if isinstance(line, str) else line


def request_path(line: Any) -> Any:
    """Return the path of a request line."""
    return next(iter(_request_line(line)[1:]), None) if isinstance(line, str) else line


def unless_same(value: Any, other: Any) -> Any:
    """Return an id unless it is the session's, which would make one request of a conversation."""
    return None if value == other else value if other is None or isinstance(other, str) else UNREADABLE


def joined(first: Any, second: Any) -> Any:
    """Return two ids as one; nothing where either is missing."""
    if first is None or second is None:
        return None
    return f"{first}/{second}" if isinstance(first, str) and isinstance(second, str) else UNREADABLE


def span_status(http_status: Any, error: Any, code: Any) -> Any:
    """Return a span's HTTP status: its own, or that of its error; 200 where nothing says that it failed."""
    if http_status is not None:
        return http_status
    if isinstance(error, str) and not _means_none(error):
        return error if re.fullmatch(r"[1-5][0-9]{2}", error) else None
    if not all(value is None or isinstance(value, str) for value in (error, code)):
        return UNREADABLE
    return None if str(code) in ("2", "STATUS_CODE_ERROR", "ERROR") else number_of(200)


def status_unless_failed(code: Any, kind: Any, message: Any) -> Any:
    """Return an error's own code; 200 where there is no error at all."""
    if code is not None:
        return code
    return number_of(200) if _means_none(kind) and _means_none(message) else None


def _means_none(error: Any) -> bool:
    return error is None or (isinstance(error, str) and error.strip().lower() in NO_ERROR)


_IN_MS = {
    name: Decimal(factor)
    for factor, names in (
        ("1000", ("s", "sec", "second", "seconds")), ("1", ("ms", "millisecond", "milliseconds")),
        ("0.001", ("us", "microsecond", "microseconds")), ("0.000001", ("ns", "nanosecond", "nanoseconds")),
    )
    for name in names
}


def ms_of_unit(value: Any, unit: Any) -> Any:
    """Return a duration in milliseconds by the unit that is named beside it."""
    number = _as_decimal(value)
    if number is None:
        return value
    factor = _IN_MS.get(unit.strip().lower()) if isinstance(unit, str) else None
    # In a unit that nobody knows it is no number that could be used; the check of its column refuses the text.
    return "in an unknown unit" if factor is None else number_of(number * factor)


def span_error(error: Any, code: Any) -> Any:
    """Return what a span says went wrong; `unspecified` where it says only that something did."""
    if not _means_none(error):
        return error
    return "unspecified" if str(code) in ("2", "STATUS_CODE_ERROR", "ERROR") else None


TRANSFORMS: dict[str, Transform] = {
    name: Transform(
        function, takes, (function.__doc__ or "").split("\n")[0].removeprefix("Return ").rstrip("."),
        tells_of_nothing=name in ("span_status", "status_unless_failed"),
    )
    for name, function, takes in (
        ("last_item", last_item, 1), ("first_item", first_item, 1), ("item_count", item_count, 1),
        ("item_sum", item_sum, 1), ("plus_one", plus_one, 1), ("ms_between", ms_between, 2),
        ("ms_to_first_chunk", ms_to_first_chunk, 3), ("seconds_to_first_byte", seconds_to_first_byte, 2),
        ("choices_chars", choices_chars, 1), ("messages_chars", messages_chars, 1), ("text_chars", text_chars, 1),
        ("system_text", system_text, 1), ("instructions", instructions, 1), ("probe_of_tags", probe_of_tags, 1),
        ("flags_caller_left", flags_caller_left, 1), ("flags_complete", flags_complete, 1),
        ("caller_broke_off", caller_broke_off, 1), ("all_bytes_sent", all_bytes_sent, 2),
        ("is_event_stream", is_event_stream, 1), ("side_of_cluster", side_of_cluster, 1),
        ("deadline_unless_stream", deadline_unless_stream, 2),
        ("iso_time", iso_time, 1), ("request_method", request_method, 1), ("request_path", request_path, 1),
        ("as_tool_call", as_tool_call, 1), ("unless_same", unless_same, 2), ("joined", joined, 2),
        ("status_unless_failed", status_unless_failed, 3), ("ms_of_unit", ms_of_unit, 2),
        ("span_status", span_status, 3), ("span_error", span_error, 2),
    )
}

"""Each transform that a mapping may name, on values worked out by hand, and on anything at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietburn.dialects.transforms import TRANSFORMS
from quietburn.records.exact import NumberText, Pairs

N = NumberText
MESSAGE = Pairs([("role", "assistant"), ("content", "Paris.")])

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("last_item", ("504, 200",), "200"),
    ("last_item", ("10.0.0.1:80 : 10.0.0.2:80",), "10.0.0.2:80"),
    ("last_item", ("200, -",), "200"),
    ("last_item", ("-",), None),
    ("first_item", ('["stop"]',), "stop"),
    ("first_item", ([],), None),
    ("first_item", ("stop",), "stop"),
    ("item_count", ("a:1, b:2 : c:3",), "3"),
    ("item_count", ([Pairs(), Pairs()],), "2"),
    ("item_count", ("",), "0"),
    ("item_sum", ("3.001, 6.740",), "9.741"),
    ("item_sum", ("-, 0.5",), "0.5"),
    ("item_sum", ("-",), None),
    ("item_sum", ("1, late",), "1, late"),  # left for the checks to refuse
    ("iso_time", ("10/Oct/2026:13:55:36 +0200",), "2026-10-10T13:55:36+02:00"),
    ("iso_time", ("2026-10-10T13:55:36Z",), "2026-10-10T13:55:36Z"),
    ("iso_time", ("soon",), "soon"),
    ("request_method", ("POST /v1/messages?beta=1 HTTP/1.1",), "POST"),
    ("request_path", ("POST /v1/messages?beta=1 HTTP/1.1",), "/v1/messages?beta=1"),
    ("request_path", ("GET /",), "/"),
    ("request_path", ("",), None),  # a connection that sent no request
    ("request_method", ("\\x16\\x03\\x01",), None),  # TLS spoken to a port without it
    ("plus_one", ("0",), "1"),
    ("plus_one", ("often",), "often"),
    ("ms_between", (N("1767000000.10"), N("1767000001.02")), "920.0"),
    ("ms_between", ("2025-12-29 09:20:00.000", "2025-12-29 09:20:00.250"), "250.0"),
    ("ms_between", ("2025-12-29 09:20:00", None), None),
    ("ms_between", ("2025-12-29 09:20:00", "soon"), "soon"),
    ("ms_to_first_chunk", ("2025-12-29 09:20:00", "2025-12-29 09:20:01", "2025-12-29 09:20:01"), None),
    ("ms_to_first_chunk", ("2025-12-29 09:20:00", "2025-12-29 09:20:01", "2025-12-29 09:20:02"), "1000.0"),
    ("seconds_to_first_byte", ("3.001, 6.740", "-, 0.900"), "3.901"),
    ("seconds_to_first_byte", ("2.0", "-"), None),
    ("seconds_to_first_byte", (None, []), None),
    ("seconds_to_first_byte", ("1.0, 2.0", "0.5"), None),  # lists that don't match tell nothing
    ("choices_chars", ([Pairs([("message", MESSAGE)])],), "6"),
    ("choices_chars", ([Pairs([("message", Pairs([("content", None)]))])],), "0"),
    ("choices_chars", ([Pairs([("text", "abc")])],), "3"),
    ("choices_chars", ([],), None),
    ("messages_chars", ('[{"role": "assistant", "parts": [{"type": "text", "content": "Paris."}]}]',), "6"),
    ("messages_chars", ("not JSON",), None),
    ("text_chars", ("abc",), "3"),
    ("system_text", ([Pairs([("role", "system"), ("content", "Be short.")])],), "Be short."),
    ("system_text", ([Pairs([("role", "user"), ("content", "Hi")])],), None),
    ("instructions", ({"role": "developer", "content": "Be short."},), "Be short."),
    ("instructions", ({"role": "user", "content": "Be short."},), None),
    ("instructions", ({"role": "system", "content": ["Be short."]},), None),
    ("instructions", ("Be short.",), None),
    ("probe_of_tags", ('["a", "litellm-internal-health-check"]',), "probe"),
    ("probe_of_tags", (["a"],), None),
    ("flags_caller_left", ("UT,DC",), True),
    ("flags_caller_left", ("-",), False),
    *[("flags_complete", (flag,), False) for flag in ("DC", "UC", "UR", "SI", "UMSDR", "UT")],
    ("flags_complete", ("-",), True),
    ("flags_complete", ("RFCF",), True),  # from a cache
    ("caller_broke_off", ("OK",), False),
    ("caller_broke_off", ("",), True),
    ("caller_broke_off", ("maybe",), "maybe"),
    ("all_bytes_sent", ("40", "40"), True),
    ("all_bytes_sent", (N("40"), N("100")), False),
    ("all_bytes_sent", ("40", ""), None),  # a stream announces none
    ("all_bytes_sent", ("40", "-"), None),
    ("all_bytes_sent", (None, "40"), None),
    ("all_bytes_sent", ("40", "long"), "long"),
    ("side_of_cluster", ("inbound|8080||",), "inbound"),
    ("side_of_cluster", ("outbound|80||llm.default.svc.cluster.local",), "outbound"),
    ("side_of_cluster", ("PassthroughCluster",), "outbound"),
    ("side_of_cluster", ("llm-pool",), None),  # an Envoy without a mesh names its clusters freely
    ("is_event_stream", ("Text/Event-Stream; charset=utf-8",), True),
    ("is_event_stream", ("application/json",), False),
    ("is_event_stream", ("",), None),
    ("deadline_unless_stream", ("5", "application/json"), "5"),
    ("deadline_unless_stream", ("5", "text/event-stream"), None),
    ("deadline_unless_stream", ("5", None), None),
    ("as_tool_call", ("tools/call",), "tool_call"),
    ("as_tool_call", ("-",), None),
    ("as_tool_call", (None,), None),
    ("unless_same", ("t", "s"), "t"),
    ("unless_same", ("s", "s"), None),
    ("joined", ("t", "s"), "t/s"),
    ("joined", ("t", None), None),
    ("status_unless_failed", (None, None, None), "200"),
    ("status_unless_failed", (N("499"), "RequestCancellationError", "cancelled"), "499"),
    ("status_unless_failed", (None, "ClientConnectorError", None), None),
    ("status_unless_failed", (None, None, "refused"), None),
    ("ms_of_unit", (N("9750.0"), "ms"), "9750.0"),
    ("ms_of_unit", (N("0.92"), "sec"), "920.00"),
    ("ms_of_unit", (N("300000000"), "ns"), "300.000000"),
    ("ms_of_unit", (N("300"), "us"), "0.300"),
    ("ms_of_unit", (N("3"), "ticks"), "in an unknown unit"),
    ("ms_of_unit", (N("3"), None), "in an unknown unit"),
    ("ms_of_unit", (None, "ms"), None),
    ("span_status", (None, None, None), "200"),
    ("span_status", (None, None, N("1")), "200"),
    ("span_status", (None, None, N("2")), None),
    ("span_status", (None, "timeout", None), None),
    ("span_status", (None, "500", N("2")), "500"),
    ("span_status", (N("503"), None, None), "503"),
    ("span_error", (None, N("2")), "unspecified"),
    ("span_error", ("timeout", None), "timeout"),
    ("span_error", (None, N("0")), None),
]


@pytest.mark.parametrize(("name", "values", "wanted"), CASES, ids=[f"{n}{v}" for n, v, _ in CASES])
def test_a_transform_says_what_was_worked_out_by_hand(name: str, values: tuple[Any, ...], wanted: object) -> None:
    made = TRANSFORMS[name](*values)
    assert made == wanted
    assert type(made) is type(wanted) or isinstance(made, NumberText)


def test_every_transform_is_tested_and_says_what_it_does() -> None:
    assert {name for name, _, _ in CASES} == set(TRANSFORMS)
    assert all(transform.meaning for transform in TRANSFORMS.values())


ODD = [N("1"), N("-0.5"), N("NaN"), N("1e400"), "9" * 400, "[1", "-"]
KEYS = st.sampled_from(["message", "content", "text", "role", "parts"])


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.lists(st.tuples(KEYS, inner), max_size=3)
    return st.lists(inner, max_size=3) | pairs.map(Pairs) | pairs.map(dict)


anything = st.recursive(st.none() | st.booleans() | st.text(max_size=12) | st.sampled_from(ODD), _nested, max_leaves=6)


@given(st.sampled_from(sorted(TRANSFORMS)), st.lists(anything, min_size=3, max_size=3))
def test_no_transform_fails_on_any_value(name: str, values: list[Any]) -> None:
    transform = TRANSFORMS[name]
    transform(*values[: transform.takes])

"""Requests, their verdicts and the rates over them, by the definitions of usable answers."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, jsonl, report_of

from quietburn.analysis.run import Request
from quietburn.common.config import Config
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.intervals.estimates import wilson
from quietburn.records.inputs import LedgerFile
from quietburn.report.model import RatesReport

Event = dict[str, Any]


def answer(start: float = 0, end: float = 1, **other: Any) -> Event:
    """Return a usable answer within its 8 s; what is given as None is left out."""
    event: Event = {
        "ts": T0 + end, "latency_ms": (end - start) * 1000, "status": 200, "deadline_ms": 8000, "stream": True,
        "finish_reason": "stop", "answer_chars": 12,
    }  # fmt: skip
    return {key: value for key, value in (event | other).items() if value is not None}


def failure(status: int | None, start: float = 0, end: float = 1, **other: Any) -> Event:
    """Return an attempt that was not answered."""
    return answer(start, end, **({"status": status, "finish_reason": None, "answer_chars": None} | other))


HOUR = 3600
LATE = {"end": 9.0}
EMPTY = {"answer_chars": 0}
CUT: Event = {"finish_reason": None}

VERDICTS: list[tuple[str, list[Event], list[str]]] = [
    ("an answer in time", [answer()], ["usable"]),
    ("an answer just in time", [answer(end=8)], ["usable"]),
    ("an answer a millisecond late", [answer(end=8.001)], ["late"]),
    ("an answer without text", [answer(**EMPTY)], ["empty"]),
    ("an answer of tool calls", [answer(**EMPTY, tool_calls=2)], ["usable"]),
    ("an answer that ended in tool calls", [answer(**EMPTY, finish_reason="tool_calls")], ["usable"]),
    ("a stream without an end", [answer(**CUT)], ["truncated"]),
    ("a stream with an end marker only", [answer(**CUT, terminal_seen=True)], ["usable"]),
    ("a stream with no end marker but a reason", [answer(terminal_seen=False)], ["usable"]),
    ("a stream that the gateway calls incomplete", [answer(stream_complete=False, terminal_seen=True)], ["truncated"]),
    ("a stream that the gateway calls complete", [answer(**CUT, stream_complete=True)], ["usable"]),
    ("no word whether it streamed, and no end", [answer(**CUT, stream=None)], ["truncated"]),
    ("an answer at once, without a reason", [answer(**CUT, stream=False)], ["usable"]),
    ("a reason in capitals", [answer(finish_reason="STOP")], ["usable"]),
    ("a refusal of the model", [answer(finish_reason="content_filter")], ["usable"]),
    ("a length limit", [answer(finish_reason="length")], ["usable"]),
    ("a limit of tokens", [answer(finish_reason="max_tokens")], ["usable"]),
    ("a reason nobody knows", [answer(finish_reason="other")], ["usable"]),
    ("cut, empty and late", [answer(end=9, finish_reason=None, answer_chars=0)], ["truncated"]),
    ("empty and late", [answer(**LATE, **EMPTY)], ["empty"]),
    ("cut and late", [answer(**LATE, **CUT)], ["truncated"]),
    ("no word of the text", [answer(answer_chars=None)], ["usable"]),
    ("a web page", [answer(content_type="text/html; charset=utf-8")], ["empty"]),
    ("a web page in capitals", [answer(content_type="Text/HTML")], ["empty"]),
    ("a web page that says 500", [failure(500, content_type="text/html")], ["failed"]),
    ("an answer in JSON", [answer(content_type="application/json")], ["usable"]),
    ("no outcome at all", [failure(None)], ["unknown"]),
    ("no outcome, allowed", [failure(None, decision="allow")], ["unknown"]),
    ("no outcome beside an answer", [failure(None), answer(2, 3)], ["usable"]),
    ("no outcome beside a late answer", [failure(None), answer(2, 9)], ["unknown"]),
    ("no outcome beside a failure", [failure(None), failure(500, 2, 3)], ["unknown"]),
    ("no deadline", [answer(deadline_ms=None)], ["unknown"]),
    ("no start", [answer(latency_ms=None)], ["unknown"]),
    ("no deadline, and cut", [answer(deadline_ms=None, **CUT)], ["truncated"]),
    ("an error within the answer", [answer(error="overloaded")], ["failed"]),
    ("500", [failure(500)], ["failed"]),
    ("408", [failure(408)], ["failed"]),
    ("425", [failure(425)], ["failed"]),
    ("302", [failure(302)], ["failed"]),
    ("a timeout", [failure(None, error="timeout")], ["failed"]),
    ("a refused connection", [failure(None, error="connect", sent=False)], ["failed"]),
    ("429", [failure(429)], ["refused"]),
    ("503 by the gate", [failure(503, reason="queue_age")], ["refused"]),
    ("503 of nobody", [failure(503)], ["failed"]),
    ("a rejection", [failure(403, decision="reject")], ["refused"]),
    ("a rejection without status", [failure(None, decision="deny")], ["refused"]),
    *((str(status), [failure(status)], ["invalid"]) for status in (400, 401, 403, 404, 413, 422)),
    ("left before the deadline", [failure(499)], ["abandoned"]),
    ("left at the deadline", [failure(499, end=8)], ["failed"]),
    ("left after the deadline", [failure(499, end=8.5)], ["failed"]),
    ("left 400 ms before a deadline of 8 s", [failure(499, end=7.6)], ["abandoned"]),
    ("left 399 ms before a deadline of 8 s", [failure(499, end=7.601)], ["failed"]),
    ("left 250 ms before a deadline of 2 s", [failure(499, end=1.75, deadline_ms=2000)], ["abandoned"]),
    ("left 249 ms before a deadline of 2 s", [failure(499, end=1.751, deadline_ms=2000)], ["failed"]),
    ("left at the deadline without a status", [failure(None, end=8, client_closed=True)], ["failed"]),
    ("left at the deadline after a refusal", [failure(429, end=8, client_closed=True)], ["refused"]),
    ("left early after an error", [failure(500, client_closed=True)], ["failed"]),
    ("left early after its own fault", [failure(400, client_closed=True)], ["invalid"]),
    ("left, nobody knows the deadline", [failure(499, deadline_ms=None)], ["unknown"]),
    ("left, nobody knows the start", [failure(499, latency_ms=None)], ["unknown"]),
    ("left with part of an answer, nobody knows the deadline", [answer(**CUT, client_closed=True, deadline_ms=None)],
     ["abandoned"]),
    ("left with nothing of an answer, nobody knows the deadline",
     [answer(**CUT, **EMPTY, client_closed=True, deadline_ms=None)], ["unknown"]),
    ("left at the deadline in the middle of an empty answer", [answer(**CUT, **EMPTY, end=7.9, client_closed=True)], ["late"]),
    ("left at the first attempt's deadline", [failure(500, 0, 5), failure(499, 5, 8)], ["failed"]),
    ("left at an attempt's own deadline, before its request's", [failure(500, 0, 1, deadline_ms=60000),
                                                                 failure(499, 1, 6, deadline_ms=5000)], ["abandoned"]),
    ("left once an empty answer was there", [answer(**EMPTY, client_closed=True)], ["empty"]),
    ("left without a status", [failure(None, client_closed=True)], ["abandoned"]),
    ("left in the middle of an answer", [answer(**CUT, client_closed=True)], ["abandoned"]),
    ("left in the middle of an answer that was late", [answer(**CUT, **LATE, client_closed=True)], ["late"]),
    ("left once the answer was there", [answer(client_closed=True)], ["usable"]),
    ("a retry that was answered", [failure(500), answer(2, 3)], ["usable"]),
    ("a retry beside an answer", [answer(), failure(500, 2, 3)], ["usable"]),
    ("a retry that was too late for the first attempt", [failure(500, 0, 5), answer(6, 9)], ["late"]),
    ("a retry just in time for the first attempt", [failure(500, 0, 5), answer(6, 8)], ["usable"]),
    ("the first deadline that is told counts", [failure(500, deadline_ms=None), failure(500, 1, 2, deadline_ms=5000),
                                                answer(3, 6, deadline_ms=60000)], ["late"]),
    ("the first deadline that is told counts, in time", [failure(500, deadline_ms=None), answer(3, 6, deadline_ms=7000)],
     ["usable"]),
    ("the first attempt's deadline counts", [failure(500, deadline_ms=9000), answer(2, 6, deadline_ms=1)], ["usable"]),
    ("the first attempt without a start", [failure(500, 0, 1, latency_ms=None), answer(2, 3)], ["unknown"]),
    ("lines out of order", [answer(6, 9), failure(500, 0, 5)], ["late"]),
    ("last is by start, not by line", [failure(400, 5, 6), failure(429, 0, 1)], ["invalid"]),
    ("last is by attempt number among equal starts", [failure(429, attempt=2), failure(400, attempt=1)], ["refused"]),
    ("last is by end among equal starts", [failure(429, 0, 3), failure(400, 0, 2)], ["refused"]),
    ("refused at last", [failure(500), failure(429, 2, 3)], ["refused"]),
    ("failed at last", [failure(429), failure(500, 2, 3)], ["failed"]),
    ("invalid at last", [failure(503, reason="full"), failure(401, 2, 3)], ["invalid"]),
    ("an unknown answer before who left", [answer(latency_ms=None), failure(499, 2, 3)], ["unknown"]),
    ("an answer that says less before one that says all", [answer(answer_chars=None), answer(2, 3)], ["usable"]),
    ("left after a cut answer", [answer(**CUT), failure(499, 2, 3)], ["abandoned"]),
    ("a late answer before a refusal", [answer(**LATE), failure(429, 10, 11)], ["late"]),
    ("the answer that ends first names the fault", [answer(0, 3, **EMPTY), answer(1, 7, **CUT)], ["empty"]),
    ("the answer that ends first, started last", [answer(0, 7, **EMPTY), answer(1, 3, **CUT)], ["truncated"]),
    ("an id that comes again after two hours", [answer(), failure(500, 2 * HOUR, 2 * HOUR + 1)], ["usable", "failed"]),
    ("an id that comes again within the hour", [failure(500), failure(429, HOUR, HOUR + 1)], ["refused"]),
    ("an hour counts from the end", [failure(500, 0, HOUR), failure(429, HOUR + 3000, HOUR + 3001)], ["refused"]),
    ("an id that comes again after exactly an hour", [failure(500, 0, 10), failure(429, 10 + HOUR, 11 + HOUR)], ["refused"]),
    ("an id that comes again a millisecond later", [failure(500, 0, 10), failure(429, 10.001 + HOUR, 11 + HOUR)],
     ["failed", "refused"]),
    ("a probe", [answer(traffic="probe")], []),
    ("a batch job", [answer(traffic="batch")], ["usable"]),
    ("another route", [answer(route="/v1/models")], []),
]  # fmt: skip


def verdicts_of(folder: Path, events: list[Event], settings: Settings | None = None) -> dict[str, list[str]]:
    """Return the verdicts by id, in order of the requests' starts."""
    path = folder / "ledger.jsonl"
    path.write_bytes(jsonl(events))
    with DuckEngine(known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile("ledger", path)])
        engine.prepare(settings or Settings())
        rows = engine.connection.execute(
            "SELECT COALESCE(request_id, idempotency_key, ''), verdict FROM all_events WHERE decides "
            "ORDER BY request_started_us, line"
        ).fetchall()
    found: dict[str, list[str]] = {}
    for key, verdict in rows:
        found.setdefault(key, []).append(verdict)
    return found


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the verdicts of one ledger that holds every row of the table; most rows answer every question."""
    events = [event | {"request_id": name} for name, attempts, _ in VERDICTS for event in attempts]
    return verdicts_of(tmp_path_factory.mktemp("verdicts"), events)


@pytest.mark.parametrize(("name", "expected"), [(row[0], row[2]) for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_each_request_gets_the_first_verdict_that_applies(
    name: str, expected: list[str], verdicts: dict[str, list[str]]
) -> None:
    assert verdicts.get(name, []) == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_lines_changes_no_verdict(reverse: bool, tmp_path: Path) -> None:  # noqa: FBT001
    events = [event | {"request_id": name} for name, attempts, _ in VERDICTS for event in attempts]
    events.sort(key=lambda event: (event.get("finish_reason") or "", -event["ts"]), reverse=reverse)
    assert verdicts_of(tmp_path, events) == {name: expected for name, _, expected in VERDICTS if expected}


def test_an_idempotency_key_is_the_id_where_there_is_no_other(tmp_path: Path) -> None:
    events = [
        failure(500, idempotency_key="k"), answer(2, 3, idempotency_key="k"),
        failure(500, request_id="r", idempotency_key="one"), answer(2, 3, request_id="r", idempotency_key="two"),
        answer(request_id="s", idempotency_key="same"), answer(2, 3, request_id="t", idempotency_key="same"),
    ]  # fmt: skip
    assert verdicts_of(tmp_path, events) == {"k": ["usable"], "r": ["usable"], "s": ["usable"], "t": ["usable"]}


def test_attempts_without_any_id_are_requests_of_their_own(tmp_path: Path) -> None:
    assert verdicts_of(tmp_path, [failure(500), answer(2, 3)]) == {"": ["failed", "usable"]}


def test_a_length_limit_proves_nothing_where_it_is_configured_not_to_be_complete(tmp_path: Path) -> None:
    events = [answer(), answer(2, 3), answer(4, 5, finish_reason="length")]
    report = report_of(tmp_path, events, config=Config(length_is_complete=False))
    assert (report.rates.verdicts["usable"], report.rates.unproven["complete"]) == (3, 1)
    whole = report_of(tmp_path, events).rates
    assert (whole.verdicts["usable"], whole.length_limited) == (3, 1)


def rates_of(folder: Path, events: list[Event], config: Config | None = None) -> RatesReport:
    """Return the rates of a ledger; one rule is enough here."""
    request = Request(config=config or Config(), only=("late-but-200",))
    return report_of(folder, events, request=request).rates


def burst(count: int, latency_ms: float, patience_ms: float, status: int = 200) -> list[Event]:
    """Return calls that all start at T0."""
    return [
        {"ts": T0 + latency_ms / 1000, "latency_ms": latency_ms, "status": status, "deadline_ms": patience_ms}
        for _ in range(count)
    ]  # fmt: skip


KNOWN = [
    ("32 callers at once, no bound", burst(1, 600, 700) + burst(31, 1900, 700), 32, 1.0, 1, 0.03125),
    ("the same with a bound of 8", burst(6, 600, 700) + burst(2, 900, 700) + burst(24, 1, 700, 429), 8, 0.25, 6, 0.1875),
    ("a slow backend", burst(8, 3000, 1500), 8, 1.0, 0, 0.0),
    ("a deadline that travels", burst(8, 1046, 1500), 8, 1.0, 8, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "successes", "success_rate", "usable", "usable_rate"), [row[1:] for row in KNOWN], ids=[row[0] for row in KNOWN]
)
def test_the_known_results_come_out_exactly(
    events: list[Event], successes: int, success_rate: float, usable: int, usable_rate: float, tmp_path: Path
) -> None:
    rates = rates_of(tmp_path, [event | {"request_id": f"r{number}"} for number, event in enumerate(events)])
    attempts = len(events)
    assert (rates.attempts, rates.successes, rates.success_rate) == (attempts, successes, success_rate)
    assert (rates.usable, rates.usable_rate, rates.valid) == (usable, usable_rate, attempts)
    assert rates.usable_rate_bounds == (usable_rate, usable_rate)
    assert rates.false_success_share == (successes - usable) / attempts
    assert [rates.criteria[name].measured for name in ("on_time", "complete", "non_empty")] == [True, False, False]


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (1, 32, 0.0055, 0.1574), (6, 32, 0.0889, 0.3531), (0, 8, 0.0, 0.3244), (8, 8, 0.6756, 1.0), (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0), (5, 10, 0.2366, 0.7634),
    ],
)  # fmt: skip
def test_the_interval_is_wilsons(successes: int, total: int, low: float, high: float) -> None:
    found = wilson(successes, total)
    assert found == pytest.approx((low, high), abs=5e-5)
    assert 0 <= found[0] <= successes / total <= found[1] <= 1


@pytest.mark.parametrize("total", [1, 2, 3, 7, 10, 99, 1000, 10**6])
def test_the_interval_reaches_exactly_0_and_1_at_its_edges(total: int) -> None:
    assert wilson(0, total)[0] == 0.0
    assert wilson(total, total)[1] == 1.0


def test_the_interval_goes_from_the_usable_ones_to_the_unknown_ones(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [*(answer(n, n + 1) for n in range(6)), answer(9, 10, deadline_ms=None), failure(500)])
    assert (rates.usable, rates.unknown, rates.valid, rates.judged) == (6, 1, 8, 7)
    assert (rates.usable_rate, rates.judged_share) == (6 / 7, 7 / 8)
    assert rates.usable_rate_bounds == (0.75, 0.875)
    assert rates.usable_rate_interval95 == (wilson(6, 8)[0], wilson(7, 8)[1])


def test_refused_requests_are_valid_and_invalid_and_abandoned_ones_are_not(tmp_path: Path) -> None:
    events = [answer(), failure(429), failure(500), failure(400), failure(401), failure(499)]
    rates = rates_of(tmp_path, events)
    assert (rates.requests, rates.valid, rates.usable_rate, rates.usable_rate_of_all) == (6, 3, 1 / 3, 1 / 6)
    assert {name: count for name, count in rates.verdicts.items() if count} == {
        "usable": 1, "refused": 1, "failed": 1, "invalid": 2, "abandoned": 1,
    }  # fmt: skip


def test_the_dashboards_rate_counts_probes_and_errors_in_band_and_the_usable_rate_does_not(tmp_path: Path) -> None:
    events = [
        answer(traffic="user"), answer(2, 3, traffic="user", error="overloaded"), failure(500, traffic="user"),
        *(answer(n, n + 1, traffic="probe") for n in range(3)),
    ]  # fmt: skip
    rates = rates_of(tmp_path, events)
    assert (rates.attempts, rates.successes, rates.success_rate) == (6, 5, 5 / 6)
    assert (rates.requests, rates.requests_with_2xx, rates.usable_rate) == (3, 1, 1 / 3)
    assert {t.traffic: (t.attempts, t.successes) for t in rates.by_traffic} == {"user": (3, 2), "probe": (3, 3)}


def test_amplification_is_attempts_over_requests_without_probes(tmp_path: Path) -> None:
    events = [
        failure(500, request_id="a"), failure(500, 2, 3, request_id="a"), answer(4, 5, request_id="a"),
        answer(request_id="b"), answer(6, 7, traffic="probe"),
    ]  # fmt: skip
    rates = rates_of(tmp_path, events)
    assert (rates.requests, rates.amplification, rates.request_success_rate) == (2, 2.0, 1.0)


@pytest.mark.parametrize("telling", range(9))
def test_what_no_line_tells_of_an_answer_neither_lowers_nor_raises_the_rate(telling: int, tmp_path: Path) -> None:
    told = [answer(n, n + 1) for n in range(telling)]
    untold = [answer(n, n + 1, answer_chars=None, finish_reason="other") for n in range(10, 14)]
    rates = rates_of(tmp_path, told + untold)
    assert (rates.usable, rates.unknown, rates.usable_rate) == (telling + 4, 0, 1.0)
    assert rates.unproven == {"complete": 4, "non_empty": 4}
    assert rates.unproven_streamed == {"complete": 4, "non_empty": 4}
    assert rates.criteria["non_empty"].coverage == telling / (telling + 4)


def test_answers_at_once_that_say_why_they_ended_cut_no_stream_that_does_not(tmp_path: Path) -> None:
    streams = [answer(n, n + 1, **CUT) for n in range(4)]
    alone = rates_of(tmp_path, streams)
    mixed = rates_of(tmp_path, streams + [answer(n, n + 1, stream=False) for n in range(10, 14)])
    assert (alone.usable_rate, mixed.usable_rate) == (1.0, 1.0)
    assert (alone.unproven["complete"], mixed.unproven["complete"]) == (4, 4)


def test_a_known_no_counts_however_few_answers_tell(tmp_path: Path) -> None:
    events = [answer(0, 1, **EMPTY), *(answer(n, n + 1, answer_chars=None) for n in range(2, 6))]
    rates = rates_of(tmp_path, events)
    assert rates.criteria["non_empty"].measured is False
    assert (rates.verdicts["empty"], rates.usable) == (1, 4)


def test_answers_that_are_logged_alike_are_told_apart(tmp_path: Path) -> None:
    events = [answer(), answer(2, 3, **CUT, terminal_seen=None), answer(4, 5, stream=False, answer_chars=None)]
    found = {each.stream: each for each in rates_of(tmp_path, events).answers}
    assert {stream: each.answered for stream, each in found.items()} == {True: 2, False: 1}
    assert (found[False].criteria["non_empty"].coverage, found[True].criteria["non_empty"].coverage) == (0.0, 1.0)


def test_where_on_time_is_not_measured_there_is_no_usable_rate(tmp_path: Path) -> None:
    events = [answer(**LATE), *(answer(n, n + 1, deadline_ms=None) for n in range(2, 5))]
    rates = rates_of(tmp_path, events)
    assert (rates.criteria["on_time"].measured, rates.criteria["on_time"].coverage) == (False, 0.25)
    assert (rates.usable_rate, rates.usable_rate_of_all, rates.false_success_share) == (None, None, None)
    assert (rates.usable, rates.unknown, rates.verdicts["late"]) == (0, 3, 1)
    assert rates.usable_rate_bounds == (0.0, 0.75)
    configured = rates_of(tmp_path, events, Config.model_validate({"deadline_ms": 8000}))
    assert (configured.usable_rate, configured.usable, configured.unknown) == (0.75, 3, 0)


def test_failures_do_not_hide_that_nobody_knows_which_answers_were_in_time(tmp_path: Path) -> None:
    # 4 of 6 are judged (they failed), and yet no answer tells whether it was in time.
    events = [*(answer(n, n + 1, deadline_ms=None) for n in range(2)), *(failure(500, n, n + 1) for n in range(10, 14))]
    rates = rates_of(tmp_path, events)
    assert (rates.judged_share, rates.usable_rate) == (4 / 6, None)


def test_one_answer_in_time_beside_some_nobody_can_place_is_usable(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [answer(), answer(2, 3), answer(4, 5, deadline_ms=None)])
    assert (rates.usable, rates.unknown, rates.usable_rate, rates.judged) == (2, 1, 1.0, 2)


def test_the_success_rate_is_over_outcomes_that_are_known(tmp_path: Path) -> None:
    # 3 answers, 1 failure, 2 lines that say nothing: 3 of 4, at least 3 of 6 and at most 5 of 6.
    known = [*(answer(n, n + 1) for n in range(3)), failure(500, 4, 5)]
    rates = rates_of(tmp_path, known + [failure(None, n, n + 1) for n in (6, 8)])
    assert (rates.successes, rates.outcome_unknown, rates.success_rate) == (3, 2, 0.75)
    assert rates.success_rate_bounds == (0.5, 5 / 6)
    assert (rates.requests_with_2xx, rates.request_success_rate) == (3, 0.75)
    less = rates_of(tmp_path, known + [failure(None, n, n + 1) for n in range(6, 16, 2)])
    assert (less.outcome_unknown, less.success_rate, less.usable_rate, less.judged_share) == (5, None, None, 4 / 9)
    assert rates_of(tmp_path, known).success_rate_bounds is None


def test_a_refusal_an_error_and_who_left_are_known_outcomes(tmp_path: Path) -> None:
    events = [
        answer(), failure(None, decision="deny"), failure(None, error="timeout"), failure(None, client_closed=True),
        failure(None, decision="allow"),
    ]  # fmt: skip
    rates = rates_of(tmp_path, events)
    assert (rates.attempts, rates.outcome_unknown, rates.success_rate) == (5, 1, 0.25)


@pytest.mark.parametrize("word", ["none", "None", "NULL", "ok", "Success", "false", "-", "", " none "])
def test_a_word_that_means_no_error_is_none(word: str, tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [answer(error=word), answer(2, 3, error="upstream reset")])
    assert (rates.usable, rates.verdicts["failed"]) == (1, 1)


def test_a_web_page_in_place_of_an_answer_is_counted(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [answer(), answer(2, 3, content_type="text/html;charset=UTF-8")])
    assert (rates.successes, rates.usable, rates.verdicts["empty"], rates.not_an_answer) == (2, 1, 1, 1)


def test_an_error_within_an_answer_is_told_from_no_answer(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [answer(), answer(2, 3, error="overloaded"), failure(500)])
    assert (rates.verdicts["failed"], rates.errors_in_band, rates.requests_with_2xx) == (2, 1, 1)


def test_without_any_answer_0_usable_is_a_fact(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [failure(500, deadline_ms=None), failure(429, deadline_ms=None)])
    assert (rates.usable_rate, rates.success_rate, rates.usable_rate_bounds) == (0.0, 0.0, (0.0, 0.0))


def test_without_valid_requests_there_is_no_rate(tmp_path: Path) -> None:
    rates = rates_of(tmp_path, [failure(400), failure(499)])
    assert (rates.valid, rates.usable_rate, rates.usable_rate_bounds, rates.usable_rate_interval95) == (0, None, None, None)
    probes = rates_of(tmp_path, [answer(traffic="probe")])
    assert (probes.requests, probes.usable_rate, probes.success_rate) == (0, None, 1.0)


def test_requests_with_an_answer_are_the_sum_of_what_became_of_them(tmp_path: Path) -> None:
    events = [event | {"request_id": name} for name, attempts, _ in VERDICTS for event in attempts]
    rates = rates_of(tmp_path, events)
    answered = rates.verdicts_with_2xx
    assert rates.requests_with_2xx == sum(answered.values())
    assert {name for name, count in answered.items() if count} == {
        "usable", "late", "truncated", "empty", "unknown", "abandoned",
    }  # fmt: skip
    assert all(answered[name] == rates.verdicts[name] for name in ("usable", "late", "truncated", "empty"))
    assert (rates.abandoned_with_2xx, answered["abandoned"]) == (3, 3)
    # Four answers without a deadline or a start, one left with nothing in it, one beside an attempt of no outcome.
    assert answered["unknown"] == 6
    assert rates.requests == sum(rates.verdicts.values()) == sum(len(expected) for _, _, expected in VERDICTS)


def test_tokens_are_what_was_billed_else_the_sum_and_waste_is_what_bought_nothing(tmp_path: Path) -> None:
    events = [
        answer(actual_tokens=100, prompt_tokens=90, traffic="user"),
        answer(2, 3, prompt_tokens=30, completion_tokens=20, traffic="user"),
        answer(4, 5, prompt_tokens=7, traffic="user"),
        answer(20, 29, actual_tokens=1000, traffic="user"),
        failure(500, 30, 31, actual_tokens=5, request_id="r", traffic="user"),
        answer(32, 33, actual_tokens=40, request_id="r", traffic="user"),
        answer(34, 35, actual_tokens=60, request_id="r", traffic="user"),
        answer(40, 41, actual_tokens=10000, traffic="probe"),
        failure(500, 50, 51, traffic="user"),
    ]  # fmt: skip
    tokens = rates_of(tmp_path, events).tokens
    assert tokens.all == 100 + 50 + 1000 + 5 + 40 + 60 + 10000
    assert tokens.coverage == 7 / 9
    assert tokens.wasted == 1000 + 5 + 60 + 10000
    assert tokens.wasted_coverage == 4 / 5  # late, failed, a second answer, a probe; the last failure does not say
    assert tokens.probe == 10000
    assert tokens.probe_coverage == 1
    assert tokens.coverage_by_traffic == {"user": 6 / 8, "probe": 1}
    assert tokens.by_traffic == {"user": 1255, "probe": 10000}


def test_a_deadline_by_tenant_or_model_goes_before_the_default(tmp_path: Path) -> None:
    config = Config.model_validate({"deadline_ms": {"default": 2000, "tenant": {"patient": 5000}, "model": {"slow": 9000}}})
    late: Event = {"start": 0, "end": 4, "deadline_ms": None}
    events = [answer(**late), answer(**late, tenant="patient"), answer(**late, model="slow"), answer(0, 4, deadline_ms=3000)]
    rates = rates_of(tmp_path, events, config)
    assert (rates.usable, rates.verdicts["late"]) == (2, 2)

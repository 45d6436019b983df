"""Small nights whose right answer is worked out by hand: what the program reports of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import T0, Done, call, jsonl, run, run_all, write

PROMPT = "You are the night grader, keep marks between one and ten."


def report_of(folder: Path, events: Sequence[dict[str, Any]]) -> Any:
    """Write a ledger and return the JSON report on it."""
    write(folder / "night.jsonl", events)
    done = run(folder, "analyze", "night.jsonl", "--format", "json")
    assert (done.status, done.err) == (0, "")
    return done.report


def findings(report: Any) -> dict[str, Any]:
    """Return the findings by rule; each rule found at most one thing here."""
    by_rule = {finding["rule"]: finding for finding in report["findings"]}
    assert len(by_rule) == len(report["findings"])
    return by_rule


def lines(finding: Any) -> list[int]:
    """Return the lines of evidence in order."""
    return sorted(evidence["line"] for evidence in finding["evidence"])


def test_three_admission_jobs_are_one_success_and_no_usable_rate(tmp_path: Path) -> None:
    job = {"queue_age_ms": 60, "deadline_slack_ms": 5940, "prompt_tokens_est": 21, "cpu_pct_observed": 9}
    report = report_of(
        tmp_path,
        [
            job | {"ts": T0 + 0.2, "fp": "0a4c1e", "decision": "allow", "reason": "stable_prefix"},
            job | {"ts": T0 + 0.5, "fp": "77be20", "decision": "reject", "reason": "cache_busting_clock"},
            job | {"ts": T0 + 0.9, "fp": "0a4c1e", "decision": "reject", "reason": "deadline_slack", "queue_age_ms": 5400},
        ],
    )
    assert report["ledger"]["files"][0]["dialect"] == "admission"
    rates = report["rates"]
    # An allow was answered 200, a reject 429; nobody can say what was in time.
    assert (rates["attempts"], rates["successes"], rates["success_rate"]) == (3, 1, pytest.approx(1 / 3))
    assert (rates["usable"], rates["unknown"], rates["verdicts"]["refused"]) == (0, 1, 2)
    assert rates["usable_rate"] is None
    assert rates["usable_rate_of_all"] is None
    assert rates["usable_rate_bounds"] == [0, pytest.approx(1 / 3)]
    assert rates["criteria"]["on_time"] == {"measured": False, "coverage": 0}
    assert not {"saturation", "stuck-worker", "cache-busting-prefix"} & {f["rule"] for f in report["findings"]}
    missing = {entry["rule"]: entry["missing"] for entry in report["not_evaluated"]}
    assert missing["late-but-200"] == ["latency_ms", "deadline_ms"]
    assert "traffic" in missing["probe-spend-share"]
    shed = {domain["domain"]: domain["attempts"] for domain in report["failure_domains"]}
    assert shed["shed_without_retry_after"] == 2
    assert sum(shed.values()) == 2


def quiet_node(second: float, **fields: Any) -> dict[str, Any]:
    """Return a call on an idle node with an empty queue and a long prompt."""
    usual = {"queue_age_ms": 15, "cpu_pct": 12, "prompt_tokens": 1500, "completion_tokens": 40}
    return call(second, **usual | fields)


def test_a_clock_in_the_prefix_is_found_and_a_stable_one_is_not(tmp_path: Path) -> None:
    noisy = [
        # Answers of 50 and 30 tokens by turns: were all nearly alike, twelve in a row would beat like a health check.
        quiet_node(5 * i, request_id=f"r{i}", prefix_fp="51ab", prefix_noisy=True, completion_tokens=30 + i % 2 * 20)
        for i in range(1, 13)
    ]
    report = report_of(tmp_path, noisy)
    found = findings(report)["cache-busting-prefix"]
    assert found["severity"] == "page"
    assert found["observed"]["prompt_tokens"] == 12 * 1500
    assert found["observed"]["completion_tokens"] == 12 * 40
    assert (found["observed"]["requests"], found["observed"]["noisy_share"]) == (12, 1)
    assert found["observed"]["mean_cpu_pct"] == pytest.approx(12)
    assert (found["count"], lines(found)) == (12, list(range(1, 13)))
    assert found["window"] == {"start": "2026-09-08T02:14:00Z", "end": "2026-09-08T02:16:00Z"}
    assert (report["rates"]["success_rate"], report["rates"]["usable_rate"]) == (1, 1)

    stable = report_of(tmp_path, [event | {"prefix_noisy": False} for event in noisy])
    assert stable["findings"] == []
    assert "cache-busting-prefix" in stable["quiet"]


def test_a_raw_prefix_is_judged_and_never_shown(tmp_path: Path) -> None:
    night = [
        quiet_node(5 * i, request_id=f"r{i}", prefix=f"{PROMPT} Now: 2026-09-08T02:14:{5 * i % 60:02d}Z") for i in range(1, 13)
    ]
    (tmp_path / "night.jsonl").write_bytes(jsonl(night) + f'{{"ts": {T0}, "prefix": "{PROMPT}\n'.encode())
    every = ["analyze", "night.jsonl", "--max-quarantined", "100%", "--verbose"]
    text, as_json = run_all(tmp_path, [every, [*every, "--format", "json"]])
    assert lines(findings(as_json.report)["cache-busting-prefix"]) == list(range(1, 13))
    assert as_json.report["ledger"]["unknown_keys"] == []
    for shown in (text.out, text.err, as_json.out, as_json.err):
        assert "night grader" not in shown
        assert "Now: " not in shown


def adapter(second: float, route: str, reason: str, tokens: int) -> dict[str, Any]:
    """Return a line of the adapter's ledger."""
    return {
        "ts": T0 + second, "route": route, "reason": reason, "ready_ms": 2 if route == "readyz" else 0, "queue_age_ms": 0,
        "queue_depth": 0, "deadline_slack_ms": 2000, "est_tokens": tokens, "actual_tokens": tokens,
    }


def test_a_night_of_probes_spends_11520_tokens_on_nobody(tmp_path: Path) -> None:
    ready = [adapter(10 * i + 1, "readyz", "ok", 0) for i in range(6)]
    probes = [adapter(10 * i + 1, "complete", "probe", 128) for i in range(90)]  # fifteen minutes, one every ten seconds
    report = report_of(tmp_path, [*ready, *probes])
    rates = report["rates"]
    assert (report["ledger"]["events"], rates["attempts"], rates["successes"], rates["success_rate"]) == (96, 90, 90, 1)
    assert (rates["requests"], rates["usable"], rates["usable_rate"], rates["usable_rate_bounds"]) == (0, 0, None, None)
    assert rates["tokens"] == {
        "all": 11520, "coverage": 1, "wasted": 11520, "wasted_coverage": 1, "probe": 11520, "probe_coverage": 1,
        "by_traffic": {"probe": 11520}, "coverage_by_traffic": {"probe": 1}, "completion_only": 0, "prompt_only": 0,
    }
    spend = findings(report)["probe-spend-share"]
    assert (spend["observed"]["probe_tokens"], spend["observed"]["probes"]) == (11520, 90)
    assert (spend["observed"]["hourly_token_cap"], spend["observed"]["share_of_cap"]) == (50000, pytest.approx(0.2304))
    assert (spend["severity"], spend["count"], len(spend["evidence"])) == ("page", 90, 20)
    assert lines(spend) == list(range(7, 27))
    nobody = findings(report)["tokens-without-users"]
    assert (nobody["observed"]["tokens"], nobody["observed"]["user_requests"]) == (11520, 0)
    cap = {"rule": "probe-spend-share", "parameter": "hourly_token_cap", "value": 50000, "origin": "default of the adapter lab"}
    assert cap in report["thresholds"]


def test_cheap_readiness_checks_are_no_attempts_and_no_finding(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [adapter(10 * i, "readyz", "ok", 0) for i in range(6)])
    text, as_json = run_all(tmp_path, [["analyze", "night.jsonl"], ["analyze", "night.jsonl", "--format", "json"]])
    report = as_json.report
    assert (report["ledger"]["events"], report["findings"]) == (6, [])
    rates = report["rates"]
    assert (rates["attempts"], rates["success_rate"], rates["usable_rate"], rates["amplification"]) == (0, None, None, None)
    assert "  Success rate           -   0 of 0 attempts answered 2xx (what a dashboard shows)\n" in text.out
    assert "  Usable rate            -   no caller requests\n" in text.out


def test_32_unbounded_callers_are_all_answered_and_one_in_time(tmp_path: Path) -> None:
    # All start at once with 700 ms of patience; the first takes 650 ms, the others 760, 780, ... 1,360 ms.
    took = [650, *range(760, 1380, 20)]
    night = [
        call(1 + ms / 1000, started_at=T0 + 1, request_id=f"c{i}", latency_ms=ms, deadline_ms=700, actual_tokens=128)
        for i, ms in enumerate(took)
    ]
    assert len(night) == 32
    write(tmp_path / "night.jsonl", night)
    text, as_json = run_all(tmp_path, [["analyze", "night.jsonl"], ["analyze", "night.jsonl", "--format", "json"]])
    report = as_json.report
    rates = report["rates"]
    assert (rates["attempts"], rates["successes"], rates["success_rate"]) == (32, 32, 1)
    assert (rates["requests"], rates["usable"], rates["usable_rate"], rates["usable_rate_of_all"]) == (32, 1, 0.03125, 0.03125)
    assert rates["usable_rate_bounds"] == [0.03125, 0.03125]
    assert rates["usable_rate_interval95"] == [pytest.approx(0.0055, abs=5e-5), pytest.approx(0.1574, abs=5e-5)]
    assert (rates["false_success_share"], rates["verdicts"]["late"]) == (0.96875, 31)
    assert (rates["tokens"]["all"], rates["tokens"]["wasted"], rates["tokens"]["probe"]) == (4096, 31 * 128, 0)
    found = findings(report)
    late = found["late-but-200"]["observed"]
    assert (late["late_2xx"], late["two_xx"], late["late_share"]) == (31, 32, 0.96875)
    assert late["p50_overrun_ms"] == pytest.approx(360)  # the 16th of 60, 80, ... 660 ms
    assert found["success-hides-outage"]["observed"]["usable_rate"] == 0.03125
    assert "  Success rate     100.0 %   32 of 32 attempts answered 2xx (what a dashboard shows)\n" in text.out
    assert "  Usable rate        3.1 %   1 of 32 judged requests [0.6 % to 15.7 %]\n" in text.out


def test_an_answer_at_the_deadline_is_in_time_and_one_past_it_is_late(tmp_path: Path) -> None:
    def asked(name: str, second: int, took_ms: int, **fields: Any) -> dict[str, Any]:
        usual = {"started_at": T0 + second, "request_id": name, "latency_ms": took_ms, "deadline_ms": 2500, "ts": None}
        return call(0, **usual | fields)

    report = report_of(
        tmp_path,
        [
            asked("before", 0, 2499),
            asked("at", 5, 2500),
            asked("past", 10, 2501),
            asked("no deadline", 15, 90000, deadline_ms=None),
            asked("retried", 20, 100, status=503, attempt=1, answer_chars=None),
            asked("retried", 22, 600, attempt=2),  # in time for itself, 2,600 ms after the first try
            asked("long past", 25, 9000),
        ],
    )
    rates = report["rates"]
    assert (rates["requests"], rates["usable"], rates["unknown"], rates["verdicts"]["late"]) == (6, 2, 1, 3)
    assert (rates["judged"], rates["usable_rate"]) == (5, pytest.approx(2 / 5))
    assert rates["usable_rate_bounds"] == [pytest.approx(2 / 6), pytest.approx(3 / 6)]
    assert rates["criteria"]["on_time"] == {"measured": True, "coverage": pytest.approx(5 / 6)}
    found = findings(report)["late-but-200"]
    assert (found["severity"], lines(found)) == ("ticket", [3, 6, 7])
    assert found["observed"]["p50_overrun_ms"] == pytest.approx(100)


def test_answers_that_are_billed_and_empty_are_found_by_line(tmp_path: Path) -> None:
    def answer(name: str, second: int, **fields: Any) -> dict[str, Any]:
        return call(second, request_id=name, **{"finish_reason": "stop", "completion_tokens": 300, "tool_calls": 0} | fields)

    report = report_of(
        tmp_path,
        [
            answer("text", 1, answer_chars=900),
            answer("thought only", 2, answer_chars=0, reasoning_tokens=300),
            answer("ran out", 3, answer_chars=0, completion_tokens=512, reasoning_tokens=512, finish_reason="length"),
            answer("tool", 4, answer_chars=0, completion_tokens=40, tool_calls=1, finish_reason="tool_calls"),
            answer("filtered", 5, answer_chars=0, completion_tokens=0, finish_reason="content_filter"),
            answer("nothing", 6, answer_chars=0, completion_tokens=88),
        ],
    )
    rates = report["rates"]
    assert (rates["success_rate"], rates["usable"], rates["usable_rate"]) == (1, 2, pytest.approx(2 / 6))
    assert (rates["verdicts"]["empty"], rates["length_limited"]) == (4, 1)
    found = findings(report)["empty-but-billed"]
    assert lines(found) == [2, 3, 6]
    assert (found["observed"]["empty_2xx"], found["observed"]["two_xx"]) == (3, 6)
    assert found["observed"]["billed_tokens"] == 300 + 512 + 88


def test_attempts_of_a_request_are_one_request_in_whatever_order_they_stand(tmp_path: Path) -> None:
    def attempt(name: str, nth: int, second: int, status: int) -> dict[str, Any]:
        return call(second, request_id=name, attempt=nth, status=status, latency_ms=50, deadline_ms=60000)

    report = report_of(
        tmp_path,
        [
            attempt("p", 3, 9, 200), attempt("r", 2, 7, 429), attempt("q", 1, 2, 200), attempt("p", 1, 1, 500),
            attempt("r", 1, 4, 429), attempt("p", 2, 5, 429), attempt("r", 3, 12, 429),
        ],
    )
    rates = report["rates"]
    assert (rates["attempts"], rates["successes"], rates["success_rate"]) == (7, 2, pytest.approx(2 / 7))
    assert (rates["requests"], rates["request_success_rate"]) == (3, pytest.approx(2 / 3))
    assert rates["amplification"] == pytest.approx(7 / 3)
    assert (rates["usable"], rates["usable_rate"], rates["verdicts"]["refused"]) == (2, pytest.approx(2 / 3), 1)


DAMAGED = (
    b'{"ts":1788833641,"request_id":"a","status":200}\n'
    b"Traceback (most recent call last):\n"
    b'{"ts":1788833642,"request_id":"b","status":500}\n'
    b"\n"
    b'{"ts":1788833643,"request_id":"c","status":200,"status":500}\n'
    b'{"ts":1788833644,"request_id":"d","status":200}{"ts":1788833644,"request_id":"e","status":200}\n'
    b'{"ts":"soon","request_id":"f","status":200}\n'
    b'["ts",1788833645]\n'
    b'{"ts":1788833646,"request_id":"g","status":200,"latency_ms":NaN}\n'
    b'{"request_id":"h","status":200}\n'
    b'{"ts":1788833647,"request_id":"\xff","status":200}\n'
    b'{"ts":1788833648,"request_id":"i","stat'
)


def test_each_damaged_line_is_named_with_its_reason_and_none_is_lost(tmp_path: Path) -> None:
    (tmp_path / "night.jsonl").write_bytes(DAMAGED)
    done = run(tmp_path, "analyze", "night.jsonl", "--format", "json", "--max-quarantined", "100%")
    assert (done.status, done.err) == (0, "")
    report = done.report
    assert {entry["line"]: entry["reason"] for entry in report["quarantine"]} == {
        2: "not valid JSON",
        5: "a repeated key with different values",
        6: "not valid JSON: trailing text after the object",
        7: "an unreadable time",
        8: "valid JSON, but not an object",
        10: "no time",
        11: "not valid UTF-8",
        12: "incomplete last line",
    }
    ledger = report["ledger"]
    assert (ledger["lines"], ledger["used"], ledger["quarantined"], ledger["blank"], ledger["not_a_request"]) == (12, 3, 8, 1, 0)
    assert report["invalid"] == [{"file": "night.jsonl", "line": 9, "field": "latency_ms", "reason": "not_finite"}]
    assert (report["rates"]["attempts"], report["rates"]["successes"]) == (3, 2)
    second = report["quarantine"][1]
    assert (second["offset"], second["length"]) == (48 + 35 + 48 + 1, 60)


def test_a_ledger_too_damaged_to_judge_is_reported_and_ends_in_three(tmp_path: Path) -> None:
    good = [{"ts": T0 + 1, "request_id": "a", "status": 200}, {"ts": T0 + 2, "request_id": "b", "status": 200}]
    (tmp_path / "damaged.jsonl").write_bytes(jsonl(good) + b"panic\n[]\n")
    (tmp_path / "growing.jsonl").write_bytes(jsonl(good) + b'{"ts": 178883')
    damaged, strict, growing = run_all(
        tmp_path,
        [
            ["analyze", "damaged.jsonl", "--format", "json"],
            ["analyze", "damaged.jsonl", "--format", "json", "--fail-on", "info"],
            ["analyze", "growing.jsonl", "--format", "json"],
        ],
    )
    assert damaged.status == 3
    assert damaged.err == (
        "quietburn: undecided: 2 of 4 lines were refused, more than --max-quarantined allows (5%). "
        "See the quarantine in the report for the reasons.\n"
    )
    assert (damaged.report["ledger"]["events"], damaged.report["ledger"]["quarantined"]) == (2, 2)
    assert strict.status == 3  # what can't be judged is not a finding
    # A file that is being written to ends in half a line; that alone is no damage.
    assert (growing.status, growing.err) == (0, "")
    assert [entry["code"] for entry in growing.report["quarantine"]] == ["incomplete_last_line"]


def same_report(done: Sequence[Done]) -> bool:
    """Whether all calls printed the same."""
    return len({d.out for d in done}) == 1


def test_the_same_ledger_gives_the_same_report_each_time(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [quiet_node(i, request_id=f"r{i % 7}", client=f"c{i % 3}", attempt=i) for i in range(60)])
    assert same_report(run_all(tmp_path, [["analyze", "night.jsonl", "--format", "json"]] * 2))

"""Two logs of the same traffic in one run: a proxy in front, a gateway behind."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.ledgers import T0, jsonl

from quietburn.analysis.run import Request, analyze
from quietburn.report.model import Report


def calls(seed: int, number: int = 60, *, gap_s: float = 4.0) -> list[tuple[float, float, int]]:
    """Return start, latency and status of calls, in order of their starts."""
    dice = random.Random(seed)  # noqa: S311
    times = sorted(T0 + number * gap_s * dice.random() for _ in range(number))
    return [(start, round(0.3 + 3 * dice.random(), 3), 503 if dice.random() < 0.1 else 200) for start in times]


def line(start: float, latency: float, status: int, **others: Any) -> dict[str, Any]:
    path = "/v1/chat/completions"
    return {"ts": round(start + latency, 3), "latency_ms": round(latency * 1000), "status": status, "path": path} | others


def seen_behind(start: float, latency: float, status: int, **others: Any) -> dict[str, Any]:
    return line(start + 0.01, latency - 0.02, status, **others)


def analyzed(folder: Path, **logs: Iterable[dict[str, Any]]) -> Report:
    for name, lines in logs.items():
        (folder / f"{name}.jsonl").write_bytes(jsonl(lines))
    return analyze([str(folder)])


def told(report: Report) -> list[str]:
    return [notice for notice in report.notices if "the same traffic" in notice]


def test_two_logs_that_share_ids_are_not_added_up_and_the_enclosing_one_is_judged(tmp_path: Path) -> None:
    # The front sees one call fail that the gateway behind it answered.
    front = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(1))]
    (failed, *_) = (one for one in front if one["status"] == 200)
    failed["status"] = 502
    behind = [seen_behind(*call, request_id=f"r{n}") for n, call in enumerate(calls(1))]
    report = analyzed(tmp_path, behind=behind, front=front)
    assert (report.ledger.used, report.rates.attempts, report.rates.requests) == (120, 60, 60)
    assert report.rates.successes == sum(one["status"] == 200 for one in front)
    (notice,) = told(report)
    assert "front.jsonl encloses the other's calls and is judged" in notice
    (found,) = report.ledger.same_traffic
    assert (found.judged.rpartition("/")[2], found.left_out, found.shared) == ("front.jsonl", "whole", 60)
    assert (found.other_status, found.other_end) == (1, 0)
    assert [text for text in report.notices if "contradict each other on the status of 1 calls and on the end of 0" in text]


def test_two_logs_that_contradict_each_other_on_some_calls_are_a_ticket(tmp_path: Path) -> None:
    front = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(1))]
    answered = [place for place, one in enumerate(front) if one["status"] == 200]
    for place in answered[:3]:
        front[place]["status"] = 504
    front[answered[3]]["status"] = 499  # whose caller left says nothing of the gateway
    behind = [seen_behind(*call, request_id=f"r{n}") for n, call in enumerate(calls(1))]
    report = analyzed(tmp_path, behind=behind, front=front)
    (found,) = (finding for finding in report.findings if finding.rule == "vantage-points-disagree")
    assert (found.severity, found.count, found.observed) == ("ticket", 3, {"told_status": 504, "other_status": 200})
    assert sorted(place.line - 1 for place in found.evidence) == answered[:3]


def test_two_logs_without_common_ids_are_told_by_path_status_start_and_end(tmp_path: Path) -> None:
    front = [line(*call, request_id=f"a{n}") for n, call in enumerate(calls(2))]
    behind = [seen_behind(*call, request_id=f"b{n}", path="/chat/completions") for n, call in enumerate(calls(2))]
    report = analyzed(tmp_path, a=behind, b=front)
    assert report.rates.attempts == 60
    assert "b.jsonl encloses" in told(report)[0]


def test_logs_of_two_replicas_are_added_up(tmp_path: Path) -> None:
    a, b = ([line(*call, request_id=f"{seed}-{n}") for n, call in enumerate(calls(seed))] for seed in (3, 4))
    report = analyzed(tmp_path, a=a, b=b)
    assert (report.rates.attempts, told(report)) == (120, [])


def test_a_few_calls_in_a_crowd_are_not_taken_for_the_crowds(tmp_path: Path) -> None:
    # Each of the twenty calls finds one of its status that encloses it, among twenty a second.
    crowd = [line(*call, request_id=f"c{n}") for n, call in enumerate(calls(5, 2400, gap_s=0.05))]
    few = [line(start, latency, 200, request_id=f"f{n}") for n, (start, latency, _) in enumerate(calls(6, 20, gap_s=6))]
    assert analyzed(tmp_path, crowd=crowd, few=few).rates.attempts == 2420


def test_retries_at_another_replica_are_further_attempts(tmp_path: Path) -> None:
    # Whatever fails at the first is tried at the second, under its id, once the first try has ended.
    first = [line(start, latency, 503, request_id=f"r{n}") for n, (start, latency, _) in enumerate(calls(7))]
    second = [line(start + latency + 0.02, 0.2, 200, request_id=f"r{n}") for n, (start, latency, _) in enumerate(calls(7))]
    report = analyzed(tmp_path, first=first, second=second)
    assert (report.rates.attempts, report.rates.requests, told(report)) == (120, 60, [])


def test_logs_that_share_some_calls_are_added_up_with_a_notice(tmp_path: Path) -> None:
    a = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(8))]
    further = enumerate(calls(9)[30:])
    b = [seen_behind(*call, request_id=f"r{n}") for n, call in enumerate(calls(8)[:30])]
    b += [line(*call, request_id=f"b{n}") for n, call in further]
    report = analyzed(tmp_path, a=a, b=b)
    assert report.rates.attempts == 120
    assert "share calls (30 of 60 calls pair by request id)" in told(report)[0]


def test_of_a_log_that_holds_more_only_the_shared_calls_are_left_out(tmp_path: Path) -> None:
    everything = [seen_behind(*call, request_id=f"r{n}") for n, call in enumerate(calls(10, 200))]
    front = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(10, 200)) if n % 4 == 0]
    report = analyzed(tmp_path, everything=everything, front=front)
    assert (report.rates.attempts, report.rates.requests) == (200, 200)


def test_rotated_files_are_one_log(tmp_path: Path) -> None:
    lines = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(11))]
    behind = [seen_behind(*call, request_id=f"r{n}") for n, call in enumerate(calls(11))]
    (tmp_path / "front.jsonl.1").write_bytes(jsonl(lines[:40]))
    (tmp_path / "behind.log").write_bytes(jsonl(behind))
    report = analyzed(tmp_path, front=lines[40:])
    assert (report.rates.attempts, len(told(report))) == (60, 1)


def test_joined_logs_fill_what_the_judged_one_lacks(tmp_path: Path) -> None:
    front = [line(*call, request_id=f"r{n}") for n, call in enumerate(calls(12))]
    behind = [seen_behind(*call, request_id=f"r{n}", prompt_tokens=100, completion_tokens=n, model="m")
              for n, call in enumerate(calls(12))]  # fmt: skip
    assert analyzed(tmp_path, front=front, behind=behind).rates.tokens.all is None
    joined = analyze([str(tmp_path)], Request(join=True))
    # 60 calls of 100 tokens, and 0 + 1 + ... + 59 of the answers.
    assert (joined.rates.attempts, joined.rates.tokens.all) == (60, 60 * 100 + 59 * 60 // 2)
    assert joined.rates.successes == sum(one["status"] == 200 for one in front)

"""Two ledgers side by side: what is a difference, what is noise, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import jsonl
from tests.unit.sides import compared, event, named

from quietburn.analysis.run import Request, analyzing
from quietburn.common.config import Config
from quietburn.errors import UsageError
from quietburn.intervals.estimates import Estimate
from quietburn.judge.compare import take_side
from quietburn.judge.differences import difference_words
from quietburn.report.verdict import Standing


def calls(usable: int, late: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Return usable calls, then late ones."""
    return [event(n, **fields) for n in range(usable)] + [
        event(n, latency_ms=5000, **fields) for n in range(usable, usable + late)
    ]


def test_a_difference_within_its_noise_is_no_measurement() -> None:
    found = difference_words(Estimate(1.26, -4.12, 6.64), "ms")
    assert found == "not a measurement: +1.26 ms against a noise of ±5.38 ms"
    assert difference_words(Estimate(0.15625, -0.0039, 0.3238), "points") == (
        "not a measurement: +15.6 points against a noise of ±16.0 points"
    )


def test_a_difference_beyond_its_noise_stands_with_its_interval() -> None:
    assert difference_words(Estimate(-1.0, -1.0, -0.541), "points") == "-100.0 points [-100.0 to -54.1 points]"
    assert difference_words(Estimate(1234.5, 1000.0, 1500.04), "ms") == "+1,234.5 ms [+1,000.0 to +1,500.0 ms]"


def test_six_of_32_against_one_of_32_is_refused_as_noise(tmp_path: Path) -> None:
    found = named(compared(tmp_path, calls(1, 31), calls(6, 26)), "usable_rate")
    assert (found.before, found.after, found.difference) == (0.03125, 0.1875, 0.15625)
    assert found.verdict is Standing.NOISE
    assert found.interval95 == pytest.approx((-0.0039, 0.3238), abs=5e-5)
    assert found.requests_to_settle is not None
    assert found.requests_to_settle > 32
    assert found.smallest_shown is not None
    assert found.smallest_shown > 0.15625


def test_eight_of_eight_against_none_of_eight_is_a_difference(tmp_path: Path) -> None:
    report = compared(tmp_path, calls(0, 8), calls(8))
    found = named(report, "usable_rate")
    assert (found.verdict, found.difference, found.requests_to_settle) == (Standing.DIFFERENCE, 1.0, None)
    assert named(report, "late_share").difference == -1.0
    assert named(report, "success_rate").verdict is Standing.NOISE  # both 100 %: the success rate sees nothing


def test_quantiles_are_compared_from_as_many_values_as_they_need(tmp_path: Path) -> None:
    report = compared(tmp_path, calls(36), calls(36))
    assert named(report, "latency_p90_ms").verdict is Standing.NOISE
    p99 = named(report, "latency_p99_ms")
    assert (p99.verdict, p99.says) == (
        Standing.REFUSED, "not compared: needs at least 368 on each side; there are 36 and 36",
    )


def test_latency_runs_from_the_first_attempt_to_the_end_of_the_deciding_one(tmp_path: Path) -> None:
    # Each request: refused after 100 ms, answered 900 ms after its start.
    def retried(n: int) -> list[dict[str, Any]]:
        start = event(n)["ts"] - 0.9
        return [
            event(n, ts=start + 0.1, latency_ms=100, status=503, finish_reason=None, answer_chars=None, attempt=1),
            event(n, latency_ms=300, attempt=2),
        ]

    report = compared(tmp_path, [line for n in range(8) for line in retried(n)], calls(8))
    p50 = named(report, "latency_p50_ms")
    assert [p50.before, p50.after] == pytest.approx([900, 400])
    assert (p50.before_count, p50.after_count) == (8, 8)


def test_tokens_of_a_usable_answer_carry_what_bought_none(tmp_path: Path) -> None:
    # Before: 4 usable and 4 late of 100 tokens each: 200 a usable answer. After: 8 usable, and probes of 80 in all.
    before = calls(4, 4, prompt_tokens=60, completion_tokens=40)
    after = calls(8, prompt_tokens=60, completion_tokens=40)
    after.append(event(50, traffic="probe", request_id=None, prompt_tokens=70, completion_tokens=10))
    report = compared(tmp_path, before, after)
    per_usable = named(report, "tokens_per_usable")
    assert (per_usable.before, per_usable.after) == (200.0, 110.0)
    assert (named(report, "tokens_per_request").before, named(report, "tokens_per_request").after) == (100.0, 100.0)


def test_tokens_that_only_one_ledger_tells_are_not_compared(tmp_path: Path) -> None:
    found = named(compared(tmp_path, calls(8, actual_tokens=100), calls(8)), "tokens_per_request")
    assert (found.verdict, found.says) == (
        Standing.REFUSED, "not compared: 100% and 0% of the 2xx attempts report their tokens",
    )


def test_changed_models_are_named(tmp_path: Path) -> None:
    report = compared(tmp_path, [*calls(4, model="old"), event(9, model="both")], calls(4, model="both"))
    assert (report.models.only_before, report.models.only_after) == (["old"], [])


def test_ledgers_that_do_not_measure_the_same_are_compared_on_what_both_measure(tmp_path: Path) -> None:
    # Two of ten are cut. After, nobody logs how an answer ended: the cut ones are not held against either.
    cut = [event(n, finish_reason=None) for n in (20, 21)]
    before = calls(8) + cut
    after = [{k: v for k, v in line.items() if k != "finish_reason"} for line in before]
    report = compared(tmp_path, before, after)
    found = named(report, "usable_rate")
    assert report.before.rates.usable_rate == 0.8
    assert (found.before, found.after) == (1.0, 1.0)
    assert (report.criteria, report.criteria_left_out) == (["on_time", "non_empty"], ["complete"])
    assert any("so not compared: complete" in notice for notice in report.notices)


def test_a_cut_answer_that_was_late_too_is_late_where_only_time_is_asked(tmp_path: Path) -> None:
    before = [*calls(8), event(20, finish_reason=None, latency_ms=9000)]
    after = [{k: v for k, v in line.items() if k != "finish_reason"} for line in before]
    found = named(compared(tmp_path, before, after), "late_share")
    assert [found.before, found.after] == pytest.approx([1 / 9, 1 / 9])


def test_usable_rates_are_not_compared_where_one_ledger_cannot_say_what_was_in_time(tmp_path: Path) -> None:
    report = compared(tmp_path, calls(8), calls(8, deadline_ms=None))
    assert {named(report, name).verdict for name in ("usable_rate", "false_success_share", "late_share")} == {Standing.REFUSED}
    assert named(report, "success_rate").verdict is Standing.NOISE


def test_ledgers_that_measure_nothing_in_common_are_refused(tmp_path: Path) -> None:
    timed = calls(4, finish_reason=None, answer_chars=None, stream=None)
    told = calls(4, deadline_ms=None)
    report = compared(tmp_path, timed, told)
    assert (report.criteria, sorted(report.criteria_left_out)) == ([], ["complete", "non_empty", "on_time"])
    assert named(report, "usable_rate").verdict is Standing.REFUSED


def test_a_fall_that_what_cannot_be_told_may_undo_is_not_called_noise(tmp_path: Path) -> None:
    # Before: 100 usable. After: 40 usable, 20 late, 40 whose outcome no line tells: 66.7 % of those judged, but of all
    # between 40 % and 80 %; then the fall is at least 20 points. With 60 usable before and 40 untold it may be a rise.
    untold = [event(n, status=None) for n in range(200, 240)]
    sure = named(compared(tmp_path, calls(100), calls(40, 20) + untold), "usable_rate")
    assert sure.verdict is Standing.DIFFERENCE
    found = named(compared(tmp_path, calls(60) + untold, calls(40, 20) + untold), "usable_rate")
    assert [found.before, found.after] == pytest.approx([1.0, 2 / 3])
    assert (found.before_count, found.after_count) == (60, 60)
    assert found.verdict is Standing.UNTOLD
    assert found.says == (
        "undecided: -33.3 points over judged requests, but -60.0 to +20.0 points including those that can't be judged"
    )


def test_shares_of_which_less_than_half_is_judged_are_not_compared(tmp_path: Path) -> None:
    untold = [event(n, status=None) for n in range(200, 209)]
    found = named(compared(tmp_path, calls(8), calls(8) + untold), "usable_rate")
    assert (found.verdict, found.says) == (Standing.REFUSED, "not compared: more than half of one side can't be judged")


@pytest.mark.parametrize(
    ("carried", "configured", "words"),
    [
        (3, False, "2,000 ms, from the ledger"),
        (0, True, "2,000 ms (quietburn.toml)"),
        (1, True, "2,000 ms, from the ledger; if a line has none, 2,000 ms (quietburn.toml)"),
        (0, False, "none known: log or configure deadline_ms"),
    ],
)
def test_a_deadline_is_said_to_come_from_the_ledger_only_where_a_line_carries_one(
    tmp_path: Path, carried: int, configured: bool, words: str  # noqa: FBT001
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([event(n) if n < carried else event(n, deadline_ms=None) for n in range(3)]))
    config = Config.model_validate({"deadline_ms": 2000, "origin": "quietburn.toml"}) if configured else Config()
    with analyzing([str(path)], Request(config=config, rules=())) as found:
        assert take_side(found.report, found.engine, found.settings).deadline == words


def test_pairs_are_the_requests_whose_id_stands_in_both(tmp_path: Path) -> None:
    # 20 ids in both; 6 of them late before, usable after: paired, that is a difference.
    before = [*calls(14, 6), event(90), event(91)]
    after = [*calls(20), event(95)]
    report = compared(tmp_path, before, after, paired=True)
    found = named(report, "usable_rate")
    assert (report.paired, report.pairs, found.before_count) == (True, 20, 20)
    assert [found.before, found.after, found.difference] == pytest.approx([0.7, 1.0, 0.3])
    # Bonett and Price by hand: p = 7/22, q = 1/22; p - q = 0.2727, half = z sqrt((8/22 - 0.0744) / 22) = 0.2247.
    assert found.interval95 == pytest.approx((0.0480, 0.4974), abs=5e-4)
    assert "20 requests are in both ledgers, 2 and 1 in only one" in report.notices[0]


def test_paired_medians_are_of_the_pairs_differences(tmp_path: Path) -> None:
    # Latencies range over a second, each 50 ms longer after: the pairs all say +50.
    before = [event(n, latency_ms=400 + 50 * n) for n in range(20)]
    after = [event(n, latency_ms=450 + 50 * n) for n in range(20)]
    paired = named(compared(tmp_path, before, after, paired=True), "latency_p50_ms")
    assert paired.difference == pytest.approx(50.0)
    assert paired.verdict is Standing.DIFFERENCE
    alone = named(compared(tmp_path, before, after), "latency_p50_ms")
    assert alone.difference == pytest.approx(50.0)
    assert alone.verdict is Standing.NOISE


def test_pairs_of_ledgers_without_a_common_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the ledgers share no request_id"):
        compared(tmp_path, [event(1)], [event(2)], paired=True)

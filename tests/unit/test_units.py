"""Durations under names that tell no unit: settled by what else the file says, or unknown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, WAYS, jsonl, read, reading_way, report_of

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config, MapEntry, load_config
from quietburn.dialects.mapping import load_mapping
from quietburn.errors import ConfigError

SECONDS = (7.878, 0.412, 3.5, 9.25, 1.125, 2.75)
LINE = {"status": 200, "deadline_ms": 5000, "finish_reason": "stop", "answer_chars": 40}


def lines(told: Callable[[float], dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"ts": T0 + 7 * place + 0.25, **LINE, **told(span)} for place, span in enumerate(SECONDS)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "told",
    [
        # end - start
        lambda span: {"ts": T0 + span, "started_at": T0, "latency": span},
        lambda span: {"ts": T0 + span, "started_at": T0, "latency": round(span * 1000)},
        # a sibling in a known unit
        lambda span: {"latency_ms": span * 1000, "duration": span},
        lambda span: {"duration": span, "elapsed_s": span},
        # its own suffix
        lambda span: {"latency": f"{span}s"},
        lambda span: {"elapsed": f"{round(span * 1000)}ms"},
        lambda span: {"latency_ms": f"{span}s"},
    ],
)  # fmt: skip
def test_a_unit_that_the_file_tells_is_taken(told: Callable[[float], dict[str, Any]], way: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl(lines(told)))
    with reading_way(way):
        reading = read(path)
    got = [reading.events[line]["latency_ms"] for line in range(1, 7)]
    assert got == pytest.approx([7878, 412, 3500, 9250, 1125, 2750])


def test_one_line_with_both_ends_settles_the_others_of_its_file(tmp_path: Path) -> None:
    told = [{"ts": T0 + span, "started_at": T0, "status": 200, "latency": span} for span in SECONDS[:3]]
    alone = {"ts": T0 + 20, "status": 200, "latency": 0.5}
    start_only = {"started_at": T0 + 30, "status": 200, "latency": 0.5}
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([*told, alone, start_only]))
    reading = read(path)
    assert [reading.events[line]["latency_ms"] for line in (4, 5)] == [500, 500]
    assert reading.events[5]["ts_us"] == (T0 + 30) * 1_000_000 + 500_000


@pytest.mark.parametrize(
    "told",
    [
        lambda span: {"latency": span},
        lambda span: {"latency": span * 1000},
        # Whole seconds of short spans tell nothing, and neither do siblings of another span.
        lambda span: {"ts": T0 + 1, "started_at": T0, "latency": span / 10, "deadline_ms": None, "deadline": 5},
        lambda span: {"latency": span, "queue_age_ms": span * 10},
    ],
)  # fmt: skip
def test_a_unit_that_nothing_tells_is_unknown_and_named(told: Callable[[float], dict[str, Any]], tmp_path: Path) -> None:
    report = report_of(tmp_path, lines(told))
    assert (report.rates.attempts, report.rates.usable_rate, report.rates.usable_rate_bounds) == (6, None, (0.0, 1.0))


def test_the_notice_prints_the_line_that_settles_it(tmp_path: Path) -> None:
    ledger = lines(lambda span: {"latency": span})
    (notice,) = [text for text in report_of(tmp_path, ledger).notices if "has no unit in its name" in text]
    assert '[map] latency_ms = { from = "latency", unit = "s" }' in notice
    configuration = tmp_path / "quietburn.toml"
    configuration.write_text('[map]\nlatency_ms = { from = "latency", unit = "s" }\n')
    report = report_of(tmp_path, ledger, config=load_config(configuration))
    # 7.878 s and 9.25 s are later than 5 s, the other four are not.
    assert (report.rates.usable, report.rates.requests) == (4, 6)
    assert not [text for text in report.notices if "has no unit in its name" in text]


def test_a_unit_named_later_settles_what_a_store_holds(tmp_path: Path) -> None:
    path, store = tmp_path / "ledger.jsonl", tmp_path / "nights.duckdb"
    path.write_bytes(jsonl(lines(lambda span: {"latency": span})))
    assert analyze([str(path)], Request(store=store)).rates.usable == 0
    unit = Config(map={"latency_ms": MapEntry.model_validate({"from": "latency", "unit": "s"})})
    assert analyze([], Request(store=store, config=unit)).rates.usable == 4


def test_each_file_has_its_own_unit(tmp_path: Path) -> None:
    for hour, factor in enumerate((1, 1000)):
        ledger = lines(lambda span, factor=factor: {"latency": span * factor, "elapsed_s": span})  # type: ignore[misc]
        (tmp_path / f"{hour}.jsonl").write_bytes(jsonl(line | {"ts": line["ts"] + 3600 * hour} for line in ledger))
    assert analyze([str(tmp_path)]).rates.usable == 8


def test_a_mapping_without_a_unit_is_settled_too(tmp_path: Path) -> None:
    mapping = tmp_path / "mine.toml"
    for unit, usable in (("", 0), (', unit = "s"', 4)):
        mapping.write_text(
            '[dialect]\nname = "mine"\n[recognise]\nall = ["rtt"]\n[columns]\nts = { from = "ts" }\n'
            'route = { value = "complete" }\n'
            'status = { from = "status" }\ndeadline_ms = { from = "deadline_ms" }\nfinish_reason = { from = "finish_reason" }\n'
            f'answer_chars = {{ from = "answer_chars" }}\nlatency_ms = {{ from = "rtt"{unit} }}\n'
        )
        report = report_of(tmp_path, lines(lambda span: {"rtt": span}), request=Request(mapping=load_mapping(mapping)))
        assert report.rates.usable == usable


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("161.45s", 161_450), ("29m59s", 1_799_000), ("350ms", 350), ("1h2m", 3_720_000), ("1m0.5s", 60_500), ("250us", 0.25),
        ("1h2m3.5s", 3_723_500), ("2 s", 2000),
    ],
)  # fmt: skip
def test_a_text_with_its_unit_is_a_duration(text: str, ms: float, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([{"ts": T0, "status": 200, "latency": text, "deadline_ms": text}]))
    reading = read(path)
    assert (reading.events[1]["latency_ms"], reading.events[1]["deadline_ms"]) == pytest.approx((ms, ms))
    assert reading.invalid == []


@pytest.mark.parametrize("text", ["soon", "-5s", "5 apples", "s", "1s2h", "fivems"])
def test_a_text_that_is_no_duration_costs_the_field_and_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([{"ts": T0, "status": 200, "latency": text}, {"ts": T0, "status": 200, "latency": True}]))
    reading = read(path)
    assert reading.invalid == [(1, "latency_ms", "not_a_number"), (2, "latency_ms", "not_a_number")]


def test_a_failed_attempt_of_no_time_has_no_usage_whatever_the_unit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl([{"ts": T0, "status": 500, "latency": 0, "prompt_tokens": 100}]))
    reading = read(path)
    assert "prompt_tokens" not in reading.events[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('latency = { from = "x" }', "map.latency: unknown column"),
        ('status = { from = "x", unit = "s" }', "map.status.unit: the column has no unit"),
    ],
)
def test_a_wrong_map_of_the_configuration_is_refused(text: str, said: str, tmp_path: Path) -> None:
    configuration = tmp_path / "quietburn.toml"
    configuration.write_text(f"[map]\n{text}\n")
    with pytest.raises(ConfigError, match=said):
        report_of(tmp_path, lines(lambda span: {"latency": span}), config=load_config(configuration))

"""Whatever stands in a ledger, a mapping, a configuration or a store: a report, or one clear line.

The mutations are the same in each run. `QUIETBURN_FUZZ=20` tries twenty times as many, with other seeds;
a seed that ever failed is kept in `seeds.toml` and tried each time.
"""

import json
import os
import random
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.properties.mutations import mutated_bytes, mutated_ledger, mutated_toml

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import load_config
from quietburn.dialects.mapping import load_mapping, shipped_mappings
from quietburn.errors import QuietburnError
from quietburn.report.model import Report

_ROOT = Path(__file__).parents[2]
_TIMES = int(os.environ.get("QUIETBURN_FUZZ", "1"))
_KEPT = tomllib.loads(Path(__file__).with_name("seeds.toml").read_text(encoding="utf-8"))
_CONFIGURATION = """
hourly_token_cap = 50000
max_retries = 1
inflight_cap = 8
tz = "Europe/Berlin"
length_is_complete = true

[deadline_ms]
default = 8000
route = { complete = 4000 }
model = { "big" = 9000.5 }

[gate]
min_usable = 0.95
require = ["on_time"]
undecided = "fail"
point = false

[rules.retry-herd]
spread_ms = 250
"""


def seeds(part: str, number: int) -> list[int]:
    """Return the seeds to try: those that once failed, then the first ones."""
    return sorted({*_KEPT.get(part, []), *range(number * _TIMES)})


@cache
def ledger_lines() -> dict[str, list[str]]:
    """Return a ledger's lines by dialect: the fixtures of the real ones, and the rules' for our own."""
    folders = sorted((_ROOT / "fixtures" / "dialects").iterdir())
    found = {folder.name: (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines() for folder in folders}
    ours = _ROOT / "fixtures" / "rules" / "late-but-200" / "fires.jsonl"
    return found | {"gateway": ours.read_text(encoding="utf-8").splitlines()[:60]}


def judged(path: Path, request: Request) -> Report | None:
    """Return a ledger's report, None where it was refused in one clear line."""
    try:
        report = analyze([str(path)], request)
    except QuietburnError as problem:
        assert "\n" not in str(problem)
        assert len(str(problem)) < 2000
        return None
    ledger, rates = report.ledger, report.rates
    assert ledger.lines == ledger.used + ledger.not_a_request + ledger.duplicates + ledger.quarantined + ledger.blank
    assert report.errored == []
    for rate in (rates.success_rate, rates.usable_rate, *(rates.usable_rate_bounds or ())):
        assert rate is None or 0 <= rate <= 1
    json.dumps(report.model_dump(mode="json"), allow_nan=False)
    return report


@pytest.mark.parametrize("dialect", sorted(ledger_lines()))
def test_a_mutated_ledger_gives_a_report_or_one_clear_line(dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    reports = 0
    for seed in seeds(dialect, 6):
        path.write_bytes(mutated_ledger(random.Random(seed), ledger_lines()[dialect]))
        reports += judged(path, Request(threads=1)) is not None
    assert reports > 0  # else nothing but refusals was tried


def test_a_mutated_mapping_is_refused_by_file_and_key_or_reads_a_ledger(tmp_path: Path) -> None:
    ledger, mapping = tmp_path / "ledger.jsonl", tmp_path / "mine.toml"
    shipped = sorted((_ROOT / "rules" / "dialects").glob("*.toml"))
    refused = 0
    for seed in seeds("mapping", 100):
        dice = random.Random(seed)
        source = dice.choice([path for path in shipped if path.stem in ledger_lines()])
        mapping.write_text(mutated_toml(dice, source.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            read = load_mapping(mapping)
        except QuietburnError as problem:
            refused += 1
            assert "mine.toml" in str(problem)
            assert "\n" not in str(problem)
            continue
        if seed % 10 == 0:  # reading costs far more than checking
            ledger.write_text("\n".join(ledger_lines()[source.stem]) + "\n", encoding="utf-8")
            judged(ledger, Request(mapping=read, dialect=read.dialect.name, threads=1, only=("late-but-200",)))
    assert refused > 0


def test_a_mutated_configuration_is_refused_by_file_or_taken(tmp_path: Path) -> None:
    path, ledger = tmp_path / "quietburn.toml", tmp_path / "ledger.jsonl"
    ledger.write_text("\n".join(ledger_lines()["gateway"]) + "\n", encoding="utf-8")
    taken = 0
    for seed in seeds("configuration", 100):
        path.write_text(mutated_toml(random.Random(seed), _CONFIGURATION), encoding="utf-8")
        try:
            config = load_config(path)
        except QuietburnError as problem:
            assert "quietburn.toml" in str(problem)
            assert "\n" not in str(problem)
            continue
        taken += 1
        if seed % 25 == 0:
            judged(ledger, Request(config=config, threads=1))
    assert taken > 0


def test_a_damaged_store_is_refused_in_one_line_or_read(tmp_path: Path) -> None:
    ledger, whole, damaged = tmp_path / "ledger.jsonl", tmp_path / "whole.duckdb", tmp_path / "damaged.duckdb"
    ledger.write_text("\n".join(ledger_lines()["gateway"]) + "\n", encoding="utf-8")
    analyze([str(ledger)], Request(store=whole, threads=1, only=("late-but-200",)))
    content = whole.read_bytes()
    for seed in seeds("store", 25):
        damaged.write_bytes(mutated_bytes(random.Random(seed), content))
        try:
            analyze([], Request(store=damaged, threads=1, only=("late-but-200",)))
        except QuietburnError as problem:
            assert "\n" not in str(problem)
        finally:
            Path(f"{damaged}.wal").unlink(missing_ok=True)


def test_the_shipped_mappings_stand_in_the_folder_that_is_mutated() -> None:
    names = {mapping.dialect.name for mapping in shipped_mappings()}
    assert set(ledger_lines()) <= names

"""Few events are kept in a table, of many there is a view: both hold the same, and so does the report."""

from pathlib import Path
from typing import Any

import pytest

from quietburn.analysis.run import Request, analyzing
from quietburn.engine import derive

LEDGER = Path(__file__).parents[2] / "fixtures" / "ledgers" / "short_night.jsonl"


def _events_and_report() -> tuple[dict[str, list[Any]], str]:
    with analyzing([str(LEDGER)], Request(threads=1)) as analysis:
        events = analysis.engine.select("SELECT * FROM events ORDER BY event_id").to_pydict()
        return events, analysis.report.model_dump_json()


def test_a_view_of_many_events_gives_the_columns_and_the_report_of_kept_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _events_and_report()
    monkeypatch.setattr(derive, "_FEW", 0)
    viewed = _events_and_report()

    assert len(kept[0]["event_id"]) > 100
    assert list(viewed[0]) == list(kept[0])
    assert viewed == kept

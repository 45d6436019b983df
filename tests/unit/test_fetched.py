"""A ledger behind an address is bounded as one on the disk; the same query reads both, and needs no network here."""

from pathlib import Path

import duckdb
import pytest

from quietburn.errors import InputError
from quietburn.records import inputs


def test_what_is_larger_than_memory_should_hold_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * 3000)
    monkeypatch.setattr(inputs, "MOST_FETCHED", 3000)
    with duckdb.connect() as connection:
        assert inputs.fetched(connection, str(tmp_path / "a.jsonl"), "a") == b"x" * 3000
        monkeypatch.setattr(inputs, "MOST_FETCHED", 2999)
        with pytest.raises(InputError, match=r"^a: is 0 MiB; at most 0 MiB are fetched\. Download the ledger"):
            inputs.fetched(connection, str(tmp_path / "a.jsonl"), "a")

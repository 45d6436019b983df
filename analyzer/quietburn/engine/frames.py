"""The frames that an analysis offers: its events, requests and minutes."""

from pathlib import Path

_SQL = Path(__file__).with_name("sql")

EVENTS = "SELECT * FROM events ORDER BY ts_us, file_id, line, item"
REQUESTS = (_SQL / "requests.sql").read_text(encoding="utf-8")
MINUTES = (_SQL / "minutes.sql").read_text(encoding="utf-8")

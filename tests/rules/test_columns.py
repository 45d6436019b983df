"""docs/columns.md says what every column of `events` means, and nothing that isn't there."""

import re
from pathlib import Path

from tests.cli.program import run
from tests.rules.helpers import ledger_path

from quietburn.analysis.run import analyzing
from quietburn.report.columnpage import columns_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "columns.md"
# A row: the name, for a column from the ledger its name in `events`, and the type.
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?:(?P<stored>same|`\w+`) \| )?(?P<type>[A-Z]+) \|", re.MULTILINE)


def test_the_page_of_columns_in_docs_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == columns_markdown(), "docs/columns.md: run `quietburn columns --out docs`"


def test_the_page_has_every_column_that_events_really_have_with_its_type() -> None:
    listed = {}
    for row in ROW.finditer(columns_markdown()):
        stored = (row["stored"] or "same").strip("`")
        listed[row["name"] if stored == "same" else stored] = row["type"]

    with analyzing([str(ledger_path("queue-over-budget", "fires"))]) as analysis:
        described = analysis.engine.select("DESCRIBE SELECT * FROM events").to_pylist()

    assert listed == {column["column_name"]: column["column_type"] for column in described}


def test_the_command_prints_the_page_and_writes_it(tmp_path: Path) -> None:
    printed, written = run(tmp_path, "columns"), run(tmp_path, "columns", "--out", "docs")

    assert (printed.status, written.status, written.out) == (0, 0, "")
    assert (tmp_path / "docs" / "columns.md").read_text(encoding="utf-8") == printed.out
    assert "| `request_deadline_us` | BIGINT | us |" in printed.out

"""The decision table and the rules' pages in docs/ are those of the rule files."""

from pathlib import Path

from tests.cli.program import run

from quietburn.report.rulebook import rulebook
from quietburn.ruleset.files import shipped_rules

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_and_a_page_for_each_rule_in_docs_are_current() -> None:
    pages = rulebook(shipped_rules())

    written = {path.relative_to(DOCS).as_posix() for path in (DOCS / "rules").glob("*.md")}
    assert written | {"decision-table.md"} == set(pages), "run `quietburn rules table --out docs`, remove pages of gone rules"
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name}: run `quietburn rules table --out docs`"


def test_the_command_prints_the_table_and_writes_the_pages(tmp_path: Path) -> None:
    printed, written = run(tmp_path, "rules", "table"), run(tmp_path, "rules", "table", "--out", "docs")

    assert (printed.status, written.status, written.out) == (0, 0, "")
    rows = [line for line in printed.out.splitlines() if line.startswith("| [")]
    assert len(rows) == len(shipped_rules())
    assert (tmp_path / "docs" / "decision-table.md").read_text(encoding="utf-8") == printed.out
    for rule in shipped_rules():
        page = (tmp_path / "docs" / "rules" / f"{rule.id}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {rule.id}\n")
        assert all(f"| `{name}` |" in page for name in rule.parameters)

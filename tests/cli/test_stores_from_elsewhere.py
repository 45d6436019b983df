"""A store that somebody else made or changed reads no file of ours, and is one line where it can't be used."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.cli.program import call, is_one_line, run, run_without_rights, write

SECRET = "what only this machine knows"  # noqa: S105 - a text to look for


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger and the store that it was loaded into."""
    folder = tmp_path_factory.mktemp("filled")
    write(folder / "a.jsonl", [call(second, request_id=f"r{second}") for second in range(40)])
    assert run(folder, "analyze", "a.jsonl", "--db", "s.db").status == 0
    return folder


@pytest.fixture
def store(tmp_path: Path, filled: Path) -> Path:
    """A store with one ledger, and a file that no report may show."""
    for name in ("a.jsonl", "s.db"):
        shutil.copy(filled / name, tmp_path / name)
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path / "s.db"


def view_of(table: str, column: str, secret: Path) -> list[str]:
    """Return statements that put a view in the place of a table, one of whose columns is a file's content."""
    return [
        f"ALTER TABLE {table} RENAME TO kept", f"CREATE VIEW {table} AS SELECT * REPLACE "
        f"((SELECT content FROM read_text('{secret}')) AS {column}) FROM kept",
    ]


DOCTORED = {
    "a view of the files": lambda secret: view_of("ledger_files", "label", secret),
    "a view of the paths": lambda secret: view_of("ledger_files", "path", secret),
    "a view of the events": lambda secret: view_of("ledger_events", "dialect", secret),
    "a view beside": lambda secret: [f"CREATE VIEW more AS SELECT * FROM read_text('{secret}')"],
    "a function that stands in for ours": lambda _: ["CREATE MACRO json_valid(x) AS true"],
    "a table function that hides the view": lambda secret: [
        *view_of("ledger_files", "label", secret),
        "CREATE MACRO duckdb_views() AS TABLE SELECT 'x' AS view_name, true AS internal",
    ],
    "a table of another kind": lambda _: ["CREATE TABLE notes (text VARCHAR)"],
    "a table less": lambda _: ["DROP TABLE invalid_fields"],
    "a column less": lambda _: ["ALTER TABLE ledger_files DROP COLUMN tail"],
    "a column of another type": lambda _: ["ALTER TABLE ledger_events ALTER line TYPE VARCHAR"],
    "a column of its own": lambda _: ["ALTER TABLE ledger_events ADD COLUMN note VARCHAR"],
    "a computed column": lambda _: ["ALTER TABLE ledger_files ALTER label SET DEFAULT 'x'"],
    "a reason of its own": lambda _: ["INSERT INTO quarantined_lines (file_id, code) VALUES (0, 'nonsense')"],
    "no mark": lambda _: ["DROP TABLE quietburn_store"],
    "a mark of two rows": lambda _: ["INSERT INTO quietburn_store VALUES (1)"],
    "a mark that is text": lambda _: ["ALTER TABLE quietburn_store ALTER version TYPE VARCHAR"],
    "counts that are no JSON": lambda _: ["UPDATE ledger_files SET counts = '{'"],
    "counts that lack one": lambda _: ["UPDATE ledger_files SET counts = '{}'"],
    "counts of another type": lambda _: ["""UPDATE ledger_files SET counts = replace(counts, '"events": 40', '"events": "x"')"""],
    "a file without a number": lambda _: ["UPDATE ledger_files SET file_id = NULL"],
    "a file of a huge number": lambda _: ["UPDATE ledger_files SET file_id = 2147483647"],
    "a mark of the end that is none": lambda _: ["UPDATE ledger_files SET tail = 'x'"],
}


@pytest.mark.parametrize("doctored", DOCTORED.values(), ids=DOCTORED)
def test_a_doctored_store_is_refused_in_one_line_and_reads_no_file(tmp_path: Path, store: Path, doctored: object) -> None:
    assert callable(doctored)
    with duckdb.connect(str(store)) as connection:
        for statement in doctored(tmp_path / "secret"):
            connection.execute(statement)
    for arguments in (["nights", "--db", "s.db"], ["analyze", "a.jsonl", "--db", "s.db"]):
        done = run(tmp_path, *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert is_one_line(done.err) and "--db" in done.err
        assert SECRET not in done.err and "internal error" not in done.err and "disk is full" not in done.err


def test_what_opens_a_store_can_reach_no_file_however_it_is_asked(tmp_path: Path, store: Path) -> None:
    from quietburn.engine.connection import connect

    (tmp_path / "secret.csv").write_text("a\n1\n")
    for database in (None, store):
        connection, _ = connect(database=database)
        try:
            for statement in (
                f"SELECT * FROM read_text('{tmp_path}/secret')", f"SELECT * FROM '{tmp_path}/secret.csv'",
                f"COPY (SELECT 1) TO '{tmp_path}/out.csv'", f"ATTACH '{tmp_path}/other.db'", "INSTALL httpfs",
                "SET enable_external_access = true",
            ):
                with pytest.raises(duckdb.Error):
                    connection.execute(statement)
        finally:
            connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "s.db", "secret", "secret.csv"]


# Names that are no file


@pytest.mark.parametrize("name", [":memory:", "md:foo", "sqlite:foo.db", "postgres:dbname=x", "mysql:x"])
def test_a_name_that_is_no_file_is_refused_and_leaves_none(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.jsonl", [call(1)])
    for arguments in (["analyze", "a.jsonl", "--db", name], ["nights", "--db", name]):
        done = run(tmp_path, *arguments)
        assert (done.status, done.out) == (2, "")
        assert is_one_line(done.err)
        assert f"--db {name}" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_name_that_is_not_utf8_is_refused_in_one_line(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [call(1)])
    name = os.fsdecode(b"s\xff.db")
    for arguments in (["analyze", "a.jsonl", "--db", name], ["nights", "--db", name]):
        done = run(tmp_path, *arguments)
        assert (done.status, done.out) == (2, "")
        assert is_one_line(done.err) and r"--db s\xff.db" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


# Read only


@pytest.fixture
def read_only(tmp_path: Path, store: Path) -> Iterator[Path]:
    """The store's folder, where nothing may be written."""
    (tmp_path / "secret").unlink()
    store.chmod(0o444)
    tmp_path.chmod(0o555)
    yield tmp_path
    tmp_path.chmod(0o755)


def test_a_store_is_read_without_the_right_to_write_it(read_only: Path) -> None:
    before = (read_only / "s.db").read_bytes()
    listed = run_without_rights(read_only, "nights", "--db", "s.db", "--format", "json")
    assert (listed.status, listed.err) == (0, "")
    assert [file["events"] for file in json.loads(listed.out)] == [40]
    report = run_without_rights(read_only, "analyze", "--db", "s.db", "--format", "json")
    assert (report.status, report.err) == (0, "")
    assert report.report["rates"]["requests"] == 40
    assert (read_only / "s.db").read_bytes() == before
    refused = run_without_rights(read_only, "analyze", "a.jsonl", "--db", "s.db")
    assert refused.status == 2 and is_one_line(refused.err)


def test_a_reader_changes_no_byte_of_a_store_and_lets_others_read(tmp_path: Path, store: Path) -> None:
    before = store.read_bytes()
    with duckdb.connect(str(store), read_only=True):
        for arguments in (["nights", "--db", "s.db"], ["analyze", "--db", "s.db"]):
            done = run(tmp_path, *arguments)
            assert (done.status, done.err) == (0, "")
    assert store.read_bytes() == before


def test_an_empty_file_holds_no_ledger_and_is_left_as_it_is(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    listed = run(tmp_path, "nights", "--db", "empty.db")
    assert (listed.status, listed.out, listed.err) == (0, "The store contains no ledger.\n", "")
    done = run(tmp_path, "analyze", "--db", "empty.db")
    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err) and "contains no ledger" in done.err
    assert empty.stat().st_size == 0

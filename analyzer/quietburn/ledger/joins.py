"""Lines that were joined to an earlier line share its outcome."""

from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from quietburn.ledger.counts import FileCounts
from quietburn.records.records import Join


@dataclass
class Joins:
    """Further lines of records of one file, waiting for what the first lines become."""

    rows: list[Join] = field(default_factory=list)

    def settle(self, connection: duckdb.DuckDBPyConnection, counts: FileCounts, events: str, quarantine: str) -> None:
        """Count each line as its record was: used, quarantined with the same reason, or not a request."""
        if not self.rows:
            return
        columns = [list(column) for column in zip(*self.rows, strict=True)]
        connection.register("joined_lines", pa.table([pa.array(column, pa.int64()) for column in columns], names=Join._fields))
        try:
            here = f"WHERE file_id = {counts.file_id}"
            ((quarantined,),) = connection.execute(
                f"INSERT INTO {quarantine} SELECT q.file_id, j.line, j.byte_offset, j.length, q.code, NULL, NULL "
                "FROM joined_lines j "
                f"JOIN (SELECT DISTINCT ON (line) * FROM {quarantine} {here} "
                f"AND line NOT IN (SELECT line FROM {events} {here})) q ON q.line = j.first_line"
            ).fetchall()
            ((used,),) = connection.execute(
                f"SELECT count(*) FROM joined_lines WHERE first_line IN (SELECT line FROM {events} {here})"
            ).fetchall()
        finally:
            connection.unregister("joined_lines")
        counts.quarantined += quarantined
        counts.joined += used
        counts.not_a_request += len(self.rows) - quarantined - used

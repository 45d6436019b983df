"""Two logs of the same traffic in one run: a proxy's in front, a gateway's behind.

They are not added up. The log whose calls enclose the other's is judged, the other is left out of
every rate. They are told by the ids that they share, or where they share none by path, status, and
start and end of their calls.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import duckdb

from quietburn.common.callkinds import CallKind
from quietburn.common.sql import literal
from quietburn.dialects.routes import shipped_routes
from quietburn.traffic.kinds import TOLD_LINES, tell_kinds
from quietburn.traffic.repeats import REPEATED_IDS

PAIRS = "vantage_pairs"  # temporary: outer_row, inner_row of calls that two logs tell
INNER = "vantage_inner"  # temporary: row_id of lines that another log's lines stand for

_NEARLY_ALL = 0.95
_WHOLE = 0.8  # of the inner log's calls: then its other lines are taken as the gateway's own
_WORTH_A_NOTICE = 0.05
_CLOCKS_US = 50_000
_POINTS_US = 1_000_000  # between lines of which neither says when its call began
_MOST_OF_AN_ID = 50  # lines: an id of more is no call's
_LEAST_CALLS = 5  # to be told by times
_MOST_CALLS = 2000  # of the log with fewer, looked at by times
_IDS = "request id"
_MOST_LOGS = 6  # to be compared by times, each with each
_SHIFT_US = 61_000_000  # with one log moved so far, what still pairs does so by chance
_BY_CHANCE = 0.5

# What one log may know of a call and the other not; status, error and times are each log's own.
_FILLED = (
    "traffic", "user_agent", "idempotency_key", "client", "backend", "model", "tenant", "backends_available", "queue_age_ms",
    "queue_depth", "inflight", "ttft_ms", "upstream_ms", "deadline_ms", "read_timeout_ms", "retry_after_s",
    "prompt_tokens", "completion_tokens",
    "reasoning_tokens", "cached_tokens", "actual_tokens", "answer_chars", "tool_calls", "stream", "finish_reason",
    "terminal_seen", "stream_complete", "prefix_fp", "prefix_noisy",
)  # fmt: skip
Log = str  # a file's name without its rotation, and the dialect


@dataclass(frozen=True)
class SameTraffic:
    """Two logs that share calls: `shared` of the `calls` of the one with fewer; `same` that they are not added up."""

    outer: Log
    inner: Log
    shared: int
    calls: int
    by: str
    same: bool
    whole: bool = True  # every line of the inner log is left out, not only those of shared calls
    other_end: int = 0  # calls that share an id and of which neither encloses the other
    other_status: int = 0  # pairs by id of which one was answered 2xx and the other not


def find_same_traffic(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, logs: Mapping[tuple[int, str], Log]
) -> list[SameTraffic]:
    """Note the lines of logs that another log of the run stands for; return which logs share calls.

    `lines` is a subquery over lines with durations in known units; `logs` the log of each file and
    dialect. Needs `find_repeated_ids`.
    """
    if len(set(logs.values())) < 2 or "ts_us" not in columns:
        return []
    _make_calls(connection, columns, lines, logs)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {PAIRS} (outer_row BIGINT, inner_row BIGINT)")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {INNER} (row_id BIGINT)")
    sizes = dict(connection.execute("SELECT log, count(*) FROM vantage_calls GROUP BY log").fetchall())
    found = {(one.outer, one.inner): one for one in _by_ids(connection, sizes)} if "request_id" in columns else {}
    known = {frozenset(pair) for pair, one in found.items() if one.same}
    for one in _by_times(connection, sizes, known):
        found = {pair: other for pair, other in found.items() if set(pair) != {one.outer, one.inner}}
        found[one.outer, one.inner] = one
    return [_left_out(connection, one, sizes, lines, logs) if one.same else one for one in found.values()]


def _make_calls(
    connection: duckdb.DuckDBPyConnection, columns: frozenset[str], lines: str, logs: Mapping[tuple[int, str], Log]
) -> None:
    """Make `vantage_calls`: the attempts of callers with their log, start and end."""

    def given(name: str, otherwise: str) -> str:
        return name if name in columns else otherwise

    log = " ".join(f"WHEN {_is_of(*of)} THEN {literal(name)}" for of, name in logs.items())
    span = f"CAST(round({given('latency_ms', 'NULL')} * 1000) AS BIGINT)"
    start = f"COALESCE({given('started_us', 'NULL')}, ts_us - {span})"
    # In one of two logs the time to the first token is often that to the first byte, which shows nothing.
    tell_kinds(connection, columns - {"ttft_ms"}, shipped_routes(), (), lines)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE vantage_calls AS SELECT *, COALESCE(begun, ended) AS began FROM ("
        f"SELECT row_id, CASE {log} END AS log, {given('request_id', 'CAST(NULL AS VARCHAR)')} AS id, "
        f"{given('path', 'CAST(NULL AS VARCHAR)')} AS path, {given('status', 'CAST(NULL AS DOUBLE)')} AS status, "
        f"{start} AS begun, ts_us AS ended FROM {TOLD_LINES} "
        f"WHERE kind = {literal(CallKind.GENERATE)} AND traffic IS DISTINCT FROM 'probe' AND ts_us IS NOT NULL)"
    )


def _is_of(file_id: int, dialect: str) -> str:
    return f"(file_id = {file_id} AND dialect = {literal(dialect)})"


def _encloses(outer: str, inner: str) -> str:
    """Return the predicate: one call's span encloses another's, give or take two clocks; two retries do not overlap."""
    overlap = f"least({outer}.ended, {inner}.ended) - greatest({outer}.began, {inner}.began)"
    return (
        f"({outer}.began <= {inner}.began + {_CLOCKS_US} AND {inner}.ended <= {outer}.ended + {_CLOCKS_US} "
        f"AND ({overlap} >= 0.5 * ({inner}.ended - {inner}.began) OR ({outer}.begun IS NULL AND {inner}.begun IS NULL "
        f"AND abs({outer}.ended - {inner}.ended) <= {_POINTS_US})))"
    )


def _by_ids(connection: duckdb.DuckDBPyConnection, sizes: Mapping[Log, int]) -> Iterator[SameTraffic]:
    """Yield the logs that share ids, from what share on it is worth a notice."""
    ids = dict(connection.execute("SELECT log, count(DISTINCT id) FROM vantage_calls GROUP BY log").fetchall())
    rows = connection.execute(
        f"WITH repeated AS (SELECT * FROM vantage_calls WHERE id IS NOT NULL AND row_id IN (SELECT row_id FROM {REPEATED_IDS}) "
        f"QUALIFY count(*) OVER (PARTITION BY id) <= {_MOST_OF_AN_ID}), "
        f"joined AS (SELECT a.log AS a, b.log AS b, a.id, {_encloses('a', 'b')} AS a_is_outer, "
        f"{_encloses('b', 'a')} AS b_is_outer, a.ended - a.began AS a_us, b.ended - b.began AS b_us "
        f"FROM repeated a JOIN repeated b ON a.id = b.id AND a.log < b.log) "
        f"SELECT a, b, count(DISTINCT id), count(DISTINCT id) FILTER (WHERE a_is_outer OR b_is_outer), "
        f"count(*) FILTER (WHERE a_is_outer), count(*) FILTER (WHERE b_is_outer), sum(a_us), sum(b_us) "
        f"FROM joined GROUP BY a, b ORDER BY a, b"
    ).fetchall()
    for a, b, shared, nested, a_outer, b_outer, a_us, b_us in rows:
        least = min(ids[a], ids[b])
        outer, inner = (a, b) if (a_outer, a_us, sizes[a]) >= (b_outer, b_us, sizes[b]) else (b, a)
        same = shared >= _NEARLY_ALL * least and nested >= _NEARLY_ALL * shared
        if same or nested >= _WORTH_A_NOTICE * least:
            yield SameTraffic(outer, inner, shared, least, _IDS, same, other_end=shared - nested)


def _by_times(
    connection: duckdb.DuckDBPyConnection, sizes: Mapping[Log, int], known: set[frozenset[Log]]
) -> Iterator[SameTraffic]:
    """Yield the logs whose calls pair by path, status, start and end, but for those that are known by their ids."""
    if len(sizes) > _MOST_LOGS:
        return
    for pair in combinations(sorted(sizes), 2):
        fewer, more = sorted(pair, key=lambda log: sizes[log])
        calls = min(sizes[fewer], _MOST_CALLS)
        if frozenset(pair) in known or calls < _LEAST_CALLS:
            continue
        found = _pairs(connection, fewer, more)
        if len(found) < _NEARLY_ALL * calls or len(_pairs(connection, fewer, more, _SHIFT_US)) > _BY_CHANCE * calls:
            continue
        more_is_outer = sum(encloses for _, encloses in found) >= sum(encloses for encloses, _ in found)
        outer, inner = (more, fewer) if more_is_outer else (fewer, more)
        # Of a log that holds much else, times alone can't tell which lines to leave out.
        same = sizes[outer] >= _WHOLE * sizes[inner]
        yield SameTraffic(outer, inner, len(found), calls, "path, status, start and end", same)


def _pairs(connection: duckdb.DuckDBPyConnection, a: Log, b: Log, shift_us: int = 0) -> list[tuple[bool, bool]]:
    """Return the pairs, one to one, of the first calls of a log and calls of another: whether a's encloses b's, and b's a's.

    The nearest two that nothing else took are one. `shift_us` moves the first log's calls.
    """
    rows = connection.execute(
        f"WITH a AS (SELECT * REPLACE (began + {shift_us} AS began, ended + {shift_us} AS ended, begun + {shift_us} AS begun) "
        f"FROM vantage_calls WHERE log = {literal(a)} ORDER BY began, row_id LIMIT {_MOST_CALLS}), "
        f"b AS (SELECT * FROM vantage_calls WHERE log = {literal(b)} AND ended >= (SELECT min(began) FROM a) - {_POINTS_US} "
        f"AND began <= (SELECT max(ended) FROM a) + {_POINTS_US}) "
        f"SELECT a.row_id, b.row_id, {_encloses('a', 'b')}, {_encloses('b', 'a')} FROM a JOIN b "
        f"ON a.began <= b.ended + {_POINTS_US} AND b.began <= a.ended + {_POINTS_US} "
        f"WHERE a.status IS NOT DISTINCT FROM b.status AND ({_encloses('a', 'b')} OR {_encloses('b', 'a')}) "
        "AND COALESCE(suffix(a.path, b.path) OR suffix(b.path, a.path), TRUE) "
        "ORDER BY abs(a.began - b.began) + abs(a.ended - b.ended), a.row_id, b.row_id"
    ).fetchall()
    taken: tuple[set[int], set[int]] = (set(), set())
    found = []
    for a_row, b_row, a_is_outer, b_is_outer in rows:
        if a_row not in taken[0] and b_row not in taken[1]:
            taken[0].add(a_row)
            taken[1].add(b_row)
            found.append((bool(a_is_outer), bool(b_is_outer)))
    return found


def _left_out(
    connection: duckdb.DuckDBPyConnection, one: SameTraffic, sizes: Mapping[Log, int], lines: str,
    logs: Mapping[tuple[int, str], Log],
) -> SameTraffic:
    """Note the inner log's lines that the outer log's stand for, and which pair by their ids."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE found_pairs AS SELECT o.row_id AS outer_row, i.row_id AS inner_row, i.ended "
        "FROM vantage_calls o JOIN vantage_calls i ON o.id = i.id "
        f"WHERE o.log = {literal(one.outer)} AND i.log = {literal(one.inner)} AND {_encloses('o', 'i')} "
        "QUALIFY row_number() OVER (PARTITION BY i.row_id ORDER BY abs(o.began - i.began) + abs(o.ended - i.ended)) = 1"
    )
    ((paired,),) = connection.execute("SELECT count(*) FROM found_pairs").fetchall()
    # What decides a call that the inner log tells in several attempts is the last of them.
    connection.execute(
        f"INSERT INTO {PAIRS} SELECT outer_row, inner_row FROM found_pairs "
        "QUALIFY row_number() OVER (PARTITION BY outer_row ORDER BY ended DESC, inner_row) = 1"
    )
    whole = one.by != _IDS or paired >= _WHOLE * sizes[one.inner]
    mine = " OR ".join(_is_of(*of) for of, log in logs.items() if log == one.inner)
    inner = f"SELECT row_id FROM {lines} WHERE {mine}" if whole else "SELECT inner_row FROM found_pairs"
    connection.execute(f"INSERT INTO {INNER} {inner}")
    return replace(one, whole=whole, other_status=_other_statuses(connection))


def _other_statuses(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how many of the pairs found last say of one call that it was answered 2xx and that it was not."""
    ((count,),) = connection.execute(
        f"SELECT count(*) FROM {PAIRS} p JOIN vantage_calls o ON o.row_id = p.outer_row "
        "JOIN vantage_calls i ON i.row_id = p.inner_row WHERE p.inner_row IN (SELECT inner_row FROM found_pairs) "
        "AND (o.status BETWEEN 200 AND 299) <> (i.status BETWEEN 200 AND 299)"
    ).fetchall()
    return int(count)


def filled(columns: frozenset[str], judged: str, lines: str) -> str:
    """Return a subquery over judged lines in which what a line lacks comes from the other log's line of its request id.

    `lines` are those of both logs. Needs `find_same_traffic`.
    """
    taken = ", ".join(f"COALESCE(l.{name}, i.{name}) AS {name}" for name in _FILLED if name in columns)
    if not taken:
        return judged
    inner = f"(SELECT * FROM {lines} WHERE row_id IN (SELECT inner_row FROM {PAIRS}))"
    return (
        f"(SELECT l.* REPLACE ({taken}) FROM {judged} l LEFT JOIN {PAIRS} p ON p.outer_row = l.row_id "
        f"LEFT JOIN {inner} i ON i.row_id = p.inner_row)"
    )

"""Requests of several attempts: their order, their start and deadline, and who decides them.

All of it is told from a narrow table of the attempts whose id comes again, by windows over whole numbers: `call`
stands for the id, `place` for the order of lines.
"""

import duckdb

from quietburn.engine.attempts import microseconds, timing
from quietburn.engine.clocks import EVIDENCE, Clocks
from quietburn.engine.verdict_columns import DECIDING_FIRST, attempt_verdict, rank_of
from quietburn.traffic.repeats import LOST_IDS

CANDIDATES = "candidates"  # temporary: attempts that may be of a request that has several
SEVERAL = "several"  # temporary: what these take over from their request
# What an attempt takes over from its request where that has several.
OF_REQUEST = (
    "request_key", "nth", "of_request", "request_started_us", "request_start_known", "request_deadline_us", "on_time",
    "time_left_us", "gave_up", "is_late", "clock_error_us", "clock_evidence_us",
)

_HOUR_US = 3_600_000_000
_TOLD = (
    "row_id, request_key, file_id, line, item, attempt, started_us, ts_us, start_known, end_known, own_deadline_ms, deadline_ms, "
    "latency_ms, retry_after_s, writer, backend, status, in_request, is_2xx, complete, non_empty, decision, reason, caller_left, "
    "outcome_known, answer_chars, tool_calls, completion_tokens, stream, ttft_ms, unreadable"
)
# Nobody knows whether an end of another writer's clock came in time where the clocks' difference is known no better.
_SURELY_TIMED = "request_start_known AND (nth = 1 OR clock_error_us = 0 OR abs(request_deadline_us - ts_us) > clock_error_us)"


def find_candidates(connection: duckdb.DuckDBPyConnection, attempts: str) -> None:
    """Keep what is to be known of the attempts whose id comes again; `call` numbers the ids."""
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE {CANDIDATES} AS
        WITH told AS (SELECT {_TOLD} FROM ({attempts}) WHERE in_request),
        calls AS (SELECT request_key, min(row_id) AS call FROM told GROUP BY request_key)
        SELECT told.*, calls.call FROM told JOIN calls ON told.request_key = calls.request_key
    """)


def chain_attempts(connection: duckdb.DuckDBPyConnection, clocks: Clocks) -> None:
    """Make `several`: the attempts of requests that have several, with their request's facts, the verdict, and who gives it.

    Attempts of one id are one request while each starts within an hour of the end of those before.
    Their numbers order them where each has its own: times may be of several clocks. A request's
    start and deadline are given in the time of each attempt's own writer. Where a line of the id was
    refused for its time, nobody knows when the first attempt began.
    """
    request = "PARTITION BY call, session"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE {SEVERAL} AS
        WITH placed AS (
            SELECT row_id, call, attempt, started_us, start_known, own_deadline_ms, deadline_ms, is_2xx,
                {clocks.ahead} AS ahead_us, {clocks.writer} AS wrote,
                row_number() OVER turn AS place,
                max(ts_us) OVER (turn ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before
            FROM {CANDIDATES}
            WINDOW turn AS (PARTITION BY call ORDER BY started_us, attempt, ts_us, status, file_id, line, item)
        ),
        split AS (
            SELECT *, sum(CASE WHEN started_us > ended_before + {_HOUR_US} THEN 1 ELSE 0 END)
                OVER (PARTITION BY call ORDER BY place ROWS UNBOUNDED PRECEDING) AS session FROM placed
        ),
        alike AS (
            SELECT call, session, attempt, count(*) AS attempts, max(is_2xx) AS has_2xx,
                min(COALESCE(wrote, '')) AS one, max(COALESCE(wrote, '')) AS other
            FROM split GROUP BY call, session, attempt
        ),
        requests AS (
            SELECT call, session, CAST(sum(attempts) AS BIGINT) AS of_request, max(has_2xx) AS request_has_2xx,
                max(attempts) = 1 AND count(*) = count(attempt) AS is_numbered,
                {clocks.error('min(one) = max(other)')} AS clock_error_us
            FROM alike GROUP BY call, session
        ),
        numbered AS (
            SELECT s.row_id, s.call, s.session, s.started_us, s.ahead_us, r.of_request, r.request_has_2xx, r.clock_error_us,
                row_number() OVER in_turn AS nth, first_value(s.started_us - s.ahead_us) OVER in_turn AS first_started_us,
                first_value(s.start_known) OVER in_turn AS request_start_known,
                COALESCE(first_value(CASE WHEN s.own_deadline_ms IS NOT NULL THEN s.deadline_ms END IGNORE NULLS) OVER whole,
                    first_value(s.deadline_ms IGNORE NULLS) OVER whole) AS request_deadline_ms
            FROM split s JOIN requests r ON s.call = r.call AND s.session = r.session
            WINDOW in_turn AS (
                PARTITION BY s.call, s.session
                ORDER BY CASE WHEN r.is_numbered THEN s.attempt END, s.started_us - s.ahead_us, s.place
            ),
            whole AS (in_turn ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
        ),
        evident AS (SELECT row_id, max(by_us) AS clock_evidence_us FROM {EVIDENCE} GROUP BY row_id),
        asked AS (
            SELECT c.* EXCLUDE (request_key), n.session, n.nth, n.of_request, n.request_has_2xx, n.clock_error_us,
                c.request_key || '#' || CAST(n.session AS VARCHAR) AS request_key,
                COALESCE(n.request_start_known, FALSE)
                    AND c.request_key NOT IN (SELECT id FROM {LOST_IDS}) AS request_start_known,
                COALESCE(n.first_started_us + n.ahead_us, n.started_us) AS request_started_us,
                COALESCE(n.first_started_us + n.ahead_us, n.started_us)
                    + {microseconds('n.request_deadline_ms')} AS request_deadline_us,
                e.clock_evidence_us
            FROM {CANDIDATES} c JOIN numbered n ON c.row_id = n.row_id LEFT JOIN evident e ON c.row_id = e.row_id
        ),
        timed AS (SELECT *, {timing(_SURELY_TIMED, 'request_deadline_us', 'of_request = 1')} FROM asked),
        judged AS (SELECT *, {attempt_verdict()} AS attempt_verdict FROM timed),
        ranked AS (SELECT *, {rank_of('attempt_verdict')} AS rank FROM judged)
        SELECT row_id, {', '.join(OF_REQUEST)}, attempt_verdict, first_value(attempt_verdict) OVER deciding AS verdict,
            row_number() OVER deciding = 1 AS decides, request_has_2xx
        FROM ranked WINDOW deciding AS ({request} ORDER BY {DECIDING_FIRST})
    """)
    connection.execute(f"DROP TABLE {CANDIDATES}")  # of no use any more, and as long as the ledger where all was retried

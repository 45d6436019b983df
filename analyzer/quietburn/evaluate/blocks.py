"""What intervals and comparisons need besides the report: rows by request, and counts by five minutes.

Python gets arrays in bulk; every count and join is the engine's.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quietburn.engine.base import Engine
from quietburn.engine.settings import Settings, request_within
from quietburn.engine.verdict_columns import DECIDING_FIRST, answered_verdict, rank_of
from quietburn.evaluate.rates import NOT_VALID, VERDICTS
from quietburn.intervals.clusters import Blocks
from quietburn.intervals.estimates import Counts, Floats, Share

BLOCK_US = 300_000_000  # five minutes
_EARLY_US = 20_000  # clocks differ: a retry is early from so much on
_OWN_GATE = "decision IS NOT DISTINCT FROM 'reject'"


@dataclass(frozen=True)
class RequestCounts:
    """Requests by verdict, one array of counts a verdict, over five-minute blocks of their start.

    `at` numbers the blocks in time. `timed` is false where some request has no start; then nothing is told by block.
    """

    verdicts: dict[str, Counts]
    at: Counts
    timed: bool

    def total(self, *names: str) -> int:
        """Return how many requests have one of the verdicts; of all without any name."""
        return int(sum(self.verdicts[name].sum() for name in names or VERDICTS))

    @property
    def valid(self) -> int:
        """Return how many requests deserved an answer."""
        return self.total() - self.total(*NOT_VALID)

    def share(self, *names: str, of_all: bool = False) -> Share:
        """Return the share of verdicts among valid requests, or among all; whoever is unknown may belong to it."""
        unknown = 0 if of_all else self.total("unknown")
        return Share(self.total(*names), self.total() if of_all else self.valid, unknown)

    def blocks(self, *names: str) -> Blocks | None:
        """Return the share of verdicts among valid requests by block; None without times."""
        if not self.timed:
            return None
        valid = sum((self.verdicts[name] for name in VERDICTS if name not in NOT_VALID), np.int64(0))
        part = sum((self.verdicts[name] for name in names), np.int64(0))
        kept = np.asarray(valid) > 0
        return Blocks(np.asarray(part)[kept], self.verdicts["unknown"][kept], np.asarray(valid)[kept], self.at[kept])


@dataclass(frozen=True)
class AttemptCounts:
    """Attempts at the generate route, those answered 2xx, and those of unknown outcome, over five-minute blocks of their end."""

    attempts: Counts
    successes: Counts
    unknown: Counts
    at: Counts
    timed: bool

    @property
    def share(self) -> Share:
        """Return the share of attempts that were answered 2xx."""
        return Share(int(self.successes.sum()), int(self.attempts.sum()), int(self.unknown.sum()))

    @property
    def blocks(self) -> Blocks | None:
        """Return the same by block; None without times."""
        return Blocks(self.successes, self.unknown, self.attempts, self.at) if self.timed else None


@dataclass(frozen=True)
class RequestRows:
    """One entry a request, all arrays of one length; what is unknown is NaN.

    `verdict` indexes VERDICTS; `latency_ms` is known for answered requests only, from the start
    of the first attempt to the end of the deciding one. `besides_tokens` were spent by no
    request (probes); `ids` are there when asked for, None for an id that several requests share.
    """

    verdict: Counts
    latency_ms: Floats
    tokens: Floats
    besides_tokens: float
    tokens_coverage: float | None
    ids: pa.Array | None = None

    def is_verdict(self, *names: str) -> Floats:
        """Return 1.0 where the request has one of the verdicts, else 0.0."""
        return np.isin(self.verdict, [VERDICTS.index(name) for name in names]).astype(np.float64)


@dataclass(frozen=True)
class AcceptanceFacts:
    """What the acceptance rule asks of a run (seed 003): waits, 429s of the upstream, early retries.

    `waits` counts waits whose request has a deadline, `wait_share_p99` is the p99 of wait /
    deadline, None without waits; `hinted` refusals said when to come back, `refusals` is all of
    them that somebody retried. `retries_told` is false where refusals have no id to tell a retry by.
    """

    waits: int
    wait_p99_ms: float | None
    wait_share_p99: float | None
    minutes: float
    sent: int
    upstream_429: int
    refusals: int
    hinted: int
    early_retries: int
    retries_told: bool


@dataclass(frozen=True)
class DeadlineFacts:
    """How many requests have a deadline, and the least and the most of it in ms; `carried` lines say one themselves."""

    carried: int
    known: int
    requests: int
    least_ms: float | None
    most_ms: float | None


@dataclass(frozen=True)
class Patience:
    """Deadlines beside latencies: what it takes to see that a deadline can't be missed.

    `p99_ms` is the 99th percentile of the latency of so many `attempts`, rounded up to a whole
    millisecond. Of the requests with a known deadline, `far` have one over ten times that, and
    `sdk_default` have the 600 s that SDKs wait where nobody set anything; `least_ms` is the least.
    """

    attempts: int
    p99_ms: int | None
    known: int
    far: int
    sdk_default: int
    least_ms: float | None


def request_counts(engine: Engine, settings: Settings, criteria: frozenset[str] | None = None) -> RequestCounts:
    """Return requests by verdict and block; with `criteria`, as if only those were asked."""
    sums = ", ".join(f"sum(CASE WHEN verdict = '{name}' THEN 1 ELSE 0 END) AS {name}" for name in VERDICTS)
    rows = engine.select(
        f"SELECT request_started_us // {BLOCK_US} AS block, {sums} FROM ({_requests(settings, criteria)}) "
        "GROUP BY block ORDER BY block"
    )
    verdicts = {name: _counts(rows, name) for name in VERDICTS}
    timed = rows.column("block").null_count == 0
    return RequestCounts(verdicts, _places(rows, timed=timed), timed)


def attempt_counts(engine: Engine) -> AttemptCounts:
    """Return attempts and 2xx attempts at the generate route by block."""
    rows = engine.select(
        f"SELECT ts_us // {BLOCK_US} AS block, count(*) AS attempts, "
        "sum(CASE WHEN status BETWEEN 200 AND 299 THEN 1 ELSE 0 END) AS successes, "
        "sum(CASE WHEN outcome_known THEN 0 ELSE 1 END) AS unknown "
        "FROM events WHERE is_attempt GROUP BY block ORDER BY block"
    )
    timed = rows.column("block").null_count == 0
    return AttemptCounts(
        attempts=_counts(rows, "attempts"), successes=_counts(rows, "successes"), unknown=_counts(rows, "unknown"),
        at=_places(rows, timed=timed), timed=timed,
    )


def request_rows(
    engine: Engine, settings: Settings, criteria: frozenset[str] | None = None, *, with_ids: bool = False
) -> RequestRows:
    """Return one row a request; with `criteria`, verdicts as if only those were asked."""
    places = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(VERDICTS))
    once = "CASE WHEN count(*) OVER (PARTITION BY request_id) = 1 THEN request_id END AS id"
    rows = engine.select(f"""
        SELECT CASE verdict {places} END AS place,
            CASE WHEN is_2xx AND request_start_known AND end_known THEN (ts_us - request_started_us) / 1000.0
                 WHEN is_2xx AND ts_us IS NULL AND of_request = 1 THEN latency_ms END AS latency_ms,
            CASE WHEN of_request = 1 THEN tokens ELSE all_tokens END AS all_tokens{", " + once if with_ids else ""}
        FROM ({_requests(settings, criteria)}) LEFT JOIN (
            SELECT request_key AS key_of_all, sum(tokens) AS all_tokens
            FROM all_events WHERE in_request AND of_request > 1 GROUP BY request_key
        ) ON of_request > 1 AND request_key = key_of_all
        ORDER BY row_id""")
    spent = engine.select(
        "SELECT COALESCE(sum(CASE WHEN NOT in_request THEN tokens END), 0) AS besides, "
        "sum(CASE WHEN is_2xx THEN 1 ELSE 0 END) AS answered, "
        "sum(CASE WHEN is_2xx AND tokens IS NOT NULL THEN 1 ELSE 0 END) AS told FROM events WHERE is_attempt"
    ).to_pylist()[0]
    return RequestRows(
        verdict=_counts(rows, "place"),
        latency_ms=_floats(rows, "latency_ms"),
        tokens=_floats(rows, "all_tokens"),
        besides_tokens=float(spent["besides"]),
        tokens_coverage=int(spent["told"]) / int(spent["answered"]) if spent["answered"] else None,
        ids=rows.column("id").combine_chunks() if with_ids else None,
    )


def models(engine: Engine) -> frozenset[str]:
    """Return the models that attempts at the generate route asked for."""
    rows = engine.select("SELECT DISTINCT model FROM events WHERE is_attempt AND model IS NOT NULL")
    return frozenset(rows.column("model").to_pylist())


def deadline_facts(engine: Engine, settings: Settings) -> DeadlineFacts:
    """Return how many requests have a deadline, and its range."""
    row = engine.select(
        "SELECT count(*) AS requests, count(request_deadline_us) AS known, "
        "min(request_deadline_us - request_started_us) / 1000.0 AS least, "
        "max(request_deadline_us - request_started_us) / 1000.0 AS most, "
        "count(CASE WHEN ts_us IS NULL THEN deadline_ms END) AS untimed, "
        "min(CASE WHEN ts_us IS NULL THEN deadline_ms END) AS untimed_least, "
        "max(CASE WHEN ts_us IS NULL THEN deadline_ms END) AS untimed_most "
        f"FROM all_events WHERE decides AND {request_within(settings)}"
    ).to_pylist()[0]
    carried = engine.select(
        f"SELECT count(own_deadline_ms) AS n FROM all_events WHERE in_request AND {request_within(settings)}"
    ).to_pylist()[0]["n"]
    given = [n for n in (row["least"], row["untimed_least"], row["most"], row["untimed_most"]) if n is not None]
    return DeadlineFacts(
        int(carried), int(row["known"]) + int(row["untimed"]), int(row["requests"]),
        float(min(given)) if given else None, float(max(given)) if given else None,
    )


FAR_TIMES = 10
SDK_DEFAULT_MS = 600_000
# Whole milliseconds are few, whatever the number of attempts; sorting them all is not needed.
_P99 = """
    SELECT max(total) AS attempts, min(CASE WHEN so_far >= 0.99 * total THEN ms END) AS p99 FROM (
        SELECT ms, sum(n) OVER (ORDER BY ms ROWS UNBOUNDED PRECEDING) AS so_far, sum(n) OVER () AS total FROM (
            SELECT CAST(ceil(latency_ms) AS BIGINT) AS ms, count(*) AS n FROM events
            WHERE in_request AND latency_ms IS NOT NULL GROUP BY ms))"""


def patience(engine: Engine, settings: Settings) -> Patience:
    """Return the deadlines of the requests beside the latency of their attempts."""
    latency = engine.select(_P99).to_pylist()[0]
    p99 = None if latency["p99"] is None else int(latency["p99"])
    far = "FALSE" if p99 is None else f"ms > {FAR_TIMES * p99}"
    row = engine.select(f"""
        SELECT count(ms) AS known, count(CASE WHEN {far} THEN 1 END) AS far, min(ms) AS least,
            count(CASE WHEN ms = {SDK_DEFAULT_MS} THEN 1 END) AS sdk_default
        FROM (SELECT CASE WHEN ts_us IS NULL THEN deadline_ms ELSE (request_deadline_us - request_started_us) / 1000.0 END AS ms
              FROM all_events WHERE decides AND {request_within(settings)})""").to_pylist()[0]
    return Patience(
        int(latency["attempts"] or 0), p99, int(row["known"]), int(row["far"]), int(row["sdk_default"]), row["least"]
    )


def acceptance_facts(engine: Engine) -> AcceptanceFacts:
    """Return what the acceptance rule asks of the run."""
    waited = engine.select(
        "SELECT count(*) AS waits, quantile_cont(queue_age_ms, 0.99) AS p99, quantile_cont(share, 0.99) AS share_p99, "
        "(max(ts_us) - min(started_us)) / 60000000.0 AS minutes "
        "FROM (SELECT *, queue_age_ms * 1000.0 / (request_deadline_us - request_started_us) AS share "
        "FROM events WHERE in_request AND queue_age_ms IS NOT NULL AND request_deadline_us > request_started_us)"
    ).to_pylist()[0]
    upstream = engine.select(
        f"SELECT count(*) AS sent, COALESCE(sum(CASE WHEN status = 429 THEN 1 ELSE 0 END), 0) AS refused FROM events "
        f"WHERE is_attempt AND sent IS DISTINCT FROM FALSE AND NOT ({_OWN_GATE})"
    ).to_pylist()[0]
    shed = engine.select("SELECT count(*) AS n FROM events WHERE in_request AND status IN (429, 503)").to_pylist()[0]["n"]
    retried = engine.select(_RETRIED).to_pylist()[0]
    return AcceptanceFacts(
        waits=int(waited["waits"]), wait_p99_ms=waited["p99"], wait_share_p99=waited["share_p99"],
        minutes=float(waited["minutes"] or 0.0), sent=int(upstream["sent"]), upstream_429=int(upstream["refused"]),
        refusals=int(retried["refusals"]), hinted=int(retried["hinted"]), early_retries=int(retried["early"]),
        retries_told=not shed or engine.carries("request_id") or engine.carries("idempotency_key"),
    )


# A refused attempt and the next one of its request; another backend owes the first one no patience.
_RETRIED = f"""
    SELECT count(*) AS refusals, count(retry_after_s) AS hinted,
        COALESCE(sum(CASE WHEN next_started_us < ts_us + retry_after_s * 1000000 - {_EARLY_US}
            AND (backend IS NULL OR next_backend IS NULL OR backend = next_backend) THEN 1 ELSE 0 END), 0) AS early
    FROM (
        SELECT status, retry_after_s, ts_us, backend,
            lead(started_us) OVER (PARTITION BY request_key ORDER BY nth) AS next_started_us,
            lead(backend) OVER (PARTITION BY request_key ORDER BY nth) AS next_backend
        FROM events WHERE in_request AND of_request > 1
    ) WHERE status IN (429, 503) AND next_started_us IS NOT NULL
"""


# Of a 2xx whose caller left early no criterion decides.
_GONE = "(caller_left AND NOT gave_up AND attempt_verdict IN ('abandoned', 'unknown'))"


def _requests(settings: Settings, criteria: frozenset[str] | None) -> str:
    """Return the SELECT of one row a request: its deciding attempt."""
    mine = request_within(settings)
    if criteria is None:
        return f"SELECT * FROM all_events WHERE decides AND {mine}"
    # As the verdicts were made, with fewer questions: a criterion left out is neither yes nor no.
    again = f"CASE WHEN NOT is_2xx OR {_GONE} THEN attempt_verdict ELSE {answered_verdict(criteria)} END"
    columns = (
        "row_id, request_key, request_id, request_started_us, request_start_known, end_known, ts_us, latency_ms, "
        "is_2xx, of_request, tokens"
    )
    return f"""
        SELECT {columns}, again AS verdict FROM (
            SELECT {columns}, again, row_number() OVER (
                PARTITION BY CASE WHEN of_request > 1 THEN request_key END, CASE WHEN of_request = 1 THEN row_id END
                ORDER BY {DECIDING_FIRST}) AS place
            FROM (SELECT *, {rank_of('again')} AS rank
                FROM (SELECT *, {again} AS again FROM all_events WHERE in_request AND {mine}))
        ) WHERE place = 1"""


def _places(rows: pa.Table, *, timed: bool) -> Counts:
    """Return the blocks' numbers in time; without all times, numbers that mean nothing."""
    return _counts(rows, "block") if timed else np.arange(rows.num_rows)


def _counts(rows: pa.Table, name: str) -> Counts:
    return np.asarray(rows.column(name).to_numpy(zero_copy_only=False)).astype(np.int64)


def _floats(rows: pa.Table, name: str) -> Floats:
    return np.asarray(rows.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)

"""Make a large ledger: `python -m tests.benchmarks.ledger LINES FILE [--broken SHARE]`.

Eighteen fields a line, as a real gateway writes them: 2 % probes, 1 % retries, some late, some
cut. The same lines for the same arguments, whatever the threads: each number is a hash of the
line's own.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import duckdb

_SQL = """
COPY (
    WITH numbers AS (
        SELECT i, (i // 101) * 101 AS first_of_retry, {dice} FROM range({lines}) AS t(i)
    )
    SELECT
        round(1788746400 + i * 0.0216 + a * 0.01, 3) AS ts,
        'req-' || printf('%08x', CASE WHEN i % 101 = 100 THEN i - 1 ELSE i END) AS request_id,
        CASE WHEN i % 101 = 100 THEN 2 ELSE 1 END AS attempt,
        'complete' AS route,
        CASE WHEN b < 0.02 THEN 'probe' WHEN b < 0.10 THEN 'batch' ELSE 'user' END AS traffic,
        'client-' || (i % 97) AS client,
        'tenant-' || (i % 5) AS tenant,
        'qwen3-32b-instruct' AS model,
        'backend-' || (i % 4) AS backend,
        'allow' AS decision,
        CASE WHEN i % 101 = 99 THEN 503 ELSE 200 END AS status,
        round(300 + c * 2500 + CASE WHEN d < 0.004 THEN 9000 ELSE 0 END, 1) AS latency_ms,
        8000 AS deadline_ms,
        round(e * 90, 1) AS queue_age_ms,
        round(10 + f * 20, 1) AS cpu_pct,
        CAST(400 + a * 2000 AS INTEGER) AS prompt_tokens,
        CAST(20 + c * 300 AS INTEGER) AS completion_tokens,
        CASE WHEN d > 0.995 THEN NULL ELSE 'stop' END AS finish_reason
    FROM numbers ORDER BY i
) TO '{path}' (FORMAT json)
"""


def make_ledger(lines: int, path: Path, broken: float = 0.0) -> None:
    """Write a ledger; a share of its lines is broken, each in the next of four ways."""
    dice = ", ".join(f"(hash(i * 7919 + {k}) % 1000003) / 1000003.0 AS {name}" for k, name in enumerate("abcdef"))
    duckdb.connect().execute(_SQL.format(dice=dice, lines=lines, path=str(path).replace("'", "''")))
    if broken:
        _break_lines(path, max(2, round(1 / broken)))


# What loggers and disks do to lines: cut one, write a word for a number, lose a byte, write a key again.
_WAYS: tuple[Callable[[bytes], bytes], ...] = (
    lambda line: line[: len(line) // 2],
    lambda line: line.replace(b'"status":200', b'"status":"ok"'),
    lambda line: line.replace(b'"status":', b'"status"'),
    lambda line: line[:-1] + b',"status":503}',
)


def _break_lines(path: Path, every: int) -> None:
    beside = path.with_suffix(".broken")
    with path.open("rb") as source, beside.open("wb") as target:
        for number, line in enumerate(source):
            is_broken = number % every == every // 2
            target.write(_WAYS[number // every % len(_WAYS)](line[:-1]) + b"\n" if is_broken else line)
    beside.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--broken", type=float, default=0.0)
    options = parser.parse_args()
    make_ledger(options.lines, options.file, options.broken)

"""What each rule costs where its suspects are plenty: `python -m tests.benchmarks.plenty [LINES] [LEDGER...]`.

Prints for each ledger the CPU seconds of the load, of all rules and of the dearest one, and at last the ratio of the
worst ledger to the ordinary one of as many lines. Everything is measured in one run on one machine.
"""

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from quietburn.analysis.run import Request, analyzing, configured_rules
from quietburn.common.config import Config
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.evaluate.rules import Outcome, classify
from quietburn.ruleset.files import Values
from quietburn.ruleset.rule import Rule
from tests.benchmarks.ledger import make_ledger

_SETTINGS = ("oversized-prompt.max_prompt_tokens=10000", "hopeless-admission.min_slack_ms=100")
# Columns in the place of the ordinary ledger's (or beside them), by ledger; `i` numbers its lines from 0.
_SAME = "500 AS prompt_tokens, 50 AS completion_tokens"
_RETRIED = (
    "'req-' || (i // 2) AS request_id, i % 2 + 1 AS attempt, CASE WHEN i % 2 = 0 THEN 429 ELSE 200 END AS status, "
    "CASE WHEN i % 2 = 0 THEN 30.0 END AS retry_after_s"
)
LEDGERS = {
    "ordinary": "",
    "one caller, one size": f"'client-1' AS client, 'user' AS traffic, {_SAME}",
    "one caller, every 3 s": f"'client-1' AS client, 'user' AS traffic, 1788746400 + i * 3.0 AS ts, 700.0 AS latency_ms, {_SAME}",
    "10,000 callers, one size": f"'client-' || (i * 7919 % 10000) AS client, 'user' AS traffic, {_SAME}",
    "10,000 clocks": f"'client-' || (i % 10000) AS client, 'user' AS traffic, {_SAME}",
    "all noisy": (
        "TRUE AS prefix_noisy, 'fp-' || i AS prefix_fp, 0 AS cached_tokens, CASE WHEN i % 2 = 0 THEN 'reject' ELSE 'allow' END "
        "AS decision, CASE WHEN i % 2 = 0 THEN 'noisy_prefix' END AS reason"
    ),
    "all from one prefix, never cached": "'fp' AS prefix_fp, 0 AS cached_tokens, 2000 AS prompt_tokens",
    "all retried too early": _RETRIED,
    "all retried elsewhere": f"{_RETRIED}, 'backend-' || (i % 2) AS backend",
    "all replayed after a timeout": (
        "'req-' || (i // 2) AS request_id, i % 2 + 1 AS attempt, CASE WHEN i % 2 = 0 THEN 504 ELSE 200 END AS status, "
        "'key-' || i AS idempotency_key"
    ),
    "all late": "9000.0 AS latency_ms, 7000.0 AS queue_age_ms",
    "all over every bound": (
        "90 AS inflight, 40000 AS prompt_tokens_est, 10.0 AS deadline_slack_ms, 'allow' AS decision"
    ),
    "all refused": "429 AS status, 'reject' AS decision",
    "all on one route, one backend": "'backend-1' AS backend",
    "10,000 routes": "'route-' || (i % 10000) AS route",
    "long ones beside short ones": "CASE WHEN i % 20 = 0 THEN 9000 ELSE 100 + i % 7 END AS prompt_tokens, 2000.0 AS queue_age_ms",
}


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one ledger: load, all rules, and the dearest by name; how many rules fired, how many errored."""

    load: float
    rules: float
    dearest: str
    of_dearest: float
    fired: int
    errored: int

    @property
    def whole(self) -> float:
        """Load and rules."""
        return self.load + self.rules


def with_columns(source: Path, target: Path, columns: str) -> None:
    """Write a ledger again with some columns changed or added."""
    connection = duckdb.connect()
    named = [part.rpartition(" AS ")[2].strip() for part in _parts(columns)]
    (kept, *_) = connection.execute(f"SELECT list(column_name) FROM (DESCRIBE FROM read_json('{source}'))").fetchall()[0]
    excluded = [name for name in named if name in kept]
    # The number of the line is no key of it: one that no dialect knows would cost more than what is measured.
    star = f"* EXCLUDE ({', '.join(('i', *excluded))})"
    connection.execute(
        f"COPY (SELECT {columns}, {star} FROM (SELECT *, row_number() OVER () - 1 AS i FROM read_json('{source}'))) "
        f"TO '{target}' (FORMAT json)"
    )


def _parts(columns: str) -> list[str]:
    """Return the columns of a select list; commas within parentheses part none."""
    parts, depth = [""], 0
    for char in columns:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def cost_of(ledger: Path) -> Cost:
    """Load a ledger, judge it by all rules at once, then by each alone, and return what each took."""
    request = Request(config=Config(inflight_cap=8, max_retries=1, hourly_token_cap=1000), settings=_SETTINGS)
    begun = time.process_time()
    with analyzing([str(ledger)], replace(request, only=("late-but-200",))) as analysis:
        loaded = time.process_time()
        chosen = configured_rules(request)
        results = classify(analysis.engine, chosen)
        judged = time.process_time()
        alone = {rule.id: _cpu_of(analysis.engine, rule, values) for rule, values in chosen}
    dearest = max(alone, key=lambda name: alone[name])
    errored = sum(result.outcome is Outcome.ERRORED for result in results)
    fired = sum(result.outcome is Outcome.FIRED for result in results)
    return Cost(loaded - begun, judged - loaded, dearest, alone[dearest], fired, errored)


def _cpu_of(engine: DuckEngine, rule: Rule, values: Values) -> float:
    begun = time.process_time()
    classify(engine, [(rule, values)])
    return time.process_time() - begun


def main(lines: int, wanted: list[str]) -> None:
    """Print what every ledger costs; an unknown name ends it."""
    named = {name: LEDGERS[name] for name in ("ordinary", *wanted)} if wanted else LEDGERS
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory(prefix="quietburn-plenty-") as folder:
        ordinary, ledger = Path(folder) / "ordinary.jsonl", Path(folder) / "night.jsonl"
        make_ledger(lines, ordinary)
        print(f"{lines:,} lines; CPU seconds")
        for name, columns in named.items():
            if columns:
                with_columns(ordinary, ledger, columns)
            cost = costs[name] = cost_of(ledger if columns else ordinary)
            print(
                f"{name:<34} load {cost.load:5.2f}  rules {cost.rules:5.2f}  fired {cost.fired:2}  errored {cost.errored}  "
                f"dearest {cost.dearest} {cost.of_dearest:4.2f} ({cost.of_dearest / cost.load:.0%} of the load)", flush=True,
            )
    worst = max(costs, key=lambda name: costs[name].whole)
    print(f"worst: {worst}, {costs[worst].whole / costs['ordinary'].whole:.2f} x the ordinary one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:])

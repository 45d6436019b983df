"""Speed and memory against DuckDB's own typed load: `python -m tests.benchmarks.speed [LINES]`.

Prints ratios measured in one run on one machine; nothing is asserted.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_TYPES = {
    "ts": "DOUBLE", "request_id": "VARCHAR", "attempt": "BIGINT", "route": "VARCHAR", "traffic": "VARCHAR",
    "client": "VARCHAR", "tenant": "VARCHAR", "model": "VARCHAR", "backend": "VARCHAR", "decision": "VARCHAR",
    "status": "BIGINT", "latency_ms": "DOUBLE", "deadline_ms": "DOUBLE", "queue_age_ms": "DOUBLE",
    "cpu_pct": "DOUBLE", "prompt_tokens": "BIGINT", "completion_tokens": "BIGINT", "finish_reason": "VARCHAR",
}
_TYPED_LOAD = (
    "import duckdb, sys; duckdb.connect().execute(\"CREATE TABLE t AS FROM read_json(?, "
    f"format='newline_delimited', columns={_TYPES})\", [sys.argv[1]])"
)


_ANALYZE = (sys.executable, "-m", "quietburn", "analyze", "--format", "json", "--quiet")
# Windowed rules alone, as the shape of reading and reducing must bear them; what single attempts and pairs cost comes on top.
_FIRST_RULES = tuple(
    part
    for rule in (
        "cache-busting-prefix", "saturation", "stuck-worker", "probe-spend-share", "tokens-without-users", "late-but-200",
        "empty-but-billed", "success-hides-outage",
    )
    for part in ("--only", rule)
)


@dataclass(frozen=True)
class Run:
    """One finished process: wall seconds, CPU seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def measure(*command: str) -> Run:
    """Run a command to its end and return what the operating system accounts for it."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise SystemExit(f"{command[:3]} ended with {process.returncode}")
    return Run(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main(lines: int, rounds: int = 3) -> None:
    """Time the typed load and the analysis in turn, clean and with broken lines."""
    with tempfile.TemporaryDirectory(prefix="quietburn-speed-") as folder:
        clean, broken = Path(folder) / "clean.jsonl", Path(folder) / "broken.jsonl"
        # A process inherits the peak memory of the one that starts it: the ledgers are made in another.
        for path, share in ((clean, 0.0), (broken, 0.001)):
            make = (sys.executable, "-m", "tests.benchmarks.ledger", str(lines), str(path), "--broken", str(share))
            subprocess.run(make, check=True)
        print(f"{lines:,} lines, {clean.stat().st_size / 1e9:.2f} GB, {os.cpu_count()} cores, {rounds} rounds")
        commands = {
            "DuckDB typed load": (sys.executable, "-c", _TYPED_LOAD, str(clean)),
            "analyze, eight rules": (*_ANALYZE, str(clean), *_FIRST_RULES),
            "analyze": (sys.executable, "-m", "quietburn", "analyze", str(clean), "--format", "json", "--quiet"),
            "analyze, 0.1 % broken": (sys.executable, "-m", "quietburn", "analyze", str(broken), "--format", "json", "--quiet"),
        }
        runs: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                runs[name].append(measure(*command))
        reference = [run.wall for run in runs["DuckDB typed load"]]
        for name, measured in runs.items():
            ratio = median(run.wall / base for run, base in zip(measured, reference, strict=True))
            print(
                f"{name:<24} wall {median(r.wall for r in measured):6.1f} s   cpu {median(r.cpu for r in measured):6.1f} s   "
                f"peak {max(r.peak for r in measured):6.0f} MiB   {ratio:4.2f} x the typed load"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000)

"""Whatever text a caller or a log chooses, reading it takes time linear in its length: a second of CPU a megabyte at most."""

import ast
import importlib
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import T0, read

import quietburn
from quietburn.dialects.transforms import TRANSFORMS
from quietburn.records.exact import NumberText

MEGABYTE = 1 << 20
CPU_SECONDS_A_MEGABYTE = 1.0
GROWING = (8 << 10, 64 << 10, MEGABYTE)  # a quadratic pattern fails on the first, not after hours

# Each is repeated. Every one was the worst input of some pattern, or begins a match that never ends.
PUMPS = (
    "Mon", "Jan 1 ", "1 ", " ", "a", "9", '\\"', '"{', "req-", "req_aaaaaa_", "1234567890.", "2026-01-01T00:00:00.", "Column(/",
    "ab12", "##a", "`", " : ", "www.",
)  # fmt: skip


# These read rules, promtool's output about them and DuckDB's words, which are ours, or names of files, which are short.
NOT_FOREIGN = ("quietburn.ruleset", "quietburn.alerts", "quietburn.engine", "quietburn.records.inputs")


def repeated(pump: str, size: int) -> str:
    return "x" + pump * (size // len(pump)) + "!"


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def assert_linear(work: Callable[[str], object], pump: str) -> None:
    for size in GROWING:
        text = repeated(pump, size)
        assert cpu_seconds(lambda text=text: work(text)) < 0.1 + CPU_SECONDS_A_MEGABYTE * size / MEGABYTE, (pump, size)  # type: ignore[misc]


def patterns_within(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from patterns_within(part)
    elif isinstance(value, dict):
        yield from patterns_within(list(value.values()))


def inline_patterns(source: str) -> Iterator[re.Pattern[Any]]:
    """Yield the literal patterns of calls like `re.sub(r"...", ...)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            called, first = node.func, node.args[0]
            if isinstance(called.value, ast.Name) and called.value.id == "re" and isinstance(first, ast.Constant):
                yield re.compile(first.value)


def all_patterns() -> dict[str, re.Pattern[Any]]:
    found: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(quietburn.__path__, "quietburn."):
        if module.name.endswith("__main__") or module.name.startswith(NOT_FOREIGN):
            continue
        loaded = importlib.import_module(module.name)
        within: Iterable[re.Pattern[Any]] = patterns_within(list(vars(loaded).values()))
        source = Path(loaded.__file__ or "").read_text(encoding="utf-8")
        for pattern in (*within, *inline_patterns(source)):
            found.setdefault(repr(pattern.pattern), pattern)
    return found


PATTERNS = all_patterns()


def test_the_patterns_of_all_modules_are_found() -> None:
    sources = "".join(PATTERNS)
    assert len(PATTERNS) > 20
    assert "Wed|Thu" in sources  # in a tuple of fingerprint.py
    assert r"[\\[\\]{}]" in sources  # inline in exact.py


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_pattern_takes_linear_time_on_the_worst_text(name: str) -> None:
    pattern = PATTERNS[name]

    def use(text: str) -> None:
        given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
        pattern.sub(given[:0], given)
        pattern.fullmatch(given)

    for pump in PUMPS:
        assert_linear(use, pump)


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_a_transform_takes_linear_time_on_the_worst_text(name: str) -> None:
    transform = TRANSFORMS[name]
    for pump in PUMPS:
        assert_linear(lambda text: transform(*[text] * transform.takes), pump)
    assert_linear(lambda text: transform(*[NumberText("9" * len(text))] * transform.takes), "9")


NGINX = {
    "msec": "1767000009.850", "request_id": "ab12", "request_method": "POST", "uri": "/v1/chat/completions", "status": "200",
    "request_time": "9.750", "request_completion": "OK", "upstream_status": "200",
}  # fmt: skip
CANONICAL = {"ts": T0, "request_id": "r1", "status": 200, "latency_ms": 120}
PLAIN = repeated("lorem ipsum ", MEGABYTE)


def line(text: str, key: str, base: dict[str, Any]) -> str:
    return json.dumps(base | {key: text})


WORST = {
    "days in a prompt": line(repeated("Mon", MEGABYTE), "prefix", CANONICAL),
    "months in a prompt": line(repeated("Jan", MEGABYTE), "prefix", CANONICAL),
    "escaped quotes in a broken line": '{"a":' + "[" * 300 + '"' + '\\"' * (MEGABYTE // 2),
    "open brackets": "[" * MEGABYTE,
    "spaces in a list of servers": line("a" + " " * MEGABYTE + "b", "upstream_addr", NGINX),
    "digits in a header": line("9" * MEGABYTE, "http_x_stainless_retry_count", NGINX),
    "digits in a number": json.dumps(CANONICAL).replace("120", "9" * MEGABYTE),
    "digits in a time": json.dumps(CANONICAL).replace(str(T0), "1" * MEGABYTE),
    "a text for a time": line("2026-01-01T00:00:00." + "0" * MEGABYTE, "ts", CANONICAL),
    "a key like an error": line("x", "Column(/" * (MEGABYTE // 8), CANONICAL),
    "an agent": line(repeated("a ", MEGABYTE), "user_agent", CANONICAL),
    "a route": line("/" * MEGABYTE, "route", CANONICAL),
    "an error": line(repeated("timeou", MEGABYTE), "error", CANONICAL),
}


@pytest.mark.parametrize("name", sorted(WORST))
def test_a_line_of_a_megabyte_costs_as_much_as_any_other(name: str, tmp_path: Path) -> None:
    base = NGINX if name in ("spaces in a list of servers", "digits in a header") else CANONICAL
    costs = []
    for label, text in (("ordinary", line(PLAIN, "note", base)), ("worst", WORST[name])):
        path = tmp_path / f"{label}.jsonl"
        path.write_text(f"{json.dumps(base)}\n{text}\n", encoding="utf-8")
        costs.append(cpu_seconds(lambda path=path: read(path)))  # type: ignore[misc]
    ordinary, worst = costs
    assert worst < 2 * ordinary + CPU_SECONDS_A_MEGABYTE

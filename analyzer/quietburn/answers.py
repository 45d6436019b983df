"""Requests, verdicts and the rates over them; the one place where a rate is computed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quietburn.engine.attempts import LENGTH_FINISH
from quietburn.engine.base import Engine
from quietburn.engine.derive import Coverage
from quietburn.engine.settings import Settings, request_within
from quietburn.engine.verdicts import CRITERIA, FALSE_SUCCESSES
from quietburn.intervals import wilson
from quietburn.ledger.sql import literal

VERDICTS = ("usable", "unknown", "late", "truncated", "empty", "abandoned", "refused", "failed", "invalid")
NOT_VALID = ("invalid", "abandoned")


@dataclass(frozen=True)
class Criterion:
    """One of the three questions: whether it counts here, and how many 2xx attempts answer it."""

    measured: bool
    coverage: float | None


@dataclass(frozen=True)
class Tokens:
    """Tokens spent; each coverage is the share of the attempts behind a sum that say how many they took."""

    all: float
    wasted: float
    probe: float
    coverage: float | None
    wasted_coverage: float | None
    probe_coverage: float | None
    by_traffic: dict[str, float]
    coverage_by_traffic: dict[str, float | None]


@dataclass(frozen=True)
class Rates:
    """What a dashboard shows and what callers got, side by side. What can't be measured is None."""

    attempts: int
    successes: int
    with_status: int
    requests: int
    request_attempts: int
    requests_with_2xx: int
    abandoned_with_2xx: int
    verdicts: dict[str, int]
    criteria: dict[str, Criterion]
    criteria_by_dialect: dict[str, dict[str, Criterion]]
    tokens: Tokens
    length_limited: int
    unlabelled: int
    attempts_by_traffic: dict[str, tuple[int, int]]
    failed_attempts: dict[str, int]  # by failure domain

    @property
    def success_rate(self) -> float | None:
        """2xx attempts over all attempts at the generate route, whoever sent them; None where no line says."""
        return _share(self.successes, self.attempts) if self.with_status else None

    @property
    def request_success_rate(self) -> float | None:
        """Requests with a 2xx over requests."""
        return _share(self.requests_with_2xx, self.requests)

    @property
    def amplification(self) -> float | None:
        """Attempts for each request."""
        return _share(self.request_attempts, self.requests)

    @property
    def valid(self) -> int:
        """Requests that deserved an answer: all but invalid and abandoned ones. Refused ones are valid."""
        return self.requests - sum(self.verdicts[name] for name in NOT_VALID)

    @property
    def false_successes(self) -> int:
        """Requests that were answered 2xx and got nothing usable."""
        return sum(self.verdicts[name] for name in FALSE_SUCCESSES)

    @property
    def usable_rate(self) -> float | None:
        """Usable over valid requests; None where nobody can tell what was in time."""
        return _share(self.verdicts["usable"], self.valid) if self.criteria["on_time"].measured else None

    @property
    def usable_rate_of_all(self) -> float | None:
        """Usable over all requests, the strict reading."""
        return _share(self.verdicts["usable"], self.requests) if self.criteria["on_time"].measured else None

    @property
    def usable_rate_bounds(self) -> tuple[float, float] | None:
        """The least and the most that can be usable, whatever the unknown ones were."""
        usable, unknown = self.verdicts["usable"], self.verdicts["unknown"]
        return (usable / self.valid, (usable + unknown) / self.valid) if self.valid else None

    @property
    def usable_rate_interval95(self) -> tuple[float, float] | None:
        """Wilson's lower end at usable, and its upper end at usable and unknown."""
        usable, unknown = self.verdicts["usable"], self.verdicts["unknown"]
        if not self.valid:
            return None
        return wilson(usable, self.valid)[0], wilson(usable + unknown, self.valid)[1]

    @property
    def false_success_share(self) -> float | None:
        """The part of the service that the success rate hides."""
        return _share(self.false_successes, self.valid)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def measure_rates(engine: Engine, coverage: Coverage, settings: Settings) -> Rates:
    """Return the rates of the run: attempts by their end, requests by the start of their first."""
    facts = engine.select(_FACTS).to_pylist()
    attempts = [fact for fact in facts if fact["is_attempt"]]
    traffic = _by_traffic(attempts)
    mine = request_within(settings)
    # Without a span each request is as much in the run as its attempts are; one pass tells both.
    deciding = facts if mine == "TRUE" else engine.select(_REQUESTS.format(mine=mine)).to_pylist()
    requests = _by_verdict(deciding)
    verdicts = {name: requests[name]["n"] if name in requests else 0 for name in VERDICTS}
    abandoned = requests.get("abandoned")
    return Rates(
        attempts=_total(attempts, "attempts"),
        successes=_total(attempts, "successes"),
        with_status=_total(attempts, "with_status"),
        requests=sum(verdicts.values()),
        request_attempts=_total([part for part in attempts if part["verdict"]], "attempts"),
        requests_with_2xx=sum(int(r["with_2xx"]) for r in requests.values()),
        abandoned_with_2xx=int(abandoned["with_2xx"]) if abandoned else 0,
        verdicts=verdicts,
        criteria=_criteria(coverage, list(coverage.answered)),
        criteria_by_dialect={dialect: _criteria(coverage, [dialect]) for dialect in sorted(coverage.answered)},
        tokens=_tokens(traffic, attempts),
        length_limited=_total(attempts, "length_limited"),
        unlabelled=_total([part for part in attempts if part["traffic"] is None], "attempts"),
        attempts_by_traffic={
            name: (_total(parts, "attempts"), _total(parts, "successes")) for name, parts in traffic.items()
        },
        failed_attempts=_by_domain(attempts),
    )


_SHED = "(status = 429 OR decision = 'reject' OR (status = 503 AND reason IS NOT NULL))"
_DOMAINS = {
    "truncated_stream": ("is_2xx AND complete = FALSE", "Discard the part that came; never stitch or store it."),
    "shed_with_retry_after": (
        f"{_SHED} AND retry_after_s IS NOT NULL", "Wait at least that long, then go through the gate again.",
    ),
    "shed_without_retry_after": (_SHED, "Back off on the measured service rate, not on the count of retries."),
    "timeout": (
        "lower(error) LIKE '%timeout%' OR status IN (408, 504)",
        "The outcome is unknown: replay only with an idempotency key.",
    ),
    "server_error": ("status >= 500", "Retry a bounded number of times with jitter, and lower the budget."),
    "other": ("NOT is_2xx", "Look at the status and error of each."),
}
_DOMAIN = "CASE " + " ".join(f"WHEN {predicate} THEN '{name}'" for name, (predicate, _) in _DOMAINS.items()) + " END"

# What follows from these groups is counted from them: a sum over every attempt costs more than one over a few groups.
_FACTS = f"""
    SELECT is_attempt, traffic, verdict, decides, {_DOMAIN} AS domain, count(*) AS attempts, count(status) AS with_status,
        count(CASE WHEN status BETWEEN 200 AND 299 THEN 1 END) AS successes,
        count(CASE WHEN in_request AND is_2xx AND finish_reason <> 'stop'
            AND lower(finish_reason) IN ({", ".join(literal(reason) for reason in LENGTH_FINISH)}) THEN 1 END) AS length_limited,
        count(tokens) AS with_tokens, COALESCE(sum(tokens), 0) AS tokens,
        count(CASE WHEN decides AND request_has_2xx THEN 1 END) AS with_2xx
    FROM events GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""
_REQUESTS = """
    SELECT verdict, TRUE AS decides, count(*) AS attempts, sum(CASE WHEN request_has_2xx THEN 1 ELSE 0 END) AS with_2xx
    FROM all_events WHERE decides AND {mine} GROUP BY verdict
"""


def _total(parts: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(int(part[name]) for part in parts)


def _spent(parts: Iterable[Mapping[str, Any]]) -> float:
    return sum((float(part["tokens"]) for part in parts), 0.0)


def _by_traffic(attempts: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the groups of attempts by who sent them; those without a label under an empty name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in attempts:
        found.setdefault(part["traffic"] or "", []).append(part)
    return {name: found[name] for name in sorted(found)}


def _by_domain(attempts: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in attempts:
        if part["domain"]:
            found[part["domain"]] = found.get(part["domain"], 0) + part["attempts"]
    return found


def _by_verdict(facts: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for part in facts:
        if part["decides"]:
            row = found.setdefault(part["verdict"], {"n": 0, "with_2xx": 0})
            row["n"] += int(part["attempts"])
            row["with_2xx"] += int(part["with_2xx"])
    return found


def _tokens(traffic: Mapping[str, list[dict[str, Any]]], attempts: list[dict[str, Any]]) -> Tokens:
    named = {name or "unlabelled": parts for name, parts in traffic.items()}
    for_nothing = [part for part in attempts if _bought_nothing(part)]
    probes = [part for part in attempts if part["traffic"] == "probe"]
    return Tokens(
        all=_spent(attempts),
        wasted=_spent(for_nothing),
        probe=_spent(probes),
        coverage=_coverage_of(attempts),
        wasted_coverage=_coverage_of(for_nothing),
        probe_coverage=_coverage_of(probes),
        by_traffic={name: _spent(parts) for name, parts in named.items()},
        coverage_by_traffic={name: _coverage_of(parts) for name, parts in named.items()},
    )


def _coverage_of(parts: list[dict[str, Any]]) -> float | None:
    return _share(_total(parts, "with_tokens"), _total(parts, "attempts"))


def _bought_nothing(part: Mapping[str, Any]) -> bool:
    """Whether the attempts of a group bought no usable answer: probes, what failed, and what another attempt made needless."""
    if part["traffic"] == "probe":
        return True
    return bool(part["verdict"]) and part["verdict"] != "unknown" and not (part["verdict"] == "usable" and part["decides"])


def _criteria(coverage: Coverage, dialects: list[str]) -> dict[str, Criterion]:
    """Return the criteria over some dialects: measured where at least half of their 2xx answer."""
    total = sum(coverage.answered[dialect] for dialect in dialects)
    found = {}
    for name in CRITERIA:
        known = sum(coverage.known[dialect][name] for dialect in dialects)
        found[name] = Criterion(total == 0 or known * 2 >= total, _share(known, total))
    return found


@dataclass(frozen=True)
class FailureDomain:
    """A kind of failure that wants an action of its own (seed 003, step 3)."""

    domain: str
    attempts: int
    action: str


def failure_domains(rates: Rates) -> list[FailureDomain]:
    """Return how many failed attempts fall into each domain; each falls into exactly one."""
    return [FailureDomain(name, rates.failed_attempts.get(name, 0), action) for name, (_, action) in _DOMAINS.items()]

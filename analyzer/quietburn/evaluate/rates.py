"""Requests, verdicts and the rates over them; the one place where a rate is computed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quietburn.common.sql import literal
from quietburn.engine.attempts import LENGTH_FINISH
from quietburn.engine.base import Engine
from quietburn.engine.derive import Stratum
from quietburn.engine.settings import Settings, request_within
from quietburn.engine.verdict_columns import CRITERIA, FALSE_SUCCESSES

VERDICTS = ("usable", "unknown", "late", "truncated", "empty", "abandoned", "refused", "failed", "invalid")
NOT_VALID = ("invalid", "abandoned")
_PROVEN_BY = ("complete", "non_empty")  # what a usable request may leave open
_LEAST_KNOWN = 2  # a share is stated where one in so many, or more, can be told


@dataclass(frozen=True)
class Criterion:
    """One of the three questions: the share of 2xx attempts that answer it, and whether that is half of them or more."""

    measured: bool
    coverage: float | None


@dataclass(frozen=True)
class Answers:
    """The criteria over answers that were logged alike: how many there are, by dialect and whether they were streamed."""

    dialect: str
    stream: bool | None
    answered: int
    criteria: dict[str, Criterion]


@dataclass(frozen=True)
class Unproven:
    """Usable requests of which a criterion can't be told, and how many of them were streamed."""

    requests: int
    streamed: int


@dataclass(frozen=True)
class Tokens:
    """Tokens spent by calls of every kind; each coverage is the share of the calls behind a sum that say how many they took.

    What only half of its usage is known of is in none of these sums, but in one of its own.
    """

    all: float
    wasted: float
    probe: float
    coverage: float | None
    wasted_coverage: float | None
    probe_coverage: float | None
    by_traffic: dict[str, float]
    coverage_by_traffic: dict[str, float | None]
    completion_only: float  # of lines that say nothing of their prompt, and have no total
    prompt_only: float  # and the other way round


@dataclass(frozen=True)
class Rates:
    """What a dashboard shows and what callers got, side by side. What can't be measured is None."""

    attempts: int
    successes: int
    outcome_unknown: int
    requests: int
    request_attempts: int
    verdicts: dict[str, int]
    verdicts_with_2xx: dict[str, int]  # of these, the requests that had a 2xx
    errors_in_band: int  # requests without a 2xx whose last answer was an error within one
    not_an_answer: int  # attempts whose 2xx was a web page
    unproven: dict[str, Unproven]
    criteria: dict[str, Criterion]
    criteria_by_dialect: dict[str, dict[str, Criterion]]
    answers: list[Answers]  # those that were logged alike
    tokens: Tokens
    length_limited: int
    unlabelled: int
    attempts_by_traffic: dict[str, tuple[int, int]]
    failed_attempts: dict[str, int]  # by failure domain

    @property
    def success_rate(self) -> float | None:
        """2xx attempts over those whose outcome is known, whoever sent them; None where that is under half."""
        known = self.attempts - self.outcome_unknown
        return _share(self.successes, known) if _enough(known, self.attempts) else None

    @property
    def success_rate_bounds(self) -> tuple[float, float] | None:
        """The least and the most that the success rate can be, where some outcome is unknown."""
        return _bounds(self.successes, self.outcome_unknown, self.attempts) if self.outcome_unknown else None

    @property
    def requests_with_2xx(self) -> int:
        """Requests with a 2xx: the sum of what became of them."""
        return sum(self.verdicts_with_2xx.values())

    @property
    def request_success_rate(self) -> float | None:
        """Requests with a 2xx over requests of which it is known whether they had one; None where that is under half."""
        known = self.requests - (self.verdicts["unknown"] - self.verdicts_with_2xx["unknown"])
        return _share(self.requests_with_2xx, known) if _enough(known, self.requests) else None

    @property
    def amplification(self) -> float | None:
        """Attempts for each request."""
        return _share(self.request_attempts, self.requests)

    @property
    def valid(self) -> int:
        """Requests that deserved an answer: all but invalid and abandoned ones. Refused ones are valid."""
        return self.requests - sum(self.verdicts[name] for name in NOT_VALID)

    @property
    def judged(self) -> int:
        """Valid requests of which it can be told whether they got a usable answer."""
        return self.valid - self.verdicts["unknown"]

    @property
    def judged_share(self) -> float | None:
        """Judged over valid requests."""
        return _share(self.judged, self.valid)

    @property
    def is_measured(self) -> bool:
        """Whether half of the valid requests are judged, and half of the 2xx answers tell whether they were on time."""
        return _enough(self.judged, self.valid) and self.criteria["on_time"].measured

    @property
    def false_successes(self) -> int:
        """Requests that were answered 2xx and got nothing usable."""
        return sum(self.verdicts[name] for name in FALSE_SUCCESSES)

    @property
    def usable_rate(self) -> float | None:
        """Usable over judged requests; None where too few are judged."""
        return _share(self.verdicts["usable"], self.judged) if self.is_measured else None

    @property
    def usable_rate_of_all(self) -> float | None:
        """Usable over all requests, the strict reading."""
        return _share(self.verdicts["usable"], self.requests) if self.is_measured else None

    @property
    def usable_rate_bounds(self) -> tuple[float, float] | None:
        """The least and the most that can be usable of the valid requests, whatever the unknown ones were."""
        return _bounds(self.verdicts["usable"], self.verdicts["unknown"], self.valid)

    @property
    def false_success_share(self) -> float | None:
        """The part of the judged requests that the success rate hides; None where too few are judged."""
        return _share(self.false_successes, self.judged) if self.is_measured else None


def _enough(known: int, whole: int) -> bool:
    return bool(whole) and known * _LEAST_KNOWN >= whole


def _bounds(part: int, unknown: int, whole: int) -> tuple[float, float] | None:
    return (part / whole, (part + unknown) / whole) if whole else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def measure_rates(engine: Engine, strata: list[Stratum], settings: Settings) -> Rates:
    """Return the rates of the run: attempts by their end, requests by the start of their first; `strata` of its answers."""
    facts = engine.select(_FACTS).to_pylist()
    attempts = [fact for fact in facts if fact["is_attempt"]]
    traffic = _by_traffic(attempts)
    mine = request_within(settings)
    # Without a span each request is as much in the run as its attempts are; one pass tells both.
    deciding = facts if mine == "TRUE" else engine.select(_REQUESTS.format(mine=mine)).to_pylist()
    requests = [part for part in deciding if part["decides"]]
    verdicts = _by_verdict(requests, "attempts")
    return Rates(
        attempts=_total(attempts, "attempts"),
        successes=_total(attempts, "successes"),
        outcome_unknown=_total(attempts, "outcome_unknown"),
        requests=sum(verdicts.values()),
        request_attempts=_total([part for part in attempts if part["verdict"]], "attempts"),
        verdicts=verdicts,
        verdicts_with_2xx=_by_verdict(requests, "with_2xx"),
        errors_in_band=_total(requests, "errors_in_band"),
        not_an_answer=_total(attempts, "not_an_answer"),
        unproven={
            name: Unproven(_total(requests, f"no_{name}"), _total(requests, f"no_{name}_streamed")) for name in _PROVEN_BY
        },
        criteria=_criteria(strata),
        criteria_by_dialect=_criteria_by_dialect(strata),
        answers=[Answers(s.dialect, s.stream, s.answered, _criteria([s])) for s in strata],
        tokens=_tokens(facts),
        length_limited=_total(attempts, "length_limited"),
        unlabelled=_total([part for part in attempts if part["traffic"] is None], "attempts"),
        attempts_by_traffic={
            name: (_total(parts, "attempts"), _total(parts, "successes")) for name, parts in traffic.items()
        },
        failed_attempts=_by_domain(attempts),
    )


_SHED = "(status = 429 OR decision = 'reject' OR (status = 503 AND reason IS NOT NULL))"
_DOMAINS = {
    "truncated_stream": ("is_2xx AND complete = FALSE", "Discard the partial answer; never stitch or store it."),
    "shed_with_retry_after": (
        f"{_SHED} AND retry_after_s IS NOT NULL", "Wait at least that long, then go through the gate again.",
    ),
    "shed_without_retry_after": (_SHED, "Back off by the measured service rate, not by the retry count."),
    "timeout": (
        "lower(error) LIKE '%timeout%' OR status IN (408, 504)",
        "The outcome is unknown: replay only with an idempotency key.",
    ),
    "server_error": ("status >= 500", "Retry a limited number of times with jitter, and lower the retry budget."),
    "other": ("NOT is_2xx AND outcome_known", "Check the status and error of each."),
}
_DOMAIN = "CASE " + " ".join(f"WHEN {predicate} THEN '{name}'" for name, (predicate, _) in _DOMAINS.items()) + " END"

# What is asked of requests, of the attempt that decides each.
_OF_REQUESTS = ", ".join([
    "count(CASE WHEN decides AND request_has_2xx THEN 1 END) AS with_2xx",
    "count(CASE WHEN decides AND NOT request_has_2xx AND status BETWEEN 200 AND 299 THEN 1 END) AS errors_in_band",
    *(f"count(CASE WHEN decides AND verdict = 'usable' AND {name} IS NULL THEN 1 END) AS no_{name}" for name in _PROVEN_BY),
    *(
        f"count(CASE WHEN decides AND verdict = 'usable' AND {name} IS NULL AND stream THEN 1 END) AS no_{name}_streamed"
        for name in _PROVEN_BY
    ),
])
# What follows from these groups is counted from them: a sum over every attempt costs more than one over a few groups.
_FACTS = f"""
    SELECT is_attempt, traffic, verdict, decides, {_DOMAIN} AS domain, count(*) AS attempts,
        count(CASE WHEN NOT outcome_known THEN 1 END) AS outcome_unknown,
        count(CASE WHEN status BETWEEN 200 AND 299 THEN 1 END) AS successes,
        count(CASE WHEN in_request AND not_an_answer THEN 1 END) AS not_an_answer,
        count(CASE WHEN in_request AND is_2xx AND finish_reason <> 'stop'
            AND lower(finish_reason) IN ({", ".join(literal(reason) for reason in LENGTH_FINISH)}) THEN 1 END) AS length_limited,
        count(tokens) AS with_tokens, COALESCE(sum(tokens), 0) AS tokens,
        count(CASE WHEN kind IN ('generate', 'embed') OR tokens IS NOT NULL THEN 1 END) AS should_tell_tokens,
        COALESCE(sum(CASE WHEN tokens IS NULL AND prompt_tokens IS NULL THEN completion_tokens END), 0) AS completion_only,
        COALESCE(sum(CASE WHEN tokens IS NULL AND completion_tokens IS NULL THEN prompt_tokens END), 0) AS prompt_only,
        {_OF_REQUESTS}
    FROM events GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""
_REQUESTS = f"""
    SELECT verdict, TRUE AS decides, count(*) AS attempts, {_OF_REQUESTS}
    FROM all_events WHERE decides AND {{mine}} GROUP BY verdict
"""


def _total(parts: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(int(part[name]) for part in parts)


def _spent(parts: Iterable[Mapping[str, Any]], name: str = "tokens") -> float:
    return sum((float(part[name]) for part in parts), 0.0)


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


def _by_verdict(requests: list[dict[str, Any]], name: str) -> dict[str, int]:
    return {verdict: _total([part for part in requests if part["verdict"] == verdict], name) for verdict in VERDICTS}


def _tokens(facts: list[dict[str, Any]]) -> Tokens:
    """Return the sums over events of every kind; those that neither spend nor should say so are in no coverage."""
    spending = [part for part in facts if part["should_tell_tokens"]]
    named = {name or "unlabelled": parts for name, parts in _by_traffic(spending).items()}
    for_nothing = [part for part in spending if _bought_nothing(part)]
    probes = [part for part in spending if part["traffic"] == "probe"]
    return Tokens(
        all=_spent(spending),
        wasted=_spent(for_nothing),
        probe=_spent(probes),
        coverage=_coverage_of(spending),
        wasted_coverage=_coverage_of(for_nothing),
        probe_coverage=_coverage_of(probes),
        by_traffic={name: _spent(parts) for name, parts in named.items()},
        coverage_by_traffic={name: _coverage_of(parts) for name, parts in named.items()},
        completion_only=_spent(facts, "completion_only"),
        prompt_only=_spent(facts, "prompt_only"),
    )


def _coverage_of(parts: list[dict[str, Any]]) -> float | None:
    return _share(_total(parts, "with_tokens"), _total(parts, "should_tell_tokens"))


def _bought_nothing(part: Mapping[str, Any]) -> bool:
    """Whether the events of a group bought no usable answer: probes, what failed, and what another attempt made needless."""
    if part["traffic"] == "probe":
        return True
    return bool(part["verdict"]) and part["verdict"] != "unknown" and not (part["verdict"] == "usable" and part["decides"])


def _criteria(strata: Collection[Stratum]) -> dict[str, Criterion]:
    """Return the criteria over some strata; with no 2xx at all nothing hangs on them."""
    total = sum(stratum.answered for stratum in strata)
    found = {}
    for name in CRITERIA:
        known = sum(stratum.known[name] for stratum in strata)
        found[name] = Criterion(total == 0 or _enough(known, total), _share(known, total))
    return found


def _criteria_by_dialect(strata: list[Stratum]) -> dict[str, dict[str, Criterion]]:
    dialects = sorted({stratum.dialect for stratum in strata})
    return {dialect: _criteria([stratum for stratum in strata if stratum.dialect == dialect]) for dialect in dialects}


@dataclass(frozen=True)
class FailureDomain:
    """A kind of failure that wants an action of its own (seed 003, step 3)."""

    domain: str
    attempts: int
    action: str


def failure_domains(rates: Rates) -> list[FailureDomain]:
    """Return how many failed attempts fall into each domain; each falls into exactly one."""
    return [FailureDomain(name, rates.failed_attempts.get(name, 0), action) for name, (_, action) in _DOMAINS.items()]

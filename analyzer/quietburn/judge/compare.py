"""Compare two ledgers: each difference with its interval, or refused as noise."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quietburn.engine.base import Engine
from quietburn.engine.settings import DeadlineDefault, Settings
from quietburn.engine.verdict_columns import CRITERIA, FALSE_SUCCESSES
from quietburn.errors import UsageError
from quietburn.evaluate.blocks import (
    AttemptCounts,
    DeadlineFacts,
    RequestCounts,
    RequestRows,
    attempt_counts,
    deadline_facts,
    models,
    request_counts,
    request_rows,
)
from quietburn.evaluate.rates import NOT_VALID, VERDICTS
from quietburn.evaluate.share_interval import CLUSTERS, incidents_words, share_difference
from quietburn.intervals import estimates as intervals
from quietburn.intervals import settling
from quietburn.intervals.clusters import Blocks
from quietburn.intervals.estimates import Estimate, Floats, Share
from quietburn.judge.differences import LEAST_JUDGED, difference, refused, uncountable, untold
from quietburn.report.model import Report
from quietburn.report.verdict import ComparisonReport, DifferenceReport, ModelsReport, SideReport
from quietburn.report.words import CRITERION, POINTS

NEWCOMBE, PAIRS = "Newcombe", "Bonett and Price, paired"
BOOTSTRAP, PAIRED_BOOTSTRAP, RATIO = "bootstrap of requests", "bootstrap of pairs", "linearised ratio"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_FEWEST_ROWS = 6  # as few as a median's interval needs
_LEAST_TOKENS_COVERAGE = 0.5
_CLOSE_COVERAGE = 0.1
_SHARES = (
    ("usable_rate", "usable rate", ("usable",)),
    ("false_success_share", "false-success share", FALSE_SUCCESSES),
    ("late_share", "late share", ("late",)),
)
_SHARES_OF_ALL = (
    ("invalid_share", "invalid share of all requests", ("invalid",)),
    ("abandoned_share", "abandoned share of all requests", ("abandoned",)),
)


@dataclass(frozen=True)
class Side:
    """One ledger's report and samples; `rows` only where a comparison needs them."""

    report: Report
    deadline: str
    requests: RequestCounts
    attempts: AttemptCounts
    models: frozenset[str]
    rows: RequestRows | None = None

    @property
    def counted_refused(self) -> int:
        """Return how many lines were refused, an incomplete last one (still being written) left out."""
        return self.report.counted_refused

    @property
    def told(self) -> SideReport:
        """Return what results say about the side."""
        ledger = self.report.ledger
        return SideReport(
            files=[file.path for file in ledger.files], first_ts=ledger.first_ts, last_ts=ledger.last_ts,
            lines=ledger.lines, quarantined=ledger.quarantined,
            counted_refused=self.counted_refused, rates=self.report.rates, deadline=self.deadline,
        )


@dataclass(frozen=True)
class Common:
    """Criteria that both ledgers measure, and those that only one does."""

    both: frozenset[str]
    one: frozenset[str]

    @property
    def asked(self) -> frozenset[str] | None:
        """Return the criteria to judge by anew, or None where each ledger's own verdicts compare."""
        return self.both if self.one else None


def common_criteria(before: Report, after: Report) -> Common:
    """Return which criteria two ledgers can be compared on."""
    first, second = (
        frozenset(name for name in CRITERIA if report.rates.criteria[name].measured) for report in (before, after)
    )
    return Common(first & second, first ^ second)


def take_side(
    report: Report, engine: Engine, settings: Settings, criteria: frozenset[str] | None = None,
    *, with_rows: bool = False, with_ids: bool = False,
) -> Side:
    """Return one ledger's side, judged by its own measured criteria or only by those asked."""
    return Side(
        report=report,
        deadline=deadline_words(deadline_facts(engine, settings), settings.deadlines),
        requests=request_counts(engine, settings, criteria),
        attempts=attempt_counts(engine),
        models=models(engine),
        rows=request_rows(engine, settings, criteria, with_ids=with_ids) if with_rows else None,
    )


def deadline_words(facts: DeadlineFacts, defaults: tuple[DeadlineDefault, ...]) -> str:
    """Return the deadlines of the requests and where they come from; never whose they are."""
    if facts.least_ms is None or facts.most_ms is None:
        return "none known: log or configure deadline_ms"
    least, most = f"{facts.least_ms:,.0f}", f"{facts.most_ms:,.0f}"
    numbers = f"{least} ms" if least == most else f"{least} to {most} ms"
    origins = dict.fromkeys(
        f"{default.deadline_ms:,.0f} ms ({default.origin}{f', by {default.column}' if default.column else ''})"
        for default in defaults
    )
    configured = ", ".join(origins)
    known = "" if facts.known == facts.requests else f", known for {facts.known:,} of {facts.requests:,} requests"
    if not facts.carried:
        return f"{configured}{known}"
    return f"{numbers}, from the ledger{f'; if a line has none, {configured}' if origins else ''}{known}"


def compare(before: Side, after: Side, common: Common, *, paired: bool = False, command: str = "") -> ComparisonReport:
    """Return two ledgers side by side; with `paired`, only requests whose id stands in both.

    Both sides need rows, with ids when paired. Raises UsageError when no request stands in both.
    """
    pairs = matched(before, after) if paired else None
    found = [_success(before, after), *_verdict_shares(before, after, common, pairs), *_amounts(before, after, common, pairs)]
    return ComparisonReport(
        before=before.told,
        after=after.told,
        paired=paired,
        pairs=len(pairs[0]) if pairs else None,
        criteria=[name for name in CRITERIA if name in common.both],
        criteria_left_out=[name for name in CRITERIA if name in common.one],
        differences=found,
        models=changed_models(before, after),
        notices=_notices(before, after, common, pairs, found),
        command=command,
    )


def changed_models(before: Side, after: Side) -> ModelsReport:
    """Return the models that only one of two ledgers has."""
    return ModelsReport(only_before=sorted(before.models - after.models), only_after=sorted(after.models - before.models))


def gate_differences(before: Side, after: Side, common: Common) -> list[DifferenceReport]:
    """Return the differences of shares between a baseline and a ledger."""
    return [_success(before, after), *_verdict_shares(before, after, common, None)]


# Shares


def share_estimate(before: Side, after: Side, *names: str) -> tuple[Estimate, str]:
    """Return the difference of a share of valid requests, and how its interval was made: the wider of two ways."""
    blocks = (before.requests.blocks(*names), after.requests.blocks(*names))
    return _estimate(before.requests.share(*names), after.requests.share(*names), blocks)


def _estimate(before: Share, after: Share, blocks: tuple[Blocks | None, Blocks | None]) -> tuple[Estimate, str]:
    plain = intervals.newcombe_bounded(before, after)
    clustered = share_difference(blocks[0], blocks[1]) if blocks[0] and blocks[1] else None
    chosen = intervals.wider(plain, clustered)
    return chosen, NEWCOMBE if chosen is plain else CLUSTERS


def _success(before: Side, after: Side) -> DifferenceReport:
    shares = (before.attempts.share, after.attempts.share)
    return _share_difference("success_rate", "success rate", shares, (before.attempts.blocks, after.attempts.blocks))


def _verdict_shares(
    before: Side, after: Side, common: Common, pairs: "Pairs | None"
) -> list[DifferenceReport]:
    found = []
    for name, label, verdicts in _SHARES:
        shares = (before.requests.share(*verdicts), after.requests.share(*verdicts))
        if "on_time" not in common.both:
            found.append(refused(name, label, POINTS, "on time is not measured in both", shares[0].whole, shares[1].whole))
        elif pairs:
            found.append(_paired_share(name, label, verdicts, before, after, pairs))
        else:
            blocks = (before.requests.blocks(*verdicts), after.requests.blocks(*verdicts))
            found.append(_share_difference(name, label, shares, blocks))
    for name, label, verdicts in _SHARES_OF_ALL:
        shares = (before.requests.share(*verdicts, of_all=True), after.requests.share(*verdicts, of_all=True))
        found.append(_share_difference(name, label, shares, (None, None)))
    return found


def _share_difference(
    name: str, label: str, shares: tuple[Share, Share], blocks: tuple[Blocks | None, Blocks | None]
) -> DifferenceReport:
    before, after = shares
    if why := uncountable(before, after):
        return refused(name, label, POINTS, why, before.judged, after.judged)
    estimate, method = _estimate(before, after, blocks)
    plain = intervals.newcombe_bounded(before, after)
    stretch = ((estimate.high - estimate.low) / (plain.high - plain.low)) ** 2
    needed = settling.requests_to_settle_difference(before, after)
    upward = estimate.point >= 0
    smallest = settling.smallest_difference(before, after.judged, upward=upward)
    if smallest is None:  # there may be no room for it on that side
        smallest = settling.smallest_difference(before, after.judged, upward=not upward)
    return difference(
        name, label, POINTS, (before.rate, after.rate), (before.judged, after.judged), estimate, method,
        smallest=estimate.noise if method == CLUSTERS else smallest,
        needed=None if needed is None else round(needed * stretch), left_open=untold(before, after),
    )


# Pairs: positions of the same request in the rows of both sides

Pairs = tuple[intervals.Counts, intervals.Counts]


def matched(before: Side, after: Side) -> Pairs:
    """Return the positions, in each side's rows, of requests whose id stands once in both. Raises UsageError for none."""
    tables = [
        pa.table({"id": rows.ids, name: pa.array(np.arange(len(rows.verdict)), pa.int64())})
        for rows, name in ((_rows(before), "first"), (_rows(after), "second"))
    ]
    both = tables[0].filter(tables[0]["id"].is_valid()).join(tables[1], "id", join_type="inner").sort_by("first")
    if both.num_rows == 0:
        raise UsageError("--paired: the ledgers share no request_id. Omit --paired, or send the same ids to both.")
    return both["first"].to_numpy(), both["second"].to_numpy()


def _rows(side: Side) -> RequestRows:
    if side.rows is None:
        raise ValueError("a comparison needs each side's rows")
    return side.rows


def _paired_share(
    name: str, label: str, verdicts: tuple[str, ...], before: Side, after: Side, pairs: Pairs
) -> DifferenceReport:
    """Compare over pairs that are valid on both sides; who is unknown is what is least kind to each end.

    Levels and difference are those of pairs that are judged on both sides.
    """
    first, second = _rows(before), _rows(after)
    wrong = [VERDICTS.index(name) for name in NOT_VALID]
    kept = ~(np.isin(first.verdict[pairs[0]], wrong) | np.isin(second.verdict[pairs[1]], wrong))
    count = int(kept.sum())
    if not count:
        return refused(name, label, POINTS, "no pair is valid on both sides", 0, 0)
    had, has = (rows.is_verdict(*verdicts)[at][kept] for rows, at in ((first, pairs[0]), (second, pairs[1])))
    might_had, might_have = (
        rows.is_verdict(*verdicts, "unknown")[at][kept] for rows, at in ((first, pairs[0]), (second, pairs[1]))
    )
    told = (might_had - had + might_have - has) == 0
    judged = int(told.sum())
    if judged < LEAST_JUDGED * count:
        return refused(name, label, POINTS, "more than half of the pairs can't be judged", judged, judged)
    plain = intervals.bonett_price(*_moved(had[told], has[told]), judged)
    low, high = (intervals.bonett_price(*_moved(a, b), count) for a, b in ((might_had, has), (had, might_have)))
    estimate = Estimate(plain.point, low.low, high.high)
    return difference(
        name, label, POINTS, (float(had[told].mean()), float(has[told].mean())), (judged, judged), estimate, PAIRS,
        smallest=estimate.noise, needed=settling.values_to_settle(estimate, judged),
        left_open=untold(*(_share_of(known, most) for known, most in ((had, might_had), (has, might_have)))),
    )


def _share_of(known: Floats, most: Floats) -> Share:
    """Return the share of the pairs that have it for sure, and at most."""
    return Share(int(known.sum()), len(known), int((most - known).sum()))


def _moved(had: Floats, has: Floats) -> tuple[int, int]:
    return int(((has > 0) & (had == 0)).sum()), int(((had > 0) & (has == 0)).sum())


# Latencies and tokens


def _amounts(before: Side, after: Side, common: Common, pairs: Pairs | None) -> list[DifferenceReport]:
    priced = (
        _tokens("tokens_per_usable", "tokens per usable answer", before, after, pairs, per_usable=True)
        if "on_time" in common.both
        # Usable without on time is another thing; its price would be no answer to the question.
        else refused("tokens_per_usable", "tokens per usable answer", "tokens", "on time is not measured on both sides", 0, 0)
    )
    return [
        *(_latency(name, q, before, after, pairs) for name, q in _QUANTILES.items()),
        _tokens("tokens_per_request", "tokens per request", before, after, pairs, per_usable=False),
        priced,
    ]


def _latency(name: str, q: float, before: Side, after: Side, pairs: Pairs | None) -> DifferenceReport:
    first, second = _rows(before).latency_ms, _rows(after).latency_ms
    if pairs:
        first, second = first[pairs[0]], second[pairs[1]]
        both = ~(np.isnan(first) | np.isnan(second))
        first, second = first[both], second[both]
    else:
        first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    label, fewest = f"latency {name} of answers", intervals.fewest_for_quantile(q)
    if min(len(first), len(second)) < fewest:
        why = f"needs at least {fewest} on each side; there are {len(first):,} and {len(second):,}"
        return refused(f"latency_{name}_ms", label, "ms", why, len(first), len(second))
    middle = pairs is not None and q == 0.5
    estimate = intervals.quantile_interval(second - first, q) if middle else intervals.quantile_difference(first, second, q)
    values = (float(np.quantile(first, q)), float(np.quantile(second, q)))
    return difference(
        f"latency_{name}_ms", f"{label}, of the pairs' differences" if middle else label, "ms", values,
        (len(first), len(second)), estimate, PAIRED_BOOTSTRAP if middle else BOOTSTRAP,
        smallest=estimate.noise, needed=settling.values_to_settle(estimate, min(len(first), len(second))),
    )


def _tokens(
    name: str, label: str, before: Side, after: Side, pairs: Pairs | None, *, per_usable: bool
) -> DifferenceReport:
    sides = (_rows(before), _rows(after))
    refusal = _no_tokens(sides)
    at: list[intervals.Counts | slice] = list(pairs) if pairs else [slice(None), slice(None)]
    amounts = [np.nan_to_num(rows.tokens[where]) for rows, where in zip(sides, at, strict=True)]
    per = [
        rows.is_verdict("usable")[where] if per_usable else (~np.isnan(rows.tokens[where])).astype(np.float64)
        for rows, where in zip(sides, at, strict=True)
    ]
    counts = (len(amounts[0]), len(amounts[1]))
    if refusal or min(counts) < _FEWEST_ROWS:
        why = refusal or f"needs at least {_FEWEST_ROWS} requests on each side"
        return refused(name, label, "tokens", why, *counts)
    if min(float(per[0].sum()), float(per[1].sum())) == 0:
        return refused(name, label, "tokens", "one side has no usable answer", *counts)
    # What probes spent is part of an answer's price, but of no request's.
    besides = [0.0 if pairs or not per_usable else rows.besides_tokens for rows in sides]
    first, second = (intervals.ratio(a, p, b) for a, p, b in zip(amounts, per, besides, strict=True))
    estimate = intervals.ratio_difference(first, second)
    return difference(
        name, label, "tokens", (first.value, second.value), counts, estimate, RATIO,
        smallest=estimate.noise, needed=settling.values_to_settle(estimate, min(counts)),
    )


def _no_tokens(sides: tuple[RequestRows, RequestRows]) -> str | None:
    first, second = (rows.tokens_coverage or 0.0 for rows in sides)
    if min(first, second) < _LEAST_TOKENS_COVERAGE or abs(first - second) > _CLOSE_COVERAGE:
        return f"{first:.0%} and {second:.0%} of the 2xx attempts report their tokens"
    return None


def _notices(
    before: Side, after: Side, common: Common, pairs: Pairs | None, found: list[DifferenceReport]
) -> list[str]:
    notices = criteria_notices(common)
    if pairs:
        count, (first, second) = len(pairs[0]), (len(_rows(side).verdict) for side in (before, after))
        notices.append(f"Paired: {count:,} requests are in both ledgers, {first - count:,} and {second - count:,} in only one.")
        notices.append(
            "The success rate counts attempts and is not paired; p90, p99 and tokens don't use the pairs (too noisy)."
        )
    if before.deadline != after.deadline:
        notices.append("The deadlines differ, and so does what counts as late.")
    if not all(each.method == CLUSTERS for each in found if each.name == "usable_rate"):
        notices.append("The intervals assume independent requests, which those in a burst are not, so they are optimistic.")
    sides = (("before", before), ("after", after))
    notices += [words for name, side in sides if (words := incidents_words(name, side.requests.blocks("usable")))]
    return notices


def criteria_notices(common: Common) -> list[str]:
    """Return what to know where two ledgers measure different criteria."""
    if not common.one:
        return []
    left = ", ".join(CRITERION[name] for name in CRITERIA if name in common.one)
    kept = ", ".join(CRITERION[name] for name in CRITERIA if name in common.both) or "nothing"
    return [f"Measured in only one ledger, so not compared: {left}. Compared on: {kept}."]

"""What the reader must know to trust the numbers, in plain sentences."""

import time
from collections.abc import Iterable, Iterator

from quietburn.common.limits import MINUTE_US
from quietburn.common.timerange import iso
from quietburn.engine.clocks import Clocks
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import Settings
from quietburn.evaluate.blocks import Patience, patience
from quietburn.evaluate.rates import Rates
from quietburn.evaluate.rules import Outcome, RuleResult
from quietburn.evaluate.share_interval import Interval, method_words
from quietburn.ledger.units import GIVEN, Settled

_CLOCK_SKEW_US = 5 * MINUTE_US
_SHOWN_ROUTES = 5
_NEARLY_ALL = 0.95  # of the requests with a deadline
_ENOUGH_FOR_P99 = 100  # with fewer attempts the slowest of a hundred may not be among them


def notices_for(
    engine: DuckEngine, rates: Rates, usable: Interval | None, results: Iterable[RuleResult], settings: Settings,
    *, zone: str | None,
) -> list[str]:
    """Return the notices of a run; `usable` is the usable rate's interval, `zone` that of times that name none."""
    found = [*engine.loader.notes, *_of_times(engine, zone), *_of_deadlines(engine, rates, settings)]
    if engine.carries("deadline_ms"):
        found += _of_patience(patience(engine, settings))
    found += _of_rates(rates)
    if usable and rates.is_measured:
        found.append(method_words(usable))
    found += [*_of_same_traffic(engine), *_of_units(engine), *_of_lines(engine)]
    if any(result.outcome is Outcome.ERRORED for result in results):
        found.append("Some rules failed: they found neither something nor nothing.")
    return found


def _of_times(engine: DuckEngine, zone: str | None) -> Iterator[str]:
    naive = sum(counts.naive_times for counts in engine.files)
    if naive and zone is None:
        yield f"{naive:,} times name no zone; UTC was assumed. Say --tz if that is wrong."
    for counts in engine.files:
        if len(counts.time_units) > 1:
            told = ", ".join(f"{number:,} in {unit}" for unit, number in sorted(counts.time_units.items()))
            yield f"{counts.label}: its times are written in several units ({told}); each was read by its size."
    future, latest = engine.after(time.time_ns() // 1000 + _CLOCK_SKEW_US)
    if future:
        yield f"{future:,} events lie in the future, the last at {iso(latest)}: somebody's clock is wrong."
    if engine.clocks.skew_us:
        yield _of_clocks(engine.clocks, {str(counts.file_id): counts.label for counts in engine.files})


def _of_clocks(clocks: Clocks, files: dict[str, str]) -> str:
    """Name the writers whose clocks differ, and by how much, as far as that is known."""
    error = f"{clocks.error_us / 1e6:,.1f} s"
    if clocks.told_by is None:
        return (
            f"Clock skew: attempts of one request contradict each other by up to {clocks.skew_us / 1e6:,.1f} s, and no field "
            f"tells who wrote a line (log the gateway's instance as writer). What compares attempts by less than {error} "
            "is withheld, and on time is unknown there."
        )
    names = files if clocks.told_by == "file" else {}
    off = ", ".join(
        f"{clocks.told_by} {names.get(name, name)} is {abs(ahead) / 1e6:,.1f} s "
        f"{'ahead of' if ahead > 0 else 'behind'} the others"
        for name, ahead in sorted(clocks.ahead_us.items()) if ahead
    )
    return (
        f"Clock skew: {off}, as attempts of one request tell. Times between writers are corrected by it; what is closer than "
        f"{error} is withheld, and on time is unknown there."
    )


def _of_same_traffic(engine: DuckEngine) -> Iterator[str]:
    """Name logs that another log of the run stands for, and those that share some calls only."""
    for found in engine.same_traffic:
        both = f"{found.outer} and {found.inner}"
        pairs = f"{found.shared:,} of {found.calls:,} calls pair by {found.by}"
        if not found.same:
            yield (
                f"{both} share calls ({pairs}). That is not enough to take them for two logs of the same traffic, so both are "
                "counted. If they are, analyze them one by one."
            )
            continue
        rest = "" if found.whole else "; what else the latter holds counts"
        yield (
            f"{both} tell of the same traffic ({pairs}), so they are not added up: {found.outer} encloses the other's calls and "
            f"is judged{rest}."
        )
        if found.other_status or found.other_end:
            yield (
                f"{both} contradict each other on the status of {found.other_status:,} calls and on the end of "
                f"{found.other_end:,}: compare these calls by their request ids."
            )


def _of_units(engine: DuckEngine) -> Iterator[str]:
    """Say how durations were read whose name tells no unit, and how to settle those that nothing tells."""
    labels = {counts.file_id: counts.label for counts in engine.files}
    alike: dict[tuple[str, str, str | None], list[Settled]] = {}
    for settled in engine.settled:
        if settled.how != GIVEN:
            alike.setdefault((settled.column, settled.key, settled.unit), []).append(settled)
    for (column, key, unit), found in alike.items():
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        where = f"{labels[found[0].file_id]}{more}: {key!r} names no unit"
        if unit is None:
            values = sum(settled.values for settled in found)
            yield (
                f"{where} and nothing in the file tells it: its {values:,} values are unknown. Name the unit in quietburn.toml: "
                f'[map] {column} = {{ from = "{key}", unit = "s" }} (or unit = "ms").'
            )
        else:
            yield f"{where}; it was read in {unit}: {found[0].how}."


def _of_lines(engine: DuckEngine) -> Iterator[str]:
    invented = sum(counts.invented for counts in engine.files)
    if invented:
        yield f"{invented:,} failed attempts report a time of 0; what they say of their usage and timings is not used."
    for dialect, lines in engine.counting_cached_apart().items():
        yield (
            f"{dialect}: the prompt tokens of {lines:,} events leave out the cached ones, which their totals have; "
            "the cached ones are counted into the prompt."
        )
    unreadable = engine.unreadable("status")
    if unreadable:
        yield (
            f"status: {unreadable.count:,} values can't be read (the first in {unreadable.file}:{unreadable.line}), so whether "
            "these attempts were answered is known only where an error, a refusal or the caller's leaving tells it."
        )
    if engine.joined_retries:
        yield (
            f"{engine.joined_retries:,} retries carry no id of their request; each was joined to the failed attempt of such a "
            "caller before it."
        )
    nuls = sum(counts.leading_nuls for counts in engine.files)
    if nuls:
        yield f"Leading NUL bytes were skipped in {nuls:,} lines (a log truncated in place)."


def _of_deadlines(engine: DuckEngine, rates: Rates, settings: Settings) -> Iterator[str]:
    for default in settings.deadlines:
        where = f" where {default.column} is {default.value}" if default.column else ""
        if engine.lines_meant(default):
            yield f"Where the ledger carries no deadline, {default.deadline_ms:g} ms is taken{where} ({default.origin})."
        else:
            named = f" Its routes are: {', '.join(engine.routes(_SHOWN_ROUTES))}." if default.column == "route" else ""
            yield f"No line of this ledger is one{where} ({default.origin}): that deadline is used nowhere.{named}"
    if rates.requests and not rates.criteria["on_time"].measured:
        yield (
            "Of most answers nobody can say whether they were in time: log deadline_ms and latency_ms (or start and end), "
            "or configure deadline_ms. Until then there is no usable rate."
        )


def _of_patience(told: Patience) -> Iterator[str]:
    """Point out deadlines that nobody can miss: on time then says nothing."""
    if told.sdk_default > _NEARLY_ALL * told.known:
        yield (
            f"{told.sdk_default:,} of {told.known:,} deadlines are 600 s, what SDKs wait where nobody set anything: hardly an "
            "answer can miss that. On time says little here; let callers set the timeout that they really bear."
        )
    elif told.attempts >= _ENOUGH_FOR_P99 and told.far > _NEARLY_ALL * told.known:
        yield (
            f"{told.far:,} of {told.known:,} deadlines allow more than ten times what 99 % of {told.attempts:,} attempts took "
            f"(at most {told.p99_ms:,} ms; the least deadline is {told.least_ms:,.0f} ms): hardly an answer can miss that. "
            "On time says little here; log or configure how long callers really wait."
        )


def _of_rates(rates: Rates) -> Iterator[str]:
    if not rates.attempts:
        yield (
            "No event of this ledger generates an answer, so there was nothing to judge. Where some of its routes do "
            "generate, name them in quietburn.toml: [routes] generate = [\"/path\"]."
        )
    if rates.unlabelled and rates.unlabelled < rates.attempts:
        yield f"{rates.unlabelled:,} of {rates.attempts:,} attempts carry no traffic label; they count as users."
    if rates.length_limited:
        yield f"{rates.length_limited:,} answers ended at a length limit; they count as complete."
    if rates.not_an_answer:
        yield (
            f"{rates.not_an_answer:,} answers are web pages (content type text/html), such as a login or an error page. "
            "No answer of this API is one, so they count as empty (not_an_answer)."
        )
    if any(rates.attempts_by_traffic) and rates.criteria["on_time"].measured and rates.requests:
        yield "The gateway's clock misses the way from and to the caller; on time is optimistic by as much."

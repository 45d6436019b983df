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
        found.append("Some rules failed; their result is unknown.")
    return found


def _of_times(engine: DuckEngine, zone: str | None) -> Iterator[str]:
    naive = sum(counts.naive_times for counts in engine.files)
    if naive and zone is None:
        yield f"{naive:,} times have no time zone; UTC was assumed. Use --tz to set another."
    for counts in engine.files:
        if len(counts.time_units) > 1:
            told = ", ".join(f"{number:,} in {unit}" for unit, number in sorted(counts.time_units.items()))
            yield f"{counts.label}: times are written in several units ({told}); the unit of each was taken from its magnitude."
    future, latest = engine.after(time.time_ns() // 1000 + _CLOCK_SKEW_US)
    if future:
        yield f"{future:,} events are in the future, the last at {iso(latest)}: a clock is wrong."
    if engine.clocks.skew_us:
        yield _of_clocks(engine.clocks, {str(counts.file_id): counts.label for counts in engine.files})


def _of_clocks(clocks: Clocks, files: dict[str, str]) -> str:
    """Name the writers whose clocks differ, and by how much, as far as that is known."""
    error = f"{clocks.error_us / 1e6:,.1f} s"
    if clocks.told_by is None:
        return (
            f"Clock skew: attempts of one request contradict each other by up to {clocks.skew_us / 1e6:,.1f} s, and no field "
            f"names the writer of a line (log the gateway's instance as writer). Comparisons of attempts closer than {error} "
            "are withheld, and there on time is unknown."
        )
    names = files if clocks.told_by == "file" else {}
    off = ", ".join(
        f"{clocks.told_by} {names.get(name, name)} is {abs(ahead) / 1e6:,.1f} s "
        f"{'ahead of' if ahead > 0 else 'behind'} the others"
        for name, ahead in sorted(clocks.ahead_us.items()) if ahead
    )
    return (
        f"Clock skew: {off}, judging by attempts of one request. Times between writers are corrected; comparisons closer than "
        f"{error} are withheld, and there on time is unknown."
    )


def _of_same_traffic(engine: DuckEngine) -> Iterator[str]:
    """Name logs that another log of the run stands for, and those that share some calls only."""
    for found in engine.same_traffic:
        both = f"{found.outer} and {found.inner}"
        pairs = f"{found.shared:,} of {found.calls:,} calls pair by {found.by}"
        if not found.same:
            yield (
                f"{both} share calls ({pairs}). That is too few to treat them as two logs of the same traffic, so both are "
                "counted. If they are, analyze them separately."
            )
            continue
        rest = "" if found.whole else "; other calls in the latter count"
        yield (
            f"{both} describe the same traffic ({pairs}), so they are not added together: {found.outer} encloses the other's "
            f"calls and is judged{rest}."
        )
        if found.other_status or found.other_end:
            yield (
                f"{both} contradict each other on the status of {found.other_status:,} calls and on the end of "
                f"{found.other_end:,}: compare these calls by request id."
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
        where = f"{labels[found[0].file_id]}{more}: {key!r} has no unit in its name"
        if unit is None:
            values = sum(settled.values for settled in found)
            yield (
                f"{where} and nothing in the file settles it: its {values:,} values are unknown. Set the unit in quietburn.toml: "
                f'[map] {column} = {{ from = "{key}", unit = "s" }} (or unit = "ms").'
            )
        else:
            yield f"{where}; it was read in {unit}: {found[0].how}."


def _of_lines(engine: DuckEngine) -> Iterator[str]:
    invented = sum(counts.invented for counts in engine.files)
    if invented:
        yield f"{invented:,} failed attempts report a time of 0 (a placeholder); their usage and timings are ignored."
    for dialect, lines in engine.counting_cached_apart().items():
        yield (
            f"{dialect}: the prompt tokens of {lines:,} events exclude cached tokens, but their totals include them; "
            "cached tokens are added to the prompt tokens."
        )
    unreadable = engine.unreadable("status")
    if unreadable:
        yield (
            f"status: {unreadable.count:,} values can't be read (the first in {unreadable.file}:{unreadable.line}), so whether "
            "these attempts were answered is known only if an error, a refusal or a disconnect shows it."
        )
    if engine.joined_retries:
        yield (
            f"{engine.joined_retries:,} retries carry no request id; each was joined to the preceding failed attempt of the "
            "same kind of caller."
        )
    nuls = sum(counts.leading_nuls for counts in engine.files)
    if nuls:
        yield f"Leading NUL bytes were skipped in {nuls:,} lines (a log truncated in place)."


def _of_deadlines(engine: DuckEngine, rates: Rates, settings: Settings) -> Iterator[str]:
    for default in settings.deadlines:
        where = f" where {default.column} is {default.value}" if default.column else ""
        if engine.lines_meant(default):
            yield f"If a line has no deadline, {default.deadline_ms:g} ms is assumed{where} ({default.origin})."
        else:
            named = f" Its routes are: {', '.join(engine.routes(_SHOWN_ROUTES))}." if default.column == "route" else ""
            yield f"No line of this ledger matches{where} ({default.origin}): that deadline is not used.{named}"
    if rates.requests and not rates.criteria["on_time"].measured:
        yield (
            "Most answers can't be judged on time: log deadline_ms and latency_ms (or start and end), "
            "or configure deadline_ms. Until then there is no usable rate."
        )


def _of_patience(told: Patience) -> Iterator[str]:
    """Point out deadlines that nobody can miss: on time then says nothing."""
    if told.sdk_default > _NEARLY_ALL * told.known:
        yield (
            f"{told.sdk_default:,} of {told.known:,} deadlines are 600 s, the SDK default: hardly any "
            "answer can miss that. On time says little here; let callers set their real timeout."
        )
    elif told.attempts >= _ENOUGH_FOR_P99 and told.far > _NEARLY_ALL * told.known:
        yield (
            f"{told.far:,} of {told.known:,} deadlines allow more than ten times what 99 % of {told.attempts:,} attempts took "
            f"(at most {told.p99_ms:,} ms; the shortest deadline is {told.least_ms:,.0f} ms): hardly any answer can miss that. "
            "On time says little here; log or configure how long callers really wait."
        )


def _of_rates(rates: Rates) -> Iterator[str]:
    if not rates.attempts:
        yield (
            "No call in this ledger generates an answer, so there is nothing to judge. If some of its routes do "
            "generate, list them in quietburn.toml: [routes] generate = [\"/path\"]."
        )
    if rates.unlabelled and rates.unlabelled < rates.attempts:
        yield f"{rates.unlabelled:,} of {rates.attempts:,} attempts have no traffic label; they count as user traffic."
    if rates.length_limited:
        yield f"{rates.length_limited:,} answers ended at a length limit; they count as complete."
    if rates.not_an_answer:
        yield (
            f"{rates.not_an_answer:,} answers are web pages (content type text/html), such as a login or an error page. "
            "This API never returns them, so they count as empty (not_an_answer)."
        )
    if any(rates.attempts_by_traffic) and rates.criteria["on_time"].measured and rates.requests:
        yield "The gateway's clock misses the network time to and from the caller, so on time is optimistic by that much."

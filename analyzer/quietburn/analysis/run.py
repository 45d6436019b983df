"""Analyze ledgers: files in, report out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quietburn.analysis.notices import notices_for
from quietburn.common.config import Config
from quietburn.common.messages import nearest
from quietburn.common.timerange import Span
from quietburn.common.trust import is_file
from quietburn.dialects.mapping import Mapping as Dialect
from quietburn.dialects.mapping import shipped_mappings
from quietburn.dialects.routes import shipped_routes
from quietburn.engine.connection import MEMORY_LIMIT, naming_damage
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.settings import DeadlineDefault, Settings
from quietburn.errors import ConfigError, InputError, UsageError
from quietburn.evaluate.blocks import request_counts
from quietburn.evaluate.findings import worst_first
from quietburn.evaluate.incidents import incidents
from quietburn.evaluate.left_out import left_out
from quietburn.evaluate.rates import failure_domains, measure_rates
from quietburn.evaluate.rules import classify
from quietburn.evaluate.share_interval import share_interval
from quietburn.ledger.counts import FileCounts
from quietburn.ledger.cpu import by_minute, read_cpu
from quietburn.ledger.remap import given_units, remapped
from quietburn.records.inputs import LedgerFile, find_ledgers, label_of
from quietburn.report import build
from quietburn.report.model import Report
from quietburn.ruleset.explains import explained_by
from quietburn.ruleset.files import Value, Values, checked_number, choose, parameter_values, parse_settings, shipped_rules
from quietburn.ruleset.rule import Rule


@dataclass(frozen=True)
class Request:
    """What one analysis is asked: which lines, which rules, which numbers.

    `dialect` forces a shipped dialect, `mapping` offers one more; `settings` are
    `RULE.PARAMETER=NUMBER`; `zone` is the zone of times that name none; `store` a DuckDB file
    that keeps what is loaded (without ledgers it is what gets analyzed); `cpu` a file of CPU use;
    `join` that what a log lacks is taken from another log of the same traffic, by request id.
    """

    config: Config = field(default_factory=Config)
    span: Span = field(default_factory=Span)
    zone: str | None = None
    dialect: str | None = None
    mapping: Dialect | None = None
    settings: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    rules: tuple[Rule, ...] | None = None
    threads: int | None = None
    memory_limit: str = MEMORY_LIMIT
    store: Path | None = None
    cpu: Path | None = None
    join: bool = False


@dataclass(frozen=True)
class Analysis:
    """An analysis while its events can still be asked: the report, the engine, and what shaped its views."""

    ledgers: list[LedgerFile]
    report: Report
    engine: DuckEngine
    settings: Settings
    rules: list[tuple[Rule, Values]]


def analyze(
    paths: Iterable[str], request: Request | None = None, progress: Callable[[int], None] | None = None
) -> Report:
    """Read ledgers, classify, and return the report.

    Raises QuietburnError for what can't be used: a ledger, a rule, a parameter.
    """
    with analyzing(paths, request, progress) as analysis:
        return analysis.report


@contextmanager
def analyzing(
    paths: Iterable[str], request: Request | None = None, progress: Callable[[int], None] | None = None
) -> Iterator[Analysis]:
    """Read ledgers, classify, and give the report together with the engine, which is closed afterwards.

    Raises QuietburnError as `analyze` does.
    """
    request = request or Request()
    every = request.rules if request.rules is not None else shipped_rules()
    chosen = choose(every, request.only, request.skip)
    given = _given(request, every)
    paths = list(paths)
    ledgers = find_ledgers(paths) if paths or request.store is None else []
    if not ledgers and request.store is not None:
        _refuse_without_store(request.store)
    units = given_units(request.config)
    known, forced = _dialects(request)
    with naming_damage(request.store), DuckEngine(
        zone=request.zone, known=known, forced=forced, threads=request.threads, memory_limit=request.memory_limit,
        database=request.store, units=units, read_only=request.store is not None and not ledgers,
        join=request.join,
    ) as engine:
        cpu = read_cpu(request.cpu, request.zone) if request.cpu else None
        engine.load(ledgers, progress)
        if not engine.files:
            raise InputError(f"--db {request.store}: contains no ledger. Name the ledgers to load into it.")
        _refuse_without_requests(engine.files)
        dialects = frozenset(engine.loader.mappings)
        settings = _settings(request, engine)
        engine.prepare(settings)
        engine.loader.notes += request.config.not_taken
        if cpu is not None:
            engine.take_cpu(by_minute(cpu.samples))
            engine.loader.notes += cpu.notices(label_of(str(request.cpu)))
        rules = [(rule, _values(rule, dialects, request.config, given)) for rule in chosen]
        results = classify(engine, rules, _cannot_tell(engine.loader.mappings), _loggable(engine.loader.mappings))
        rates = measure_rates(engine, engine.strata, settings)
        usable = share_interval(request_counts(engine, settings), "usable")
        notices = notices_for(engine, rates, usable, results, settings, zone=request.zone)
        found = worst_first(finding for result in results for finding in result.findings)
        grouped = incidents(engine, found, explained_by(every))
        judged = build.Judged(results, found, grouped)
        report = build.report(engine, rates, usable, left_out(engine), judged, failure_domains(rates), notices)
        yield Analysis(ledgers, report, engine, settings, rules)


def _refuse_without_store(store: Path) -> None:
    """Refuse to read a store where there is none. Raises InputError."""
    if not is_file(store):
        raise InputError(f"--db {label_of(str(store))}: no such file, and no ledger given to create it from.")
    if store.stat().st_size == 0:
        raise InputError(f"--db {label_of(str(store))}: contains no ledger. Name the ledgers to load into it.")


def _given(request: Request, rules: Iterable[Rule]) -> dict[str, dict[str, Value]]:
    """Return numbers by rule and parameter: configuration's `[rules.<id>]`, then `--set` over it."""
    rules = list(rules)
    by_id = {rule.id: rule for rule in rules}
    origin = request.config.origin or "configuration"
    try:
        found = {
            rule_id: {name: Value(checked_number(by_id, rule_id, name, number), origin) for name, number in table.items()}
            for rule_id, table in request.config.rules.items()
        }
    except UsageError as problem:
        raise ConfigError(f"configuration {origin}: [rules]: {problem}") from None
    for rule_id, table in parse_settings(request.settings, rules).items():
        found.setdefault(rule_id, {}).update(table)
    return found


def _values(
    rule: Rule, dialects: frozenset[str], config: Config, given: Mapping[str, Mapping[str, Value]]
) -> Values:
    origin = config.origin or "configuration"
    keys = ("hourly_token_cap", "max_retries", "inflight_cap")
    configured = {key: Value(float(number), origin) for key in keys if (number := getattr(config, key)) is not None}
    return parameter_values(rule, dialects=dialects, configured=configured, given=given.get(rule.id, {}))


def _dialects(request: Request) -> tuple[tuple[Dialect, ...], Dialect | None]:
    """Return the known dialects, an added mapping first, and the one that every line must be of."""
    given = (request.mapping,) if request.mapping is not None else ()
    read = (remapped(mapping, request.config.map) for mapping in (*given, *shipped_mappings()))
    known = tuple(_with_classes(mapping, request.config) for mapping in read)
    if given and request.dialect is None and not known[0].recognise.keys:
        return known, known[0]
    if request.dialect is None:
        return known, None
    by_name = {mapping.dialect.name: mapping for mapping in known}
    if request.dialect not in by_name:
        hint = nearest(request.dialect, by_name)
        raise UsageError(f"no dialect {request.dialect!r}{hint}; use one of: {', '.join(sorted(by_name))}.")
    return known, by_name[request.dialect]


def _with_classes(mapping: Dialect, config: Config) -> Dialect:
    """Return a dialect whose labels may also name the configured classes of traffic."""
    return mapping.model_copy(update={"traffic_classes": (*mapping.traffic_classes, *config.traffic.classes)})


def _refuse_without_requests(files: list[FileCounts]) -> None:
    """Refuse a ledger none of whose lines is a request: it is not one that was quiet."""
    if files and not any(counts.lines for counts in files):
        raise InputError(f"{files[0].label}: is empty, like every other ledger here. There is nothing to analyze.")
    for counts in files:
        if counts.lines and counts.events == 0 and counts.duplicates == 0 and counts.quarantined == 0:
            raise InputError(
                f"{counts.label}: none of its {counts.lines:,} lines is a request of dialect {counts.dialect!r}. "
                "Map its fields in a mapping file, and pass it with --map."
            )


def _settings(request: Request, engine: DuckEngine) -> Settings:
    deadlines = request.config.deadlines
    origin = request.config.origin or "configuration"
    routes: dict[str, float] = {}
    for name, number in deadlines.route.items():
        if routes.setdefault(_route(name), number) != number:
            raise ConfigError(f"configuration {origin}: deadline_ms.route: lists {_route(name)} twice with different deadlines.")
    # A path says more than the name of all routes that do the same.
    by_column = {"tenant": deadlines.tenant, "model": deadlines.model, "route": dict(sorted(routes.items(), key=_is_name))}
    defaults = [
        DeadlineDefault(number, origin, column=column, value=value)
        for column, numbers in by_column.items()
        for value, number in numbers.items()
    ]
    if deadlines.default is not None:
        defaults.append(DeadlineDefault(deadlines.default, origin))
    defaults += [
        DeadlineDefault(mapping.assumed["deadline_ms"], f"assumed for dialect {name}", dialect=name)
        for name, mapping in engine.loader.mappings.items()
        if "deadline_ms" in mapping.assumed
    ]
    return Settings(
        since_us=request.span.since_us,
        until_us=request.span.until_us,
        deadlines=tuple(defaults),
        length_is_complete=request.config.length_is_complete,
        file_labels=engine.loader.labels(),
        routes=shipped_routes().with_own(request.config.routes.lists),
    )


def _route(name: str) -> str:
    """Return a configured route as routes are kept: without a query and a closing slash."""
    path = name.split("?", 1)[0]
    return path.rstrip("/") or path


def _is_name(item: tuple[str, float]) -> bool:
    return not item[0].startswith("/")


def _cannot_tell(mappings: Mapping[str, Dialect]) -> dict[str, str]:
    """Return rules that no dialect of the run can tell, with the reason."""
    reasons = [mapping.cannot_tell for mapping in mappings.values()]
    if not reasons:
        return {}
    return {rule: reason for rule, reason in reasons[0].items() if all(rule in other for other in reasons)}


def _loggable(mappings: Mapping[str, Dialect]) -> frozenset[str]:
    """Return the fields that every dialect of the run can be made to log."""
    logs = [frozenset(mapping.log) for mapping in mappings.values()]
    return frozenset.intersection(*logs) if logs else frozenset()


def configured_rules(request: Request) -> list[tuple[Rule, Values]]:
    """Return the chosen rules with the numbers that they take without any ledger."""
    every = request.rules if request.rules is not None else shipped_rules()
    given = _given(request, every)
    return [
        (rule, _values(rule, frozenset(), request.config, given)) for rule in choose(every, request.only, request.skip)
    ]

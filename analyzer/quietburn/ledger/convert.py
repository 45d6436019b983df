"""Convert raw tables to events in one SQL statement: units, translations, and what is not a value.

Values become columns here and nowhere else. Each value that is refused adds a predicate to the
checks, so that nothing turns NULL uncounted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from quietburn.common.columns import BY_NAME, SETTLED_AS, UNSETTLED, VERDICT_RESTS_ON, Kind
from quietburn.common.sql import any_of, literal, quote
from quietburn.dialects.mapping import Alternative, Mapping, scale
from quietburn.dialects.rawcolumns import ITEM, LINE_CHECK, RawColumns, RawKind
from quietburn.dialects.recognise import holds_text
from quietburn.ledger.classes import PROBE_AGENTS, traffic_class
from quietburn.ledger.fields import (
    Value,
    flag_value,
    is_written_as_text,
    number,
    numeric_value,
    text_value,
    translated_value,
)
from quietburn.ledger.times import TimeUnit, time_checks, time_us
from quietburn.records.reasons import FieldFault, LineFault

_OTHER_TYPE = frozenset({FieldFault.NOT_A_NUMBER, FieldFault.NOT_A_FLAG, FieldFault.NOT_TEXT, FieldFault.NOT_A_TIME})


@dataclass
class Conversion:
    """The statement's parts: events, and the predicates of what was refused or coerced.

    `columns` names what the events select yields; `field_faults` are (column, code, predicate);
    `line_faults` (code, predicate); predicates and select speak of the columns of a raw table as
    `staged` gives it.
    """

    staged: Callable[[str], str]
    columns: list[str] = field(default_factory=list)
    inner: str = ""
    outer: str = ""
    field_faults: list[tuple[str, FieldFault, str]] = field(default_factory=list)
    line_faults: list[tuple[LineFault, str]] = field(default_factory=list)
    coerced: list[str] = field(default_factory=list)
    naive_times: list[str] = field(default_factory=list)
    time_units: dict[TimeUnit, str] = field(default_factory=dict)
    invented: str = "FALSE"  # the line's attempt failed and reports 0 ms: what it says of its work is made up
    request_id: str = "CAST(NULL AS VARCHAR)"

    def select_from(self, source: str, *, faulty: bool) -> str:
        """Return the statement over a staged raw table or subquery; `faulty` that some of its values can't be read.

        Then it has the column `unreadable` besides `columns`, last.
        """
        told = f", CASE WHEN {self._unreadable} THEN TRUE END AS unreadable" if faulty else ""
        return f"SELECT {self.outer}{', unreadable' if faulty else ''} FROM (SELECT {self.inner}{told} FROM {source})"

    @property
    def _unreadable(self) -> str:
        """Return the predicate: a value that the verdict rests on was written as something that it can't be."""
        return any_of(
            predicate for name, code, predicate in self.field_faults if name in VERDICT_RESTS_ON and code in _OTHER_TYPE
        )


def build(mapping: Mapping, raw_columns: list[str], *, zone: str | None) -> Conversion:
    """Return the conversion of a raw table whose lines are of one dialect.

    `zone` is the time zone of times that name none (None: UTC is assumed).
    """
    keys = RawColumns(raw_columns)
    values: dict[str, Value] = {}
    result = Conversion(keys.staged)
    # The end first: a date until which to wait is counted from it.
    for name, ways in sorted(mapping.by_stored_name.items(), key=lambda item: item[0] != "ts_us"):
        value = _column(name, ways, keys, zone, result)
        if value is not None:
            values[name] = value
            keys.end_us = value.sql if name == "ts_us" else keys.end_us
        if name == "traffic" and value is not None and any(way.inferred for way in ways):
            values["traffic_source"] = _traffic_source(ways, keys, zone)
        if name in SETTLED_AS and value is not None:
            values[UNSETTLED[SETTLED_AS[name]][1]] = _key_of(name, ways, keys, zone)
    _add_private(values, keys, result)
    if "request_id" in values:
        result.request_id = values["request_id"].sql
    if mapping.has_time:
        checks = time_checks(mapping, keys, zone)
        result.line_faults += checks.faults
        result.naive_times += checks.naive
        result.time_units = {unit: any_of(predicates) for unit, predicates in checks.units.items()}
    _finish(values, keys, result, mapping)
    return result


def _column(name: str, ways: tuple[Alternative, ...], keys: RawColumns, zone: str | None, result: Conversion) -> Value | None:
    """Return one column over all its alternatives, noting faults on the way."""
    kind = BY_NAME[name].kind
    taken: list[str] = []  # predicates of the alternatives before: they had the say
    branches: list[Value] = []
    for way in ways:
        for value in _way(name, kind, way, keys, zone):
            if value.present == "FALSE":
                continue
            guard = "".join(f" AND NOT {before}" for before in taken)
            for code, predicate in value.faults:
                result.field_faults.append((SETTLED_AS.get(name, name), code, f"{value.present}{guard} AND {predicate}"))
            result.coerced += [f"{value.present}{guard} AND {predicate}" for predicate in value.coerced]
            branches.append(value)
            taken.append(value.present)
    if not branches:
        return None
    first = branches[0]
    # What a single way reads is NULL where its key is missing: it needs no guard.
    if first.present == "TRUE" or (len(branches) == 1 and not any(way.is_guarded for way in ways)):
        return first
    last = branches[-1]
    if all(value.is_null_if_absent for value in branches[:-1]) and (last.is_null_if_absent or last.present == "TRUE"):
        return Value("COALESCE(" + ", ".join(value.sql for value in branches) + ")", "TRUE")
    return Value("CASE " + " ".join(f"WHEN {v.present} THEN {v.sql}" for v in branches) + " END", "TRUE")


_NO_TEXT = "CAST(NULL AS VARCHAR)"


def _traffic_source(ways: tuple[Alternative, ...], keys: RawColumns, zone: str | None) -> Value:
    """Return what the traffic class was inferred from; nothing where the ledger's own label told it, which the view says."""
    found = [(value.present, way.inferred) for way in ways for value in _way("traffic", Kind.TEXT, way, keys, zone)]
    cases = " ".join(f"WHEN {present} THEN {literal(source) if source else _NO_TEXT}" for present, source in found)
    return Value(f"CASE {cases} END", "TRUE")


def _key_of(name: str, ways: tuple[Alternative, ...], keys: RawColumns, zone: str | None) -> Value:
    """Return the key that a duration without a unit came from: what settles its unit may differ from key to key."""
    kind, cases = BY_NAME[name].kind, ""
    for way in ways:
        read = [key for key in way.keys if keys.kinds(key)]
        for key, value in zip(read, _way(name, kind, way, keys, zone), strict=True):
            cases += f" WHEN {value.present} THEN {literal(key)}"
    return Value(f"CASE{cases} END", "TRUE")


def _way(name: str, kind: Kind, way: Alternative, keys: RawColumns, zone: str | None) -> list[Value]:
    condition = " AND ".join(holds_text(keys.text(key), values) for key, values in way.when.items())
    if way.value is not None:
        return [Value(literal(way.value), f"({condition})" if condition else "TRUE")]
    found = []
    for key in way.keys:
        if keys.kinds(key):
            value = _convert(name, kind, way, key, keys, zone)
            if way.absent or way.weak:
                value.present = f"({value.present} AND NOT {holds_text(keys.text(key), (*way.absent, *way.weak))})"
            if condition:
                value.present = f"({value.present} AND {condition})"
            value.is_null_if_absent &= not condition and not way.only and not way.absent and not way.weak
            found.append(value)
    if way.null is not None:
        absent = " AND ".join(f"NOT {keys.present(key)}" for key in way.keys)
        found.append(Value(literal(way.null), f"({absent}{' AND ' + condition if condition else ''})"))
    return found


def _convert(name: str, kind: Kind, way: Alternative, key: str, keys: RawColumns, zone: str | None) -> Value:
    present = keys.present(key)
    if way.only == "text":
        is_text = is_written_as_text(key, keys)
        present = is_text if is_text == "FALSE" else f"({keys.text(key)} IS NOT NULL AND {is_text})"
    elif way.only == "number":
        present = f"({number(key, keys)} IS NOT NULL)"
    if way.translate is not None:
        return translated_value(name, way.translate, key, keys)
    if kind is Kind.TEXT:
        return text_value(name, key, keys, present)
    if kind is Kind.FLAG:
        return flag_value(key, keys, present)
    if kind is Kind.TIME:
        text = keys.column(RawKind.STRING, key)
        empty = f" AND {text} IS DISTINCT FROM ''" if text else ""
        read = time_us(key, keys, zone)
        # A line whose end can't be placed is refused whole; a start alone costs the start.
        faults = [(FieldFault.NOT_A_TIME, f"({read}) IS NULL")] if name == "started_us" else []
        return Value(read, f"({present}{empty})", faults)
    return numeric_value(name, kind, key, keys, present, scale(name, way))


def _add_private(values: dict[str, Value], keys: RawColumns, result: Conversion) -> None:
    """Add what was made from a raw text, behind what the ledger says itself."""
    unreadable = keys.column(RawKind.PRIVATE, "answer_unreadable")
    if unreadable:
        result.field_faults.append(("answer_chars", FieldFault.NOT_TEXT, f"{unreadable} IS NOT NULL"))
    for name in ("prefix_fp", "prefix_noisy", "answer_chars"):
        made = keys.column(RawKind.PRIVATE, name)
        if made:
            values[name] = Value(f"COALESCE({values[name].sql}, {made})" if name in values else made, "TRUE")


_USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "actual_tokens")
_TIMINGS = ("latency_ms", "ttft_ms", "upstream_ms", "latency_unitless", "ttft_unitless", "upstream_unitless")
_MEASURED = ("latency_ms", "ttft_ms", "latency_unitless", "ttft_unitless")  # 0 is 0 in every unit


def _finish(values: dict[str, Value], keys: RawColumns, result: Conversion, mapping: Mapping) -> None:
    """Wrap the columns: invented zeros, parts over wholes, and the two ends of an attempt."""
    have = {name: quote("v_" + name) for name in values}
    final = dict(have)
    _inventions(values, final, result)
    _parts_and_wholes(values, final, result)
    _ends(values, final, have, result)
    if "traffic" in final or "user_agent" in final:
        _traffic(final, mapping)
    kept = ["line", *([LINE_CHECK] if keys.has_line_check else []), *([ITEM] if keys.has_item else [])]
    result.columns = [*kept, *final]
    made = [f"{result.invented} AS invented"]
    result.inner = ", ".join([*kept, *made, *(f"{value.sql} AS {quote('v_' + name)}" for name, value in values.items())])
    result.outer = ", ".join([*kept, *(f"{sql} AS {quote(name)}" for name, sql in final.items())])


def _inventions(values: dict[str, Value], final: dict[str, str], result: Conversion) -> None:
    """Make unknown what a failed attempt that reports 0 ms says of its usage and timings."""
    measured = [values[name] for name in _MEASURED if name in values]
    if not measured:
        return
    status = values.get("status")
    answered = f"({status.sql}) BETWEEN 200 AND 299" if status else "FALSE"
    zeros = " OR ".join(f"({value.sql}) = 0" for value in measured)
    result.invented = f"(COALESCE({answered}, FALSE) IS FALSE AND COALESCE({zeros}, FALSE))"
    for name in (*_USAGE, *_TIMINGS):
        if name in final:
            final[name] = f"CASE WHEN NOT invented THEN {final[name]} END"


def _parts_and_wholes(values: dict[str, Value], final: dict[str, str], result: Conversion) -> None:
    read = {name: f"({values[name].sql})" for name in values}
    made = {name: quote(f"v_{name}") for name in values}
    for part, whole in (("cached_tokens", "prompt_tokens"), ("reasoning_tokens", "completion_tokens")):
        if part in final and whole in final:
            apart = _CACHED_APART if part == "cached_tokens" and set(_TOTAL) <= set(final) else "FALSE"
            more = f"{{{part}}} > {{{whole}}} AND NOT COALESCE({apart}, FALSE)"
            result.field_faults.append((part, FieldFault.MORE_THAN_WHOLE, more.format_map(read)))
            final[part] = f"CASE WHEN NOT COALESCE({more.format_map(made)}, FALSE) THEN {final[part]} END"
    if set(_TOTAL) <= set(final):
        # It stays as it came: the view knows that such a line's tokens are unknown.
        apart = _CACHED_APART if "cached_tokens" in final else "FALSE"
        predicate = (_CONTRADICTS + f" AND NOT COALESCE({apart}, FALSE)").format_map(read)
        result.field_faults.append(("actual_tokens", FieldFault.TOTAL_CONTRADICTS_PARTS, predicate))


_TOTAL = ("actual_tokens", "prompt_tokens", "completion_tokens")
_CONTRADICTS = (
    "{actual_tokens} > 0 AND {prompt_tokens} + {completion_tokens} > 0 "
    "AND {actual_tokens} <> {prompt_tokens} + {completion_tokens}"
)
# Some count cached tokens beside those of the prompt: then the total has them too.
_CACHED_APART = "{cached_tokens} > 0 AND {actual_tokens} = {prompt_tokens} + {cached_tokens} + {completion_tokens}"


def _ends(values: dict[str, Value], final: dict[str, str], have: dict[str, str], result: Conversion) -> None:
    """Give each attempt that names its start both ends, and say which of them are known.

    What follows from an end and a latency alone is not stored: the view knows it.
    """
    end, start = have.get("ts_us"), have.get("started_us")
    latency = final.get("latency_ms", "CAST(NULL AS DOUBLE)")
    if start is None:
        return
    if end:
        first, second = values["started_us"], values["ts_us"]
        predicate = f"({second.sql}) < ({first.sql})"
        result.field_faults.append(("latency_ms", FieldFault.ENDS_BEFORE_START, predicate))
        both = f"{end} IS NOT NULL AND {start} IS NOT NULL"
        latency = f"CASE WHEN {both} THEN CASE WHEN {end} >= {start} THEN ({end} - {start}) / 1000.0 END ELSE {latency} END"
        final["latency_ms"] = latency
    end = end or "CAST(NULL AS BIGINT)"
    span = f"CAST(round(({latency}) * 1000) AS BIGINT)"
    final["ts_us"] = f"COALESCE({end}, {start} + {span}, {start})"
    # Ends that contradict each other (a clock was set) are both not known.
    sane = f"COALESCE({end} >= {start}, TRUE)"
    final["start_known"] = f"CASE WHEN {start} IS NOT NULL THEN {sane} END"
    final["end_known"] = f"CASE WHEN {start} IS NOT NULL THEN {sane} AND ({end} IS NOT NULL OR ({latency}) IS NOT NULL) END"


def _traffic(final: dict[str, str], mapping: Mapping) -> None:
    label = final.get("traffic", _NO_TEXT)
    if "traffic" in final:
        final["traffic"] = label = traffic_class(label, mapping.kept_traffic)
    agent = final.get("user_agent")
    if agent is None:
        return  # then every label is the ledger's own, which the view says
    probes = ", ".join(literal(name) for name in PROBE_AGENTS)
    is_probe = f"COALESCE({agent} IN ({probes}), FALSE)"
    final["traffic"] = f"COALESCE({label}, CASE WHEN {is_probe} THEN 'probe' END)"
    # The ledger's own label is not named: the same line would differ with the keys of the lines around it.
    told = final.get("traffic_source", _NO_TEXT)
    final["traffic_source"] = f"CASE WHEN {label} IS NOT NULL THEN {told} WHEN {is_probe} THEN 'user_agent' END"

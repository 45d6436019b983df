"""SQL for times: UTC microseconds from numbers of any unit and from ISO texts of any zone."""

from dataclasses import dataclass, field
from enum import StrEnum

from quietburn.common.limits import FIRST_S, LAST_S
from quietburn.common.sql import coalesce, literal
from quietburn.dialects.mapping import Mapping
from quietburn.dialects.rawcolumns import RawColumns, RawKind, raw_name
from quietburn.records.reasons import LineFault


class TimeUnit(StrEnum):
    """In what a number counts since 1970; told by its size."""

    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_SPANS = {unit: (FIRST_S * 1000**power, LAST_S * 1000**power) for power, unit in enumerate(TimeUnit)}
_DECIMAL = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_ISO = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
    r" ?(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
_ZONE = r"(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$"


def _decimal(key: str, keys: RawColumns) -> str:
    kinds = keys.kinds(key)
    parts = []
    if RawKind.DECIMAL in kinds:
        parts.append(kinds[RawKind.DECIMAL])
    if RawKind.STRING in kinds:
        text = f"trim({kinds[RawKind.STRING]})"
        parts.append(f"CASE WHEN regexp_full_match({text}, {literal(_DECIMAL)}) THEN TRY_CAST({text} AS DECIMAL(38,9)) END")
    return coalesce(parts) if parts else "CAST(NULL AS DECIMAL(38,9))"


def _number(key: str, keys: RawColumns) -> str:
    """Return the staged column of the key's number, as a decimal."""
    return keys.stage(0, raw_name("number", key), _decimal(key, keys))


def _unit(key: str, keys: RawColumns) -> str:
    """Return the staged column of the unit in which the key's number counts, NULL where it is no time in any."""
    number = _number(key, keys)
    cases = [f"WHEN {number} BETWEEN {first} AND {last} THEN {literal(unit)}" for unit, (first, last) in _SPANS.items()]
    return keys.stage(1, raw_name("unit", key), f"CASE {' '.join(cases)} END")


def time_us(key: str, keys: RawColumns, zone: str | None) -> str:
    """Return the staged column of UTC microseconds; the unit of a number is told by its magnitude, value by value."""
    number, unit = _number(key, keys), _unit(key, keys)
    scaled = {
        TimeUnit.SECONDS: _scaled_us(number, 1_000_000), TimeUnit.MILLISECONDS: _scaled_us(number, 1_000),
        TimeUnit.MICROSECONDS: _scaled_us(number, 1), TimeUnit.NANOSECONDS: f"CAST(floor({number}) AS BIGINT) // 1000",
    }
    cases = [f"WHEN {literal(name)} THEN {sql}" for name, sql in scaled.items()]
    text = keys.column(RawKind.STRING, key)
    placed = f"CASE {unit} {' '.join(cases)} END"
    if text:
        read = keys.stage(1, raw_name("iso", key), _iso_us(text, zone))
        placed = f"COALESCE({placed}, CASE WHEN {read} BETWEEN {FIRST_S}000000 AND {LAST_S}000000 THEN {read} END)"
    return keys.stage(2, raw_name("us", key), placed)


def _scaled_us(number: str, unit: int) -> str:
    """Return a decimal as microseconds, rounded half up; the cases around it keep it from overflowing."""
    return f"CAST(floor({number} * {unit} + 0.5) AS BIGINT)"


def _normal_iso(text: str) -> str:
    """Return ISO text as DuckDB reads it: point, six decimals, a zone with a colon."""
    clean = f"regexp_replace(replace(upper(trim({text})), ',', '.'), '([.][0-9]{{6}})[0-9]+', '\\1')"
    clean = f"regexp_replace({clean}, ' ?(Z|UTC)$', '+00:00')"
    return f"regexp_replace({clean}, ' ?([+-][0-9]{{2}})([0-9]{{2}})$', '\\1:\\2')"


def _iso_us(text: str, zone: str | None) -> str:
    shaped = f"regexp_full_match(trim({text}), {literal(_ISO)})"
    with_zone = f"epoch_us(TRY_CAST({_normal_iso(text)} AS TIMESTAMPTZ))"
    if zone in (None, "UTC"):
        return f"(CASE WHEN {shaped} THEN {with_zone} END)"
    local = f"TRY_CAST({_normal_iso(text)} AS TIMESTAMP)"
    at_zone = f"timezone({literal(zone)}, {local})"
    unclear = _unclear(zone, local, at_zone)
    naive = f"CASE WHEN NOT ({unclear}) THEN epoch_us({at_zone}) END"
    return f"(CASE WHEN {shaped} THEN CASE WHEN {_has_zone(text)} THEN {with_zone} ELSE {naive} END END)"


def _has_zone(text: str) -> str:
    return f"regexp_matches(substr(trim({text}), 11), {literal(_ZONE)})"


def _unclear(zone: str, local: str, at_zone: str) -> str:
    """Return the predicate: a local time that never was, or was twice (an hour on or back it stands again)."""
    name = literal(zone)
    back = f"timezone({name}, {at_zone})"
    shifts = [f"timezone({name}, {at_zone} {sign} INTERVAL {minutes} MINUTE) = {local}"
              for sign in "+-" for minutes in (30, 60)]
    return f"{back} IS DISTINCT FROM {local} OR {' OR '.join(shifts)}"


@dataclass
class TimeChecks:
    """Why lines can't be placed in time, and where a zone was assumed."""

    faults: list[tuple[LineFault, str]] = field(default_factory=list)
    naive: list[str] = field(default_factory=list)
    units: dict[TimeUnit, list[str]] = field(default_factory=dict)  # predicates: this line's time is in the unit


def time_checks(mapping: Mapping, keys: RawColumns, zone: str | None) -> TimeChecks:
    """Return the checks of the key that places each line: the first that has a value."""
    names = [key for key in mapping.time_sources if keys.kinds(key)]
    if not names:
        return TimeChecks([(LineFault.NO_TIME, "TRUE")])
    given = {key: f"({keys.present(key)}{_not_empty(key, keys)})" for key in names}
    checks = TimeChecks([(LineFault.NO_TIME, "NOT (" + " OR ".join(given.values()) + ")")])
    before: list[str] = []
    for key in names:
        here = " AND ".join([given[key], *before])
        unplaced = f"{time_us(key, keys, zone)} IS NULL"
        text = keys.column(RawKind.STRING, key)
        number = _number(key, keys)
        ambiguous = _ambiguous(text, zone) if text else "FALSE"
        readable = f"({number} IS NOT NULL{_readable_text(text)})"
        checks.faults += [
            (LineFault.TIME_AMBIGUOUS, f"{here} AND {unplaced} AND {ambiguous}"),
            (LineFault.TIME_OUT_OF_RANGE, f"{here} AND {unplaced} AND NOT {ambiguous} AND {readable}"),
            (LineFault.TIME_UNREADABLE, f"{here} AND {unplaced} AND NOT {readable}"),
        ]
        if text:
            checks.naive.append(f"{here} AND regexp_full_match(trim({text}), {literal(_ISO)}) AND NOT {_has_zone(text)}")
        for unit in _SPANS:
            checks.units.setdefault(unit, []).append(f"{here} AND {_unit(key, keys)} = {literal(unit)}")
        before.append(f"NOT {given[key]}")
    return checks


def _not_empty(key: str, keys: RawColumns) -> str:
    text = keys.column(RawKind.STRING, key)
    return f" AND {text} IS DISTINCT FROM ''" if text else ""


def _readable_text(text: str | None) -> str:
    if text is None:
        return ""
    return f" OR COALESCE(regexp_full_match(trim({text}), {literal(_DECIMAL)}) OR ({_any_iso(text)}), FALSE)"


def _any_iso(text: str) -> str:
    return f"regexp_full_match(trim({text}), {literal(_ISO)}) AND TRY_CAST({_normal_iso(text)} AS TIMESTAMPTZ) IS NOT NULL"


def _ambiguous(text: str, zone: str | None) -> str:
    if zone in (None, "UTC"):
        return "FALSE"
    local = f"TRY_CAST({_normal_iso(text)} AS TIMESTAMP)"
    unclear = _unclear(zone or "UTC", local, f"timezone({literal(zone or 'UTC')}, {local})")
    shaped = f"regexp_full_match(trim({text}), {literal(_ISO)})"
    return f"({shaped} AND NOT {_has_zone(text)} AND {local} IS NOT NULL AND ({unclear}))"

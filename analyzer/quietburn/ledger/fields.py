"""SQL that casts and checks texts, flags and numbers."""

from dataclasses import dataclass, field

from quietburn.common.columns import BY_NAME, NO_ERROR, SETTLED_AS, Kind, ceiling
from quietburn.common.sql import Scalar, coalesce, literal
from quietburn.dialects.rawcolumns import RawColumns, RawKind
from quietburn.ledger.classes import agent_class
from quietburn.records.reasons import FieldFault

_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"


@dataclass
class Value:
    """SQL for one column: its value, whether it was there at all, and what speaks against it."""

    sql: str
    present: str
    faults: list[tuple[FieldFault, str]] = field(default_factory=list)
    coerced: list[str] = field(default_factory=list)
    is_null_if_absent: bool = False  # and only then: the next way gets its turn where this one is NULL


def is_written_as_text(key: str, keys: RawColumns) -> str:
    """Return the predicate: the key holds a text that is not a number."""
    column = keys.column(RawKind.STRING, key)
    if column is None:
        return "FALSE"
    return f"({column} IS NOT NULL AND NOT regexp_full_match(trim({column}), {literal(_NUMBER)}))"


def translated_value(name: str, table: dict[str, Scalar], key: str, keys: RawColumns) -> Value:
    """Return what a table of translations makes of a text; other texts are as if absent, an object or a list is refused."""
    text = keys.path(key) if name in ("route", "path") else keys.text(key)
    cases = " ".join(f"WHEN {literal(given)} THEN {literal(value)}" for given, value in table.items())
    listed = ", ".join(literal(given) for given in table)
    present = f"COALESCE({text} IN ({listed}), FALSE)"
    sql, other = f"CASE {text} {cases} END", keys.column(RawKind.OTHER, key)
    if not other:
        return Value(sql, present, is_null_if_absent=True)
    return Value(sql, f"({present} OR {other} IS NOT NULL)", [(FieldFault.NOT_TEXT, f"{other} IS NOT NULL")])


def text_value(name: str, key: str, keys: RawColumns, present: str) -> Value:
    """Return a text; of some columns only a word of it is kept."""
    text = keys.path(key) if name in ("route", "path") else keys.text(key)
    if name == "user_agent":
        text = agent_class(text)
    other = keys.column(RawKind.OTHER, key)
    if name == "content_type":
        text = f"lower(NULLIF(regexp_extract({text}, '^[A-Za-z]+/[A-Za-z0-9.+-]{{1,60}}'), ''))"
    if name in _CATEGORIES:
        text = _category(text)
    if name == "error":
        return _error(text, keys.text(key), present, other)
    if not other:
        # A placeholder is as good as nothing: the next way to the column gets its turn.
        return Value(text, f"({text} IS NOT NULL AND {present})", is_null_if_absent=True)
    return Value(text, present, [(FieldFault.NOT_TEXT, f"{other} IS NOT NULL")])


# Columns of which only the kind is kept: their free text may quote a prompt.
_CATEGORIES = ("error", "reason", "finish_reason")
_COMMON_WORDS = "'stop', 'length', 'tool_calls', 'end_turn', 'timeout'"  # spared the regular expression
_WORD = "[A-Za-z][A-Za-z_.-]{0,39}|[0-9]{1,4}"


def _error(text: str, written: str, present: str, other: str | None) -> Value:
    """Return the kind of an error: an object or `true` is one, whatever it says; words that mean none are none."""
    none = ", ".join(literal(word) for word in NO_ERROR)
    cases = f"WHEN lower(trim({written})) IN ({none}) THEN NULL WHEN {text} = 'true' THEN 'unspecified'"
    if other:
        cases = f"WHEN {other} THEN 'unspecified' {cases}"
    said = f"({text} IS NOT NULL OR {other})" if other else f"{text} IS NOT NULL"
    # A placeholder is as good as nothing here too.
    return Value(f"CASE {cases} ELSE {text} END", f"({said} AND {present})")


def _category(text: str) -> str:
    """Return a free text as a word: itself where it is one, else what it speaks of, else `other`."""
    return f"""CASE WHEN {text} IN ({_COMMON_WORDS}) THEN {text} WHEN regexp_full_match({text}, '{_WORD}') THEN {text}
        WHEN lower({text}) LIKE '%timeout%' OR lower({text}) LIKE '%timed out%' THEN 'timeout'
        WHEN lower({text}) LIKE '%connect%' OR lower({text}) LIKE '%refused%' THEN 'connect'
        WHEN {text} IS NOT NULL THEN 'other' END"""


def flag_value(key: str, keys: RawColumns, present: str) -> Value:
    """Return a flag, also from `"true"`, `"false"`, 1 and 0, which are counted as coerced."""
    kinds = keys.kinds(key)
    parts, known, coerced = [], [], []
    if RawKind.FLAG in kinds:
        parts.append(kinds[RawKind.FLAG])
        known.append(f"{kinds[RawKind.FLAG]} IS NOT NULL")
    if RawKind.STRING in kinds:
        text = f"lower(trim({kinds[RawKind.STRING]}))"
        parts.append(f"CASE {text} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END")
        coerced.append(f"COALESCE({text} IN ('true', 'false'), FALSE)")
        known += [coerced[0], f"COALESCE({text} = '', FALSE)"]
    if RawKind.NUMBER in kinds:
        number = kinds[RawKind.NUMBER]
        parts.append(f"CASE {number} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END")
        coerced.append(f"COALESCE({number} IN (0, 1), FALSE)")
        known.append(coerced[-1])
    fault = f"NOT ({' OR '.join(known)})" if known else "TRUE"
    value = coalesce(parts) if parts else "CAST(NULL AS BOOLEAN)"
    faults = [] if set(kinds) == {RawKind.FLAG} else [(FieldFault.NOT_A_FLAG, fault)]
    return Value(value, present, faults, coerced)


def number(key: str, keys: RawColumns) -> str:
    """Return the key's number as a double: as written, or from a decimal string."""
    kinds = keys.kinds(key)
    parts = []
    if RawKind.NUMBER in kinds:
        parts.append(kinds[RawKind.NUMBER])
    if RawKind.STRING in kinds:
        text = f"trim({kinds[RawKind.STRING]})"
        parts.append(f"CASE WHEN regexp_full_match({text}, {literal(_NUMBER)}) THEN TRY_CAST({text} AS DOUBLE) END")
    return coalesce(parts) if parts else "CAST(NULL AS DOUBLE)"


def numeric_value(name: str, kind: Kind, key: str, keys: RawColumns, present: str, factor: float) -> Value:
    """Return a number within what its kind may hold, in the canonical unit."""
    written, text = number(key, keys), keys.column(RawKind.STRING, key)
    scaled = written if factor == 1.0 else f"({written} * {factor!r})"
    read = written
    if text and name == "retry_after_s":
        until = _seconds_until(text, keys.end_us)
        scaled, read = f"COALESCE({scaled}, {until})", f"COALESCE({written}, {until})"
    if text and kind is Kind.DURATION and name not in SETTLED_AS:
        told = keys.suffixed(key) if BY_NAME[name].unit == "ms" else f"({keys.suffixed(key)} / 1000.0)"
        scaled, read = f"COALESCE({scaled}, {told})", f"COALESCE({read}, {told})"
    limits, faults = _limits(kind, BY_NAME[name].unit, scaled)
    coerced, empty = [], ""
    if text:
        coerced.append(f"{text} IS NOT NULL AND {written} IS NOT NULL")
        empty = f" AND trim(COALESCE({text}, 'x')) NOT IN ('', '-')"  # how loggers write that there is none
    if set(keys.kinds(key)) - {RawKind.NUMBER}:
        # Of a duration without a unit, a text is the business of the column that takes texts with units.
        is_other = f" AND NOT {is_written_as_text(key, keys)}" if name in SETTLED_AS else ""
        faults.append((FieldFault.NOT_A_NUMBER, f"{read} IS NULL{empty}{is_other}"))
    sql = f"CASE WHEN {' AND '.join(limits)} THEN {scaled} END"
    if name in ("deadline_ms", "deadline_unitless"):
        # A deadline of nothing is how loggers write that there is none.
        faults.append((FieldFault.OUT_OF_RANGE, f"{scaled} = 0"))
        sql = f"NULLIF({sql}, 0)"
    return Value(sql, present, faults, coerced)


def _limits(kind: Kind, unit: str, scaled: str) -> tuple[list[str], list[tuple[FieldFault, str]]]:
    """Return what must hold for a number of the kind, and the faults of one for which it doesn't."""
    finite, most = f"isfinite({scaled})", ceiling(kind, unit)
    limits = [finite, f"abs({scaled}) <= {most!r}"]
    faults: list[tuple[FieldFault, str]] = [
        (FieldFault.NOT_FINITE, f"NOT {finite}"),
        (FieldFault.OUT_OF_RANGE, f"{finite} AND abs({scaled}) > {most!r}"),
    ]
    if kind is not Kind.NUMBER:
        limits.append(f"{scaled} >= 0")
        faults.append((FieldFault.NEGATIVE, f"{finite} AND {scaled} < 0"))
    if kind is Kind.COUNT:
        limits.append(f"{scaled} = floor({scaled})")
        faults.append((FieldFault.NOT_INTEGRAL, f"{finite} AND {scaled} >= 0 AND {scaled} <> floor({scaled})"))
    return limits, faults


def _seconds_until(text: str, end_us: str) -> str:
    """Return the seconds from an attempt's end to an HTTP date (RFC 9110, 10.2.3: Retry-After); one that is past asks for 0."""
    date = f"TRY_STRPTIME(trim({text}), '%a, %d %b %Y %H:%M:%S GMT')"
    return f"CASE WHEN {date} IS NOT NULL THEN greatest(0.0, epoch({date}) - ({end_us}) / 1000000.0) END"



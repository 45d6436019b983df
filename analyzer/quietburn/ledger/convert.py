"""One SQL statement from raw tables to events: units, translations, and what is not a value.

Whatever way a line was read, its values become columns here and nowhere else. Each value that
is refused adds a predicate to the checks, so that nothing turns NULL uncounted.
"""

from dataclasses import dataclass, field

from quietburn.ledger.events import BY_NAME, Kind
from quietburn.ledger.mapping import Alternative, Mapping, Scalar, scale
from quietburn.ledger.raw import LINE_CHECK, RawKind, raw_name
from quietburn.ledger.reasons import FieldFault, LineFault

# The span in which a number is taken for a time, in seconds: 2015-01-01 to 2100-01-01.
_FIRST_S, _LAST_S = 1_420_070_400, 4_102_444_800
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_DECIMAL = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"  # what the strict reader takes in a time's string
_ISO = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
    r" ?(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
_ZONE = r"(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$"
_PROBE_AGENTS = ("kube-probe", "GoogleHC", "ELB-HealthChecker", "Amazon-Route53-Health-Check-Service", "Consul Health Check")


@dataclass
class Conversion:
    """The statement's parts: events, and the predicates of what was refused or coerced.

    `columns` names what the events select yields; `field_faults` are (column, code, predicate);
    `line_faults` (code, predicate); predicates and select speak of a raw table's columns.

    `proofs` are aggregates that are true for a raw table in which nothing can be refused or
    coerced and every time is in seconds; then `trusting`, built without checks, gives the same
    events for less. None where no such proof is known.
    """

    columns: list[str] = field(default_factory=list)
    inner: str = ""
    outer: str = ""
    field_faults: list[tuple[str, FieldFault, str]] = field(default_factory=list)
    line_faults: list[tuple[LineFault, str]] = field(default_factory=list)
    coerced: list[str] = field(default_factory=list)
    naive_times: list[str] = field(default_factory=list)
    proofs: list[str] | None = field(default_factory=list)
    trusting: "Conversion | None" = None

    def prove(self, *aggregates: str) -> None:
        """Add what must hold of the whole table for it to be clean."""
        if self.proofs is not None:
            self.proofs += aggregates

    def select_from(self, source: str) -> str:
        """Return the statement over a raw table or subquery."""
        return f"SELECT {self.outer} FROM (SELECT {self.inner} FROM {source})"


@dataclass
class _Value:
    """SQL for one column: its value, whether it was there at all, and what speaks against it."""

    sql: str
    present: str
    faults: list[tuple[FieldFault, str]] = field(default_factory=list)
    coerced: list[str] = field(default_factory=list)
    proof: list[str] | None = field(default_factory=list)  # aggregates that show there is no fault


def quote(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    """Return an SQL literal."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


class _Keys:
    """The raw columns that a table has, as SQL by key; `trusted` that their values need no check."""

    def __init__(self, raw_columns: list[str], *, trusted: bool = False) -> None:
        self._names = set(raw_columns)
        self.trusted = trusted

    @property
    def has_line_check(self) -> bool:
        return LINE_CHECK in self._names

    def column(self, kind: RawKind, key: str) -> str | None:
        name = raw_name(kind, key)
        return quote(name) if name in self._names else None

    def kinds(self, key: str) -> dict[RawKind, str]:
        found = {kind: self.column(kind, key) for kind in RawKind if kind is not RawKind.PRIVATE}
        return {kind: sql for kind, sql in found.items() if sql is not None}

    def present(self, key: str) -> str:
        columns = list(self.kinds(key).values())
        if not columns:
            return "FALSE"
        return "(" + " OR ".join(f"{sql} IS NOT NULL" for sql in columns) + ")"

    def text(self, key: str) -> str:
        """Return the key's value as text, NULL where it holds none or an empty one."""
        kinds = self.kinds(key)
        parts = [_without_placeholder(kinds[RawKind.STRING])] if RawKind.STRING in kinds else []
        if RawKind.NUMBER_TEXT in kinds:
            parts.append(kinds[RawKind.NUMBER_TEXT])
        if RawKind.INTEGER in kinds:
            parts.append(f"CAST({kinds[RawKind.INTEGER]} AS VARCHAR)")
        if RawKind.FLAG in kinds:
            parts.append(f"CAST({kinds[RawKind.FLAG]} AS VARCHAR)")
        return _coalesce(parts)


# What loggers write where there is nothing; as an id it would make one request of a whole night.
_PLACEHOLDERS = ("", "-", "null", "NULL", "none", "None")


def _without_placeholder(text: str) -> str:
    listed = ", ".join(literal(placeholder) for placeholder in _PLACEHOLDERS)
    return f"CASE WHEN strlen({text}) > 4 THEN {text} WHEN {text} NOT IN ({listed}) THEN {text} END"


def _coalesce(parts: list[str]) -> str:
    if not parts:
        return "CAST(NULL AS VARCHAR)"
    return parts[0] if len(parts) == 1 else "COALESCE(" + ", ".join(parts) + ")"


def recognises(mapping: Mapping, raw_columns: list[str]) -> str:
    """Return the predicate over a raw table: this line is of the dialect."""
    keys = _Keys(raw_columns)
    wanted = mapping.recognise
    parts = [keys.present(key) for key in wanted.all]
    if wanted.any:
        found = [keys.present(key) for key in wanted.any if keys.kinds(key)]
        parts.append("(" + " OR ".join(found) + ")" if found else "FALSE")
    parts += [f"NOT {keys.present(key)}" for key in wanted.none if keys.kinds(key)]
    parts += [_holds(keys, key, values) for key, values in wanted.values.items()]
    return " AND ".join(parts) or "TRUE"


def _holds(keys: _Keys, key: str, values: tuple[str, ...]) -> str:
    listed = ", ".join(literal(value) for value in values)
    return f"COALESCE({keys.text(key)} IN ({listed}), FALSE)"


def build(mapping: Mapping, raw_columns: list[str], *, zone: str | None) -> Conversion:
    """Return the conversion of a raw table whose lines are of one dialect.

    `zone` is the time zone of times that name none (None: UTC is assumed).
    """
    result = _build(mapping, _Keys(raw_columns), zone)
    if result.proofs is not None:
        result.trusting = _build(mapping, _Keys(raw_columns, trusted=True), zone)
    return result


def _build(mapping: Mapping, keys: "_Keys", zone: str | None) -> Conversion:
    values: dict[str, str] = {}
    result = Conversion()
    for name, ways in mapping.by_stored_name.items():
        value = _column(name, ways, keys, zone, result)
        if value is not None:
            values[name] = value
    _add_private(values, keys)
    _line_faults(mapping, keys, zone, result)
    _finish(values, keys, result)
    return result


def _column(name: str, ways: tuple[Alternative, ...], keys: _Keys, zone: str | None, result: Conversion) -> str | None:
    """Return the SQL of one column over all its alternatives, noting faults on the way."""
    kind = BY_NAME[name].kind
    taken: list[str] = []  # predicates of the alternatives before: they had the say
    branches: list[tuple[str, str]] = []
    for way in ways:
        for value in _way(name, kind, way, keys, zone):
            if value.present == "FALSE":
                continue
            if value.proof is None:
                result.proofs = None
            else:
                result.prove(*value.proof)
            guard = "".join(f" AND NOT {before}" for before in taken)
            for code, predicate in value.faults:
                result.field_faults.append((name, code, f"{value.present}{guard} AND {predicate}"))
            result.coerced += [f"{value.present}{guard} AND {predicate}" for predicate in value.coerced]
            branches.append((value.present, value.sql))
            taken.append(value.present)
    if not branches:
        return None
    first_present, first_sql = branches[0]
    # What a single way reads is NULL where its key is missing: it needs no guard.
    if first_present == "TRUE" or (len(branches) == 1 and not any(way.when or way.only or way.null for way in ways)):
        return first_sql
    return "CASE " + " ".join(f"WHEN {present} THEN {sql}" for present, sql in branches) + " END"


def _way(name: str, kind: Kind, way: Alternative, keys: _Keys, zone: str | None) -> list[_Value]:
    condition = " AND ".join(_holds(keys, key, values) for key, values in way.when.items())
    if way.value is not None:
        return [_Value(literal(way.value), f"({condition})" if condition else "TRUE")]
    found = []
    for key in way.sources:
        if keys.kinds(key):
            value = _convert(name, kind, way, key, keys, zone)
            if condition:
                value.present = f"({value.present} AND {condition})"
            found.append(value)
    if way.null is not None:
        absent = " AND ".join(f"NOT {keys.present(key)}" for key in way.sources)
        found.append(_Value(literal(way.null), f"({absent}{' AND ' + condition if condition else ''})"))
    return found


def _convert(name: str, kind: Kind, way: Alternative, key: str, keys: _Keys, zone: str | None) -> _Value:
    present = keys.present(key)
    if way.only == "text":
        present = f"({keys.text(key)} IS NOT NULL AND {_is_written_as_text(key, keys)})"
    elif way.only == "number":
        number = _number(key, keys)
        present = f"({number} IS NOT NULL)"
    if way.translate is not None:
        return _translated(name, way.translate, key, keys)
    if kind is Kind.TEXT:
        return _text(name, key, keys, present)
    if kind is Kind.FLAG:
        return _flag(key, keys, present)
    if kind is Kind.TIME:
        text = keys.column(RawKind.STRING, key)
        empty = f" AND {text} IS DISTINCT FROM ''" if text else ""
        read = _time(key, keys, zone)
        # A line whose end can't be placed is refused whole; a start alone costs the start.
        faults = [(FieldFault.NOT_A_TIME, f"({read}) IS NULL")] if name == "started_us" else []
        return _Value(read, f"({present}{empty})", faults, proof=_time_proof(key, keys))
    return _numeric(name, kind, key, keys, present, scale(name, way))


def _is_written_as_text(key: str, keys: _Keys) -> str:
    column = keys.column(RawKind.STRING, key)
    if column is None:
        return "FALSE"
    return f"({column} IS NOT NULL AND NOT regexp_full_match(trim({column}), {literal(_NUMBER)}))"


def _translated(name: str, table: dict[str, Scalar], key: str, keys: _Keys) -> _Value:
    text = _without_query(keys.text(key)) if name == "route" else keys.text(key)
    cases = " ".join(f"WHEN {literal(given)} THEN {literal(value)}" for given, value in table.items())
    listed = ", ".join(literal(given) for given in table)
    return _Value(f"CASE {text} {cases} END", f"COALESCE({text} IN ({listed}), FALSE)")


def _without_query(route: str) -> str:
    """Return a route without query and closing slash, since both name the same route."""
    path = f"split_part({route}, '?', 1)"
    cut = f"CASE WHEN {path} IN ('', '/') THEN NULLIF({path}, '') ELSE rtrim({path}, '/') END"
    return f"CASE WHEN contains({route}, '?') OR suffix({route}, '/') THEN {cut} ELSE {route} END"


def _text(name: str, key: str, keys: _Keys, present: str) -> _Value:
    text = keys.text(key)
    if name == "route":
        text = _without_query(text)
    elif name == "user_agent":
        text = f"NULLIF(regexp_extract({text}, '^[A-Za-z][A-Za-z0-9 ._-]*'), '')"
    other = keys.column(RawKind.OTHER, key)
    if name in _CATEGORIES:
        text = _category(text)
    if name == "error":
        return _error(text, present, other)
    if not other:
        # A placeholder is as good as nothing: the next way to the column gets its turn.
        return _Value(text, f"({text} IS NOT NULL AND {present})")
    return _Value(text, present, [(FieldFault.NOT_TEXT, f"{other} IS NOT NULL")], proof=None)


# Columns of which only the kind is kept: their free text may quote a prompt.
_CATEGORIES = ("error", "reason", "finish_reason")
_COMMON_WORDS = "'stop', 'length', 'tool_calls', 'end_turn', 'timeout'"  # spared the regular expression
_WORD = "[A-Za-z][A-Za-z_.-]{0,39}|[0-9]{1,4}"


def _error(text: str, present: str, other: str | None) -> _Value:
    """Return the kind of an error: an object or `true` is one, whatever it says; `false` and 0 are none."""
    cases = f"WHEN {text} IN ('false', '0') THEN NULL WHEN {text} = 'true' THEN 'unspecified'"
    if other:
        cases = f"WHEN {other} THEN 'unspecified' {cases}"
    return _Value(f"CASE {cases} ELSE {text} END", present, proof=None if other else [])


def _category(text: str) -> str:
    """Return a free text as a word: itself where it is one, else what it speaks of, else `other`."""
    return f"""CASE WHEN {text} IN ({_COMMON_WORDS}) THEN {text} WHEN regexp_full_match({text}, '{_WORD}') THEN {text}
        WHEN lower({text}) LIKE '%timeout%' OR lower({text}) LIKE '%timed out%' THEN 'timeout'
        WHEN lower({text}) LIKE '%connect%' OR lower({text}) LIKE '%refused%' THEN 'connect'
        WHEN {text} IS NOT NULL THEN 'other' END"""


def _flag(key: str, keys: _Keys, present: str) -> _Value:
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
    value = _coalesce(parts) if parts else "CAST(NULL AS BOOLEAN)"
    only_flags = set(kinds) == {RawKind.FLAG}
    return _Value(value, present, [(FieldFault.NOT_A_FLAG, fault)], coerced, [] if only_flags else None)


def _number(key: str, keys: _Keys) -> str:
    """Return the key's number as a double: as written, or from a decimal string."""
    kinds = keys.kinds(key)
    parts = []
    if RawKind.NUMBER in kinds:
        parts.append(kinds[RawKind.NUMBER])
    if RawKind.INTEGER in kinds:
        parts.append(f"CAST({kinds[RawKind.INTEGER]} AS DOUBLE)")
    if RawKind.STRING in kinds:
        text = f"trim({kinds[RawKind.STRING]})"
        parts.append(f"CASE WHEN regexp_full_match({text}, {literal(_NUMBER)}) THEN TRY_CAST({text} AS DOUBLE) END")
    return _coalesce(parts) if parts else "CAST(NULL AS DOUBLE)"


def _numeric(name: str, kind: Kind, key: str, keys: _Keys, present: str, factor: float) -> _Value:
    written = _number(key, keys)
    number = written if factor == 1.0 else f"({written} * {factor!r})"
    if keys.trusted:
        return _Value(number, present)
    finite = f"isfinite({number})"
    unit = BY_NAME[name].unit
    faults: list[tuple[FieldFault, str]] = [(FieldFault.NOT_FINITE, f"NOT {finite}")]
    limits = [finite]
    most = ceiling(kind, unit)
    faults.append((FieldFault.OUT_OF_RANGE, f"{finite} AND abs({number}) > {most!r}"))
    limits.append(f"abs({number}) <= {most!r}")
    if kind is not Kind.NUMBER:
        faults.append((FieldFault.NEGATIVE, f"{finite} AND {number} < 0"))
        limits.append(f"{number} >= 0")
    if kind is Kind.COUNT:
        faults.append((FieldFault.NOT_INTEGRAL, f"{finite} AND {number} >= 0 AND {number} <> floor({number})"))
        limits.append(f"{number} = floor({number})")
    text = keys.column(RawKind.STRING, key)
    coerced = []
    empty = ""
    if text:
        coerced.append(f"{text} IS NOT NULL AND {written} IS NOT NULL")
        empty = f" AND trim(COALESCE({text}, 'x')) <> ''"
    if set(keys.kinds(key)) - {RawKind.NUMBER, RawKind.INTEGER}:
        faults.append((FieldFault.NOT_A_NUMBER, f"{written} IS NULL{empty}"))
    sql = f"CASE WHEN {' AND '.join(limits)} THEN {number} END"
    if name == "deadline_ms":
        # A deadline of nothing is how loggers write that there is none.
        faults.append((FieldFault.OUT_OF_RANGE, f"{number} = 0"))
        sql = f"NULLIF({sql}, 0)"
    return _Value(sql, present, faults, coerced, _numeric_proof(name, kind, key, keys, number))


_WEEK_MS = 7 * 86_400_000.0


def ceiling(kind: Kind, unit: str) -> float:
    """Return the largest magnitude that a value may have: what lies beyond is another unit or no measurement.

    Durations: a week (an epoch time given as a deadline lies beyond). Counts: 2^53, up to which a
    double holds every integer.
    """
    if kind is Kind.PERCENT:
        return 100.0
    if kind is Kind.COUNT:
        return 2.0**53
    return _WEEK_MS / 1000 if unit == "s" else _WEEK_MS


def _numeric_proof(name: str, kind: Kind, key: str, keys: _Keys, number: str) -> list[str] | None:
    """Return aggregates that are true when every number of the table is one of the kind.

    DuckDB sorts NaN above infinity, so a finite maximum rules out both.
    """
    if set(keys.kinds(key)) != {RawKind.NUMBER}:
        return None
    most = ceiling(kind, BY_NAME[name].unit)
    lowest = f">= {-most!r}" if kind is Kind.NUMBER else "> 0" if name == "deadline_ms" else ">= 0"
    proof = [f"min({number}) {lowest}", f"max({number}) <= {most!r}"]
    return [*proof, f"NOT bool_or({number} <> floor({number}))"] if kind is Kind.COUNT else proof


def _time_proof(key: str, keys: _Keys) -> list[str] | None:
    """Return aggregates that are true when every time of the table is a number of seconds."""
    kinds = keys.kinds(key)
    if set(kinds) != {RawKind.DECIMAL}:
        return None
    return [f"min({kinds[RawKind.DECIMAL]}) >= {_FIRST_S}", f"max({kinds[RawKind.DECIMAL]}) <= {_LAST_S}"]


def _decimal(key: str, keys: _Keys) -> str:
    kinds = keys.kinds(key)
    parts = []
    if RawKind.DECIMAL in kinds:
        parts.append(kinds[RawKind.DECIMAL])
    if RawKind.INTEGER in kinds:
        parts.append(f"CAST({kinds[RawKind.INTEGER]} AS DECIMAL(38,9))")
    if RawKind.STRING in kinds:
        text = f"trim({kinds[RawKind.STRING]})"
        parts.append(f"CASE WHEN regexp_full_match({text}, {literal(_DECIMAL)}) THEN TRY_CAST({text} AS DECIMAL(38,9)) END")
    return _coalesce(parts) if parts else "CAST(NULL AS DECIMAL(38,9))"


def _time(key: str, keys: _Keys, zone: str | None) -> str:
    """Return UTC microseconds; the unit of a number is told by its magnitude, value by value."""
    number = _decimal(key, keys)
    # A double holds seconds and milliseconds of this span to a quarter of a microsecond.
    if keys.trusted:
        return _scaled_us(number, 1_000_000)
    cases = [
        f"WHEN {number} BETWEEN {_FIRST_S * per_second} AND {_LAST_S * per_second} THEN {_scaled_us(number, unit)}"
        for unit, per_second in ((1_000_000, 1), (1_000, 1_000), (1, 1_000_000))
    ]
    cases.append(
        f"WHEN {number} BETWEEN {_FIRST_S}000000000 AND {_LAST_S}000000000 THEN CAST(floor({number}) AS BIGINT) // 1000"
    )
    text = keys.column(RawKind.STRING, key)
    if text:
        read = _iso_us(text, zone)
        cases.append(f"WHEN {read} BETWEEN {_FIRST_S}000000 AND {_LAST_S}000000 THEN {read}")
    return "CASE " + " ".join(cases) + " END"


def _scaled_us(number: str, unit: int) -> str:
    return f"CAST(round(CAST({number} AS DOUBLE) * {unit}) AS BIGINT)"


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


def _line_faults(mapping: Mapping, keys: _Keys, zone: str | None, result: Conversion) -> None:
    """Add why a line can't be placed in time, and where a zone was assumed."""
    if not mapping.has_time:
        return
    names = [key for key in mapping.time_sources if keys.kinds(key)]
    if not names:
        result.line_faults.append((LineFault.NO_TIME, "TRUE"))
        result.proofs = None
        return
    given = {key: f"({keys.present(key)}{_not_empty(key, keys)})" for key in names}
    result.prove("(" + " OR ".join(f"bool_and({present})" for present in given.values()) + ")")
    result.line_faults.append((LineFault.NO_TIME, "NOT (" + " OR ".join(given.values()) + ")"))
    before: list[str] = []
    for key in names:
        here = " AND ".join([given[key], *before])
        unplaced = f"{_time(key, keys, zone)} IS NULL"
        text = keys.column(RawKind.STRING, key)
        number = _decimal(key, keys)
        ambiguous = _ambiguous(text, zone) if text else "FALSE"
        readable = f"({number} IS NOT NULL{_readable_text(text)})"
        result.line_faults += [
            (LineFault.TIME_AMBIGUOUS, f"{here} AND {unplaced} AND {ambiguous}"),
            (LineFault.TIME_OUT_OF_RANGE, f"{here} AND {unplaced} AND NOT {ambiguous} AND {readable}"),
            (LineFault.TIME_UNREADABLE, f"{here} AND {unplaced} AND NOT {readable}"),
        ]
        if text:
            result.naive_times.append(
                f"{here} AND regexp_full_match(trim({text}), {literal(_ISO)}) AND NOT {_has_zone(text)}"
            )
        before.append(f"NOT {given[key]}")


def _not_empty(key: str, keys: _Keys) -> str:
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


def _add_private(values: dict[str, str], keys: _Keys) -> None:
    """Add what was made from a raw text, behind what the ledger says itself."""
    for name in ("prefix_fp", "prefix_noisy", "answer_chars"):
        made = keys.column(RawKind.PRIVATE, name)
        if made:
            values[name] = f"COALESCE({values[name]}, {made})" if name in values else made


_USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "actual_tokens")
_TIMINGS = ("latency_ms", "ttft_ms", "upstream_ms")


def _finish(values: dict[str, str], keys: _Keys, result: Conversion) -> None:
    """Wrap the columns: invented zeros, parts over wholes, and the two ends of an attempt."""
    have = {name: quote("v_" + name) for name in values}
    final = dict(have)
    # A failed attempt that reports 0 ms reports nothing: its usage and timings are inventions.
    zeros = [f"{have[name]} = 0" for name in ("latency_ms", "ttft_ms") if name in have]
    if zeros:
        answered = f"{have['status']} BETWEEN 200 AND 299" if "status" in have else "FALSE"
        invented = f"(COALESCE({answered}, FALSE) IS FALSE AND COALESCE({' OR '.join(zeros)}, FALSE))"
        for name in (*_USAGE, *_TIMINGS):
            if name in have:
                final[name] = f"CASE WHEN NOT {invented} THEN {have[name]} END"
    _parts_and_wholes(values, final, result)
    _ends(final, have, result, values)
    if "traffic" in final or "user_agent" in final:
        _traffic(final)
    kept = ["line", *([LINE_CHECK] if keys.has_line_check else [])]
    result.columns = [*kept, *final]
    result.inner = ", ".join([*kept, *(f"{sql} AS {quote('v_' + name)}" for name, sql in values.items())])
    result.outer = ", ".join([*kept, *(f"{sql} AS {quote(name)}" for name, sql in final.items())])


def _parts_and_wholes(values: dict[str, str], final: dict[str, str], result: Conversion) -> None:
    for part, whole in (("cached_tokens", "prompt_tokens"), ("reasoning_tokens", "completion_tokens")):
        if part in final and whole in final:
            predicate = f"({values[part]}) > ({values[whole]})"
            result.field_faults.append((part, FieldFault.MORE_THAN_WHOLE, predicate))
            result.prove(f"NOT bool_or({predicate})")
            final[part] = f"CASE WHEN NOT COALESCE({quote('v_' + part)} > {quote('v_' + whole)}, FALSE) THEN {final[part]} END"
    if {"actual_tokens", "prompt_tokens", "completion_tokens"} <= set(final):
        total, prompt, completion = (values[n] for n in ("actual_tokens", "prompt_tokens", "completion_tokens"))
        predicate = f"({total}) <> ({prompt}) + ({completion})"
        result.field_faults.append(("actual_tokens", FieldFault.TOTAL_CONTRADICTS_PARTS, predicate))
        result.prove(f"NOT bool_or({predicate})")
        differs = f"{quote('v_actual_tokens')} <> {quote('v_prompt_tokens')} + {quote('v_completion_tokens')}"
        final["actual_tokens"] = f"CASE WHEN NOT COALESCE({differs}, FALSE) THEN {final['actual_tokens']} END"


def _ends(final: dict[str, str], have: dict[str, str], result: Conversion, values: dict[str, str]) -> None:
    """Give each attempt both ends, and say which of them are known."""
    end, start = have.get("ts_us"), have.get("started_us")
    latency = final.get("latency_ms", "CAST(NULL AS DOUBLE)")
    if end is None and start is None:
        return
    if end and start:
        predicate = f"({values['ts_us']}) < ({values['started_us']})"
        result.field_faults.append(("latency_ms", FieldFault.ENDS_BEFORE_START, predicate))
        result.prove(f"NOT bool_or({predicate})")
        both = f"{end} IS NOT NULL AND {start} IS NOT NULL"
        latency = f"CASE WHEN {both} THEN CASE WHEN {end} >= {start} THEN ({end} - {start}) / 1000.0 END ELSE {latency} END"
        final["latency_ms"] = latency
    end, start = end or "CAST(NULL AS BIGINT)", start or "CAST(NULL AS BIGINT)"
    span = f"CAST(round(({latency}) * 1000) AS BIGINT)"
    final["ts_us"] = f"COALESCE({end}, {start} + {span}, {start})"
    final["started_us"] = f"COALESCE({start}, {end} - {span}, {end})"
    # Ends that contradict each other (a clock was set) are both not known.
    sane = f"COALESCE({end} >= {start}, TRUE)"
    final["start_known"] = f"({sane} AND ({start} IS NOT NULL OR ({latency}) IS NOT NULL))"
    final["end_known"] = f"({sane} AND ({end} IS NOT NULL OR ({latency}) IS NOT NULL))"


def _traffic(final: dict[str, str]) -> None:
    label = final.get("traffic", "CAST(NULL AS VARCHAR)")
    agent = final.get("user_agent")
    if agent is None:
        return  # then every label is the ledger's own, which the view says
    probes = ", ".join(literal(name) for name in _PROBE_AGENTS)
    is_probe = f"COALESCE(trim({agent}) IN ({probes}), FALSE)"
    final["traffic"] = f"COALESCE({label}, CASE WHEN {is_probe} THEN 'probe' END)"
    final["traffic_source"] = f"CASE WHEN {label} IS NOT NULL THEN 'label' WHEN {is_probe} THEN 'user_agent' END"

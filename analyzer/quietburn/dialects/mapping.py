"""A dialect is data: the model of a mapping file, shipped or given with `--map`."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, ValidationError, model_validator

from quietburn.common.columns import BY_NAME, COLUMNS, PRIVATE_TEXTS, STORED_AS, UNSETTLED, Kind, logged_name
from quietburn.common.messages import first_of, nearest, validation_problems
from quietburn.common.resources import rules_dir
from quietburn.common.sql import Scalar
from quietburn.common.tomlfile import read_toml
from quietburn.dialects import constants
from quietburn.dialects.names import Unit, named_unit
from quietburn.dialects.transforms import TRANSFORMS
from quietburn.errors import ConfigError, UsageError

_UNIT_IN_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Alternative(_Frozen):
    """One way to get a column: a constant, or a source key with unit and translation.

    `from` names source keys, the first that is not null counts. A name is one key, dots and
    all; a name that starts with `/` is a path into nested objects. `when` restricts the way to
    lines whose other keys hold one of the named values. `null` is what a missing or null key
    means. `only` takes the key only where it holds that kind of value. `transform` names a
    function of transforms.py over the keys. Values under `absent` say that there is none; those
    under `weak` are written where nothing is known, so they read as NULL and prove nothing.
    `inferred` says of a traffic class what it was told by, where the ledger carries no label.
    """

    sources: Names = Field(default=(), alias="from")
    value: Scalar | None = None
    unit: Unit | None = None
    translate: dict[str, Scalar] | None = None
    null: Scalar | None = None
    only: Literal["text", "number"] | None = None
    when: dict[str, Names] = Field(default_factory=dict)
    transform: str | None = None
    absent: Names = ()
    weak: Names = ()
    inferred: Literal["tag", "path", "user_agent"] | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "Alternative":
        if bool(self.sources) == (self.value is not None):
            raise ValueError("needs either `from` or `value`")
        return self

    @model_validator(mode="after")
    def _known_transform(self) -> "Alternative":
        if self.transform is None:
            return self
        if self.transform not in TRANSFORMS:
            raise ValueError(f"unknown transform {self.transform!r}{nearest(self.transform, TRANSFORMS)}")
        takes = TRANSFORMS[self.transform].takes
        if not self.sources or (takes > 1 and len(self.sources) != takes):
            raise ValueError(f"transform {self.transform!r} takes {takes} key{'s' if takes > 1 else ''} under `from`")
        return self

    @cached_property
    def derived(self) -> dict[str, tuple[str, ...]]:
        """Return the names of what a transform makes, with the source keys of each."""
        if self.transform is None:
            return {}
        whole = TRANSFORMS[self.transform].takes > 1
        groups = [self.sources] if whole else [(key,) for key in self.sources]
        return {f"{self.transform}({','.join(group)})": group for group in groups}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Return the names under which the values stand in a raw table: source keys, or what a transform makes."""
        return tuple(self.derived) if self.transform else self.sources

    @property
    def is_guarded(self) -> bool:
        """Whether the key's value counts only under a condition."""
        return bool(self.when or self.only or self.absent or self.weak) or self.null is not None

    @property
    def reads_text(self) -> bool:
        """Whether the keys' values are asked for as texts, whatever the column is."""
        return self.translate is not None or bool(self.absent or self.weak)


Alternatives = Annotated[tuple[Alternative, ...], BeforeValidator(_as_list)]


class Recognise(_Frozen):
    """What a line must have to be of the dialect: all of these keys, one of those, none of these, these values.

    A key under `not_values` may be missing, and may hold anything but these.
    """

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    values: dict[str, Names] = Field(default_factory=dict)
    not_values: dict[str, Names] = Field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return every key that it asks for."""
        return (*self.all, *self.any, *self.none, *self.values, *self.not_values)

    @property
    def is_signature(self) -> bool:
        """Whether it names what a line must have, rather than what it may have."""
        return bool(self.all or self.values)


def with_unsettled(mapping: "Mapping") -> "Mapping":
    """Return the mapping with durations apart of which neither `unit` nor the key's name tells the unit.

    Their numbers go as they came to a column of their own, until their unit is settled over the
    file; texts that name their unit (`350ms`) need no settling.
    """
    columns = dict(mapping.columns)
    for column, (unitless, _) in UNSETTLED.items():
        ways = mapping.columns.get(column, ())
        told = {key for way in ways if way.unit for key in way.sources}
        split = [(way, _untold(way, told)) for way in ways]
        if any(untold for _, untold in split):
            columns[column] = tuple(part for way, untold in split for part in _of_known_unit(way, untold))
            columns[unitless] = tuple(way.model_copy(update={"sources": untold}) for way, untold in split if untold)
    return mapping.model_copy(update={"columns": columns})


def _untold(way: Alternative, told: set[str]) -> tuple[str, ...]:
    if way.unit or way.transform or way.translate:
        return ()
    return tuple(key for key in way.sources if named_unit(key) is None and key not in told)


def _of_known_unit(way: Alternative, untold: tuple[str, ...]) -> list[Alternative]:
    if not untold:
        return [way]
    known = tuple(key for key in way.sources if key not in untold)
    texts = way.model_copy(update={"sources": untold, "only": "text", "null": None})
    return [*([way.model_copy(update={"sources": known})] if known else []), texts]


# What is pasted for one key: a variable of nginx in its string of many, or an operator of Envoy on its line.
_PASTED = re.compile(r'(?<![\w.-])"?(?P<key>[\w.-]+)"?: ?"[$%][^"]*",?')
_NAME = r"^[a-z][a-z0-9-]{0,40}$"


def check_name(name: str) -> None:
    """Raise UsageError where a dialect can't be called so."""
    if not re.match(_NAME, name):
        raise UsageError(f"--name {name!r}: use lower-case letters, digits and -, starting with a letter.")


class Events(_Frozen):
    """Where the events of a line lie, in dialects that put several into one.

    `path` leads to them, a `*` standing for each item of a list; `attributes` names keys of an
    event that hold OTLP's list of `{key, value}`, which is then read as an object.
    """

    path: str = Field(pattern=r"^(/[^/]+)+$")
    attributes: tuple[str, ...] = ()


class LogFrame(_Frozen):
    """What stands before and after the pasted lines where they make sense only within something, such as a processor."""

    before: str = ""
    after: str = ""


class About(_Frozen):
    """Name and nature of a dialect.

    Keys under `embedded` may hold JSON as a text, read as what it holds. Columns under `sparse` are
    ones that only some answers can have, so that a line without one tells nothing. Those under
    `headers` are told by a header: where its key is logged and empty, none was sent. `sdk_attempts`
    says that attempts are counted by the callers' SDKs, which send no id of the request with them.
    `first_byte` says that ttft_ms is the time to the first byte, which every response has, generated or not.
    """

    name: str = Field(pattern=_NAME)
    title: str = ""
    time: Literal["absolute", "none"] = "absolute"
    priority: int = 50  # the lower is asked first
    lab: bool = False  # numbers of the seeds' labs are its defaults
    notes: tuple[str, ...] = ()
    embedded: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    sdk_attempts: bool = False
    first_byte: bool = False


class Mapping(_Frozen):
    """A dialect: how it is recognised and where each canonical column comes from.

    What is of the dialect and does not meet `requests` is not a request.
    """

    dialect: About
    recognise: Recognise = Recognise()
    requests: Recognise = Recognise()
    events: Events | None = None
    columns: dict[str, Alternatives]
    assumed: dict[str, StrictFloat] = Field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    traffic_classes: tuple[str, ...] = ()  # beyond the known ones; a label that names neither is `other`
    cannot_tell: dict[str, str] = Field(default_factory=dict)
    log: dict[str, str] = Field(default_factory=dict)  # what to paste into what writes the log to carry a column
    log_frame: LogFrame = LogFrame()

    @model_validator(mode="after")
    def _known_columns(self) -> "Mapping":
        known = [logged_name(column.name) for column in COLUMNS if column.given] + list(PRIVATE_TEXTS)
        for name in [*self.columns, *self.assumed, *self.log, *self.dialect.sparse, *self.dialect.headers]:
            if name not in known:
                raise ValueError(f"unknown column {name!r}{nearest(name, known)}")
        for name, ways in self.columns.items():
            for way in ways:
                _check_unit(name, way)
        return self

    @property
    def constants(self) -> Iterator[tuple[str, str, Scalar]]:
        """Yield each constant: its key in the file, the column that it fills, and the value."""
        for column, value in self.assumed.items():
            yield f"assumed.{column}", column, value
        for column, ways in self.columns.items():
            for way in ways:
                given = {"value": way.value, "null": way.null}
                given |= {f"translate.{word}": value for word, value in (way.translate or {}).items()}
                yield from ((f"columns.{column}.{key}", column, value) for key, value in given.items() if value is not None)

    @property
    def kept_traffic(self) -> frozenset[str]:
        """Return the classes of traffic beyond the known ones: those that are listed, and constants of the file."""
        own = (value for _, column, value in self.constants if column == "traffic")
        return frozenset((*self.traffic_classes, *(str(value) for value in own)))

    @cached_property
    def by_stored_name(self) -> dict[str, tuple[Alternative, ...]]:
        """Return the alternatives by the canonical column's stored name, private texts left out."""
        return {STORED_AS.get(k, k): v for k, v in self.columns.items() if k not in PRIVATE_TEXTS}

    @cached_property
    def private_sources(self) -> dict[str, tuple[str, ...]]:
        """Return the source keys that hold raw prompts or answers."""
        return {
            name: tuple(key for way in self.columns[name] for key in way.keys)
            for name in PRIVATE_TEXTS
            if name in self.columns
        }

    @cached_property
    def roles(self) -> dict[str, frozenset[Kind]]:
        """Return each source key with the kinds of the columns that it feeds."""
        roles: dict[str, set[Kind]] = {}
        for name, ways in self.columns.items():
            kind = Kind.TEXT if name in PRIVATE_TEXTS else BY_NAME[STORED_AS.get(name, name)].kind
            for way in ways:
                for key in way.keys:
                    roles.setdefault(key, set()).add(Kind.TEXT if way.translate is not None else kind)
                    if way.reads_text:
                        roles[key].add(Kind.TEXT)
                for key in way.when:
                    roles.setdefault(key, set()).add(Kind.TEXT)
        for asked in (self.recognise, self.requests):
            for key in asked.keys:
                roles.setdefault(key, set())
            for key in (*asked.values, *asked.not_values):
                roles[key].add(Kind.TEXT)
        return {key: frozenset(kinds) for key, kinds in roles.items()}

    @cached_property
    def asked(self) -> frozenset[str]:
        """Return the keys that conditions ask for: what a line must have, and what a way depends on."""
        conditional = {key for ways in self.columns.values() for way in ways for key in way.when}
        return frozenset((*self.recognise.keys, *self.requests.keys, *conditional))

    @cached_property
    def derived(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return what transforms make: by name, the transform and its source keys."""
        ways = [way for alternatives in self.columns.values() for way in alternatives]
        return {key: (way.transform, group) for way in ways if way.transform for key, group in way.derived.items()}

    @cached_property
    def weak_columns(self) -> frozenset[str]:
        """Return the columns whose absence proves nothing: a value is written where none came, or not every answer has one."""
        return frozenset(self.dialect.sparse) | {name for name, ways in self.columns.items() if any(way.weak for way in ways)}

    @cached_property
    def time_sources(self) -> tuple[str, ...]:
        """Return what can place a line in time: keys as a user logs them, or what a transform makes of them."""
        return tuple(key for way in self._times for key in way.keys)

    @property
    def time_keys(self) -> tuple[str, ...]:
        """Return the keys that can place a line in time, as a user logs them."""
        return tuple(key for way in self._times for key in way.sources)

    @property
    def _times(self) -> tuple[Alternative, ...]:
        return (*self.columns.get("ts", ()), *self.columns.get("started_at", ()))

    @cached_property
    def source_keys(self) -> frozenset[str]:
        """Return the keys that columns are read from, as a user logs them."""
        return frozenset(key for ways in self.columns.values() for way in ways for key in way.sources)

    def columns_told_by(self, keys: Collection[str]) -> frozenset[str]:
        """Return the columns of headers of which a log has a key: where that is empty, no header was sent."""
        return frozenset(
            name for name in self.dialect.headers if any(key in keys for way in self.columns[name] for key in way.sources)
        )

    def lacking(self, columns: Iterable[str], keys: Collection[str]) -> dict[str, str]:
        """Return what to paste by column, of those that stand under `log`, without keys that a log has already."""
        left = {name: without_keys(self.log[name], keys) for name in columns}
        return {name: text for name, text in left.items() if text}

    def pasted(self, texts: Iterable[str]) -> str:
        """Return what to paste as a whole, of what stands under `log` by column."""
        lines = "\n".join(texts)
        return f"{self.log_frame.before}{lines}{self.log_frame.after}"

    @property
    def has_time(self) -> bool:
        """Whether lines of this dialect stand in time."""
        return self.dialect.time != "none"


def without_keys(text: str, keys: Collection[str]) -> str:
    """Return what is to be pasted without these keys; nothing where all that it holds are keys of these."""
    kept = [_PASTED.sub(lambda found: "" if found["key"] in keys else found[0], line) for line in text.splitlines()]
    changed = zip(text.splitlines(), kept, strict=True)
    return "\n".join(after for before, after in changed if after == before or _PASTED.search(after))


def scale(column: str, way: Alternative) -> float:
    """Return the factor from the source's unit to the column's own (1.0 where none is named)."""
    unit = BY_NAME[STORED_AS.get(column, column)].unit
    if way.unit is None or unit not in _UNIT_IN_SECONDS:
        return 1.0
    return round(_UNIT_IN_SECONDS[way.unit] / _UNIT_IN_SECONDS[unit], 9)


def _check_unit(name: str, way: Alternative) -> None:
    kind = None if name in PRIVATE_TEXTS else BY_NAME[STORED_AS.get(name, name)]
    if way.unit and (kind is None or kind.unit not in _UNIT_IN_SECONDS or kind.kind is Kind.TIME):
        raise ValueError(f"column {name!r} has no convertible unit; remove `unit`")


def load_mapping(path: Path) -> Mapping:
    """Read one mapping file (TOML). Raises ConfigError naming the file and every bad key."""
    try:
        mapping = Mapping.model_validate(read_toml(path, "mapping"))
    except ValidationError as problem:
        known = [*Mapping.model_fields, *About.model_fields, *Recognise.model_fields, *Events.model_fields]
        known += [*LogFrame.model_fields, *Alternative.model_fields, "from"]
        raise ConfigError(f"mapping {path}: " + "; ".join(validation_problems(problem, known))) from None
    _check_constants(path, mapping)
    return with_unsettled(mapping)


def _check_constants(path: Path, mapping: Mapping) -> None:
    problems = [(key, constants.problem_of(column, value)) for key, column, value in mapping.constants]
    told = [f"{key}: {problem}" for key, problem in problems if problem is not None]
    if told:
        raise ConfigError(f"mapping {path}: " + "; ".join(first_of(told, len(told))))


@cache
def shipped_mappings() -> tuple[Mapping, ...]:
    """Return the shipped dialects, in the order in which they are asked."""
    found = [load_mapping(path) for path in sorted((rules_dir() / "dialects").glob("*.toml"))]
    return tuple(sorted(found, key=lambda mapping: (mapping.dialect.priority, mapping.dialect.name)))

"""Read quietburn.toml, which says what the ledger doesn't."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from quietburn.common.callkinds import CallKind
from quietburn.common.messages import validation_problems
from quietburn.common.tomlfile import printed, read_toml
from quietburn.common.trust import is_file, why_not_trusted
from quietburn.errors import ConfigError

FILE_NAME = "quietburn.toml"
PROJECT_FILE = "pyproject.toml"

# Strict: TOML has types, so `"5"` and `true` are mistakes and not numbers.
_MODEL = ConfigDict(frozen=True, extra="forbid", strict=True)
_OURS = {"origin", "not_taken"}
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


def _named(text: str) -> str:
    """Return a name or path without blanks around it; one that names nothing would mean every route."""
    if not text.strip(" /*"):
        raise ValueError(f"{text!r} is not a route; write a route name or the end of a path, such as \"/team/*/ask\"")
    return text.strip()


Pattern = Annotated[str, AfterValidator(_named)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Deadlines(BaseModel):
    """Deadlines in ms that the ledger doesn't carry: for all, or by route, model or tenant."""

    model_config = _MODEL

    default: Positive | None = None
    route: dict[str, Positive] = Field(default_factory=dict)
    model: dict[str, Positive] = Field(default_factory=dict)
    tenant: dict[str, Positive] = Field(default_factory=dict)


def _one_deadline(value: object) -> object:
    """Take a single number as the default of all."""
    return value if value is None or isinstance(value, dict | Deadlines) else {"default": value}


class Traffic(BaseModel):
    """Classes of traffic beyond the known ones that labels may name; any other label reads as `other`."""

    model_config = _MODEL

    classes: list[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$")]] = Field(default_factory=list)


def _as_keys(value: object) -> object:
    """Take a single key as a list of one."""
    return tuple(value) if isinstance(value, list) else (value,)


class MapEntry(BaseModel):
    """Where a column is read from, for every dialect of the run: keys, and their unit."""

    model_config = _MODEL

    sources: Annotated[tuple[str, ...], BeforeValidator(_as_keys), Field(min_length=1)] = Field(alias="from")
    unit: Literal["s", "ms", "us", "ns"] | None = None


class Routes(BaseModel):
    """Kinds of call by what the ledger says of them: names of routes and operations, and paths, which hold a `/`.

    A path is told by its ending, in whole segments; `*` stands for one of them, `**` for any number.
    """

    model_config = _MODEL

    generate: list[Pattern] = Field(default_factory=list)
    ready: list[Pattern] = Field(default_factory=list)
    embed: list[Pattern] = Field(default_factory=list)
    list_: list[Pattern] = Field(default_factory=list, alias="list")
    tool: list[Pattern] = Field(default_factory=list)
    other: list[Pattern] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_kind_each(self) -> "Routes":
        kinds: dict[str, CallKind] = {}
        for kind, patterns in self.lists.items():
            for pattern in patterns:
                if kinds.setdefault(pattern.strip().lower(), kind) is not kind:
                    raise ValueError(f"{pattern!r} is listed under both {kinds[pattern.strip().lower()]} and {kind}; keep one")
        return self

    @property
    def lists(self) -> dict[CallKind, tuple[str, ...]]:
        """Return the names and paths by kind."""
        return {
            CallKind.GENERATE: tuple(self.generate), CallKind.READY: tuple(self.ready), CallKind.EMBED: tuple(self.embed),
            CallKind.LIST: tuple(self.list_), CallKind.TOOL: tuple(self.tool), CallKind.OTHER: tuple(self.other),
        }


class GateSettings(BaseModel):
    """What `gate` asks, where no flag says otherwise; shares from 0 to 1."""

    model_config = _MODEL

    min_usable: Share | None = None
    max_gap: Share | None = None
    max_drop: Share | None = None
    max_invalid_rise: Share | None = None
    require: list[Literal["on_time", "complete", "non_empty"]] = Field(default_factory=list)
    undecided: Literal["pass", "fail"] | None = None
    point: bool = False
    acceptance: bool = False


class Config(BaseModel):
    """The configuration; every key is optional.

    `origin` is the file that it was read from, `not_taken` says which files nearer by are somebody else's.
    """

    model_config = _MODEL

    deadline_ms: Annotated[Deadlines | None, BeforeValidator(_one_deadline)] = None
    hourly_token_cap: Positive | None = None
    max_retries: int | None = Field(default=None, ge=0, le=10**12)
    inflight_cap: int | None = Field(default=None, ge=1, le=10**12)
    tz: str | None = None
    length_is_complete: bool = True
    rules: dict[str, dict[str, Finite]] = Field(default_factory=dict)
    traffic: Traffic = Field(default_factory=Traffic)
    map: dict[str, MapEntry] = Field(default_factory=dict)
    routes: Routes = Field(default_factory=Routes)
    gate: GateSettings = Field(default_factory=GateSettings)
    origin: str | None = Field(default=None, exclude=True)
    not_taken: tuple[str, ...] = Field(default=(), exclude=True)

    @property
    def deadlines(self) -> Deadlines:
        """Return the configured deadlines; none where none is configured."""
        return self.deadline_ms or Deadlines()


_MAP_KEYS = ("from", "unit")


def load_config(path: Path | None, start: Path | None = None) -> Config:
    """Return the configuration from a named file, else from the nearest one upward of `start` that can be trusted.

    Without any, an empty one; `not_taken` says which were passed over. Raises ConfigError naming
    the file and every bad key.
    """
    if path is not None:
        table = _table(path)
        if table is None:
            raise ConfigError(f"configuration {printed(path)}: has no [tool.quietburn] table.")
        return _read(path, table)
    return _nearest(_working_directory() if start is None else start.resolve())


def _working_directory() -> Path:
    try:
        return Path.cwd().resolve()
    except FileNotFoundError:
        raise ConfigError("the working directory no longer exists. Change to another folder.") from None


def _nearest(here: Path) -> Config:
    not_taken: list[str] = []
    for folder in (here, *here.parents):
        for found in (folder / FILE_NAME, folder / PROJECT_FILE):
            if not is_file(found):  # also where the folder may not be searched
                continue
            problem = why_not_trusted(found, here)
            if problem is None and (table := _table(found)) is not None:
                return _read(found, table, not_taken)
            if problem is not None and _is_ours(found):
                not_taken += [f"configuration {printed(found)}: is ignored: {problem}. Use --config to read it anyway."]
    return Config(not_taken=tuple(not_taken))


def _is_ours(found: Path) -> bool:
    """Whether a file of somebody else's is a configuration for us; most pyproject.toml are none."""
    try:
        return _table(found) is not None
    except ConfigError:
        return found.name == FILE_NAME


def _table(path: Path) -> dict[str, Any] | None:
    """Return the configuration's table; None where a pyproject.toml has none."""
    content = read_toml(path, "configuration")
    if path.name != PROJECT_FILE:
        return content
    tools = content.get("tool", {})
    table = tools.get("quietburn") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"configuration {printed(path)}: tool.quietburn: should be a table, [tool.quietburn].")
    return table


def _read(path: Path, content: dict[str, Any], not_taken: Iterable[str] = ()) -> Config:
    for name in _OURS & content.keys():  # for the report; no keys of the file
        raise ConfigError(f"configuration {printed(path)}: {name}: unknown key.")
    try:
        return Config.model_validate(content | {"origin": printed(path), "not_taken": tuple(not_taken)})
    except ValidationError as problem:
        models = (Config, Deadlines, Traffic, GateSettings)
        known = [*(name for model in models for name in model.model_fields if name not in _OURS), *_MAP_KEYS]
        known += map(str, CallKind)
        problems = "; ".join(validation_problems(problem, known))
        raise ConfigError(f"configuration {printed(path)}: {problems}.") from None

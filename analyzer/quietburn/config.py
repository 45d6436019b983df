"""quietburn.toml: what the ledger doesn't say."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from quietburn.errors import ConfigError
from quietburn.wording import validation_problems

FILE_NAME = "quietburn.toml"


class Deadlines(BaseModel):
    """Deadlines in ms that the ledger doesn't carry: for all, or by route, model or tenant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: PositiveFloat | None = None
    route: dict[str, PositiveFloat] = Field(default_factory=dict)
    model: dict[str, PositiveFloat] = Field(default_factory=dict)
    tenant: dict[str, PositiveFloat] = Field(default_factory=dict)


class Config(BaseModel):
    """The configuration; every key is optional. `origin` is the file that it was read from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deadline_ms: PositiveFloat | Deadlines | None = None
    hourly_token_cap: PositiveFloat | None = None
    max_retries: int | None = Field(default=None, ge=0)
    inflight_cap: int | None = Field(default=None, ge=1)
    tz: str | None = None
    length_is_complete: bool = True
    rules: dict[str, dict[str, float]] = Field(default_factory=dict)
    origin: str | None = Field(default=None, exclude=True)

    @property
    def deadlines(self) -> Deadlines:
        """Return the configured deadlines, a single number as the default of all."""
        if isinstance(self.deadline_ms, Deadlines):
            return self.deadline_ms
        return Deadlines(default=self.deadline_ms)


def load_config(path: Path | None, start: Path | None = None) -> Config:
    """Return the configuration from a named file, else from the nearest one upward of `start`.

    Without any, an empty one. Raises ConfigError naming the file and every bad key.
    """
    if path is not None:
        return _read(path, _toml(path), named=True)
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            return _read(folder / FILE_NAME, _toml(folder / FILE_NAME), named=False)
        project = folder / "pyproject.toml"
        if project.is_file():
            table = _toml(project).get("tool", {}).get("quietburn")
            if table is not None:
                return _read(project, {"tool": {"quietburn": table}}, named=False)
    return Config()


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ConfigError(f"configuration {path}: can't be read: {problem}.") from None


def _read(path: Path, content: dict[str, Any], *, named: bool) -> Config:
    if path.name == "pyproject.toml":
        content = content.get("tool", {}).get("quietburn", {})
        if named and not content:
            raise ConfigError(f"configuration {path}: has no [tool.quietburn] table.")
    try:
        return Config.model_validate(content | {"origin": str(path)})
    except ValidationError as problem:
        known = [*Config.model_fields, *Deadlines.model_fields]
        raise ConfigError(f"configuration {path}: " + "; ".join(validation_problems(problem, known)) + ".") from None

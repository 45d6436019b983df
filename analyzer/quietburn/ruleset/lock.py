"""Hash what a rule means, and lock it: a released meaning keeps its revision."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from quietburn.common.tomlfile import read_toml
from quietburn.errors import ConfigError
from quietburn.ruleset.rule import Rule

LOCK_FILE = "rules.lock"
_HEAD = """# What each rule meant at the last release: its revision, and a hash of its parameters, minutes, windows, SELECTs,
# needs and alerts. Made by `quietburn rules lock` when a version is released; never edited by hand.
"""
# Words for people, and how findings are put together. Whatever else a rule file holds, now or later, is meaning.
_PROSE = {
    "rule": {"id", "revision", "title", "status", "origin", "tags", "aliases", "explains", "known_gaps", "false_positives"},
    "finding": {"inference", "action"},
    "alert": {"summary", "inference", "none"},
    "parameters": {"meaning"},
    "grades": {"description"},
}


class Locked(BaseModel):
    """A rule's entry in the lock."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: int = Field(ge=1)
    meaning: str


_LOCK = TypeAdapter(dict[str, Locked])


def meaning_of(rule: Rule) -> str:
    """Return the hash of what a rule does; its words and the layout of its SQL don't count."""
    content = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"runbook"})
    for table in ("rule", "finding", "alert"):
        content[table] = _without(content[table], _PROSE[table])
    if "grades" in content["alert"]:
        content["alert"]["grades"] = [_without(grade, _PROSE["grades"]) for grade in content["alert"]["grades"]]
    parameters = content.get("parameters", {})
    content["parameters"] = {name: _without(one, _PROSE["parameters"]) for name, one in parameters.items()}
    return hashlib.sha256(json.dumps(_one_line(content), sort_keys=True).encode()).hexdigest()[:16]


def _without(table: Mapping[str, object], prose: set[str]) -> dict[str, object]:
    return {key: value for key, value in table.items() if key not in prose}


def _one_line(value: object) -> object:
    """Return the same content with every text on one line."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {key: _one_line(inner) for key, inner in value.items()}
    return [_one_line(inner) for inner in value] if isinstance(value, list) else value


def read_lock(path: Path) -> dict[str, Locked]:
    """Return the lock by rule id, empty where there is none. Raises ConfigError."""
    if not path.is_file():
        return {}
    try:
        return _LOCK.validate_python(read_toml(path, "lock"))
    except ValidationError:
        raise ConfigError(f"lock {path}: is not a rules lock. Restore the last committed one.") from None


def lock_text(rules: Iterable[Rule]) -> str:
    """Return the lock of these rules."""
    listed = sorted(rules, key=lambda rule: rule.id)
    return _HEAD + "".join(
        f'{rule.id} = {{ revision = {rule.rule.revision}, meaning = "{meaning_of(rule)}" }}\n' for rule in listed
    )


def unraised(rules: Iterable[Rule], locked: Mapping[str, Locked]) -> dict[str, str]:
    """Return by rule id why its revision can't stay: it was released with another meaning, or with a later revision.

    A revision above the locked one is not released yet and may change its meaning until it is.
    """
    found: dict[str, str] = {}
    for rule in rules:
        was = locked.get(rule.id)
        if was is None or rule.rule.revision > was.revision:
            continue
        if rule.rule.revision < was.revision:
            found[rule.id] = f"is below {was.revision}, which was released; set it to {was.revision + 1}"
        elif meaning_of(rule) != was.meaning:
            found[rule.id] = f"was released with another meaning; set it to {was.revision + 1}, or revert the change"
    return found

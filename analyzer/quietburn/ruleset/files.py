"""Rule files from disk, and the numbers that their parameters take in one run."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from quietburn.common.messages import nearest, validation_problems
from quietburn.common.resources import rule_files
from quietburn.common.tomlfile import read_toml
from quietburn.errors import ConfigError, UsageError
from quietburn.ruleset.explains import check_explains
from quietburn.ruleset.rule import About, EventRule, FindingText, Grade, Parameter, Rule, WindowRule

_KNOWN_KEYS = [
    key for model in (Rule, About, Parameter, WindowRule, EventRule, Grade, FindingText) for key in model.model_fields
]


def load_rule(path: Path) -> Rule:
    """Read one rule file. Raises ConfigError naming the file and every bad key."""
    try:
        rule = Rule.model_validate(read_toml(path, "rule"))
    except ValidationError as problem:
        raise ConfigError(f"rule {path}: " + "; ".join(validation_problems(problem, _KNOWN_KEYS)) + ".") from None
    if rule.id != path.stem:
        raise ConfigError(f"rule {path}: its id is {rule.id!r}; name the file {rule.id}.toml.")
    return rule


def shipped_rules() -> tuple[Rule, ...]:
    """Return the shipped rules, by id. Raises ConfigError as `load_rule` does, and for `explains` that can't hold."""
    rules = tuple(load_rule(path) for path in rule_files())
    check_explains(rules)
    return rules


def choose(rules: Iterable[Rule], only: Iterable[str] = (), skip: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that `--only` and `--skip` leave. Raises UsageError for an unknown id."""
    by_name = {name: rule for rule in rules for name in (rule.id, *rule.rule.aliases)}
    for name in (*only, *skip):
        if name not in by_name:
            raise UsageError(f"no rule {name!r}{nearest(name, by_name)}. `quietburn rules list` lists all rules.")
    wanted = {by_name[name].id for name in only} or {rule.id for rule in by_name.values()}
    left_out = {by_name[name].id for name in skip}
    chosen = tuple(rule for name, rule in by_name.items() if rule.id == name and name in wanted and name not in left_out)
    if not chosen and (only or skip):
        raise UsageError("--only and --skip select no rule.")
    return chosen


@dataclass(frozen=True)
class Value:
    """What a parameter is in this run, and where the number comes from."""

    number: float | None
    origin: str  # "default", a lab, a flag or a configuration file


Values = dict[str, Value]


def parameter_values(
    rule: Rule, *, dialects: frozenset[str], configured: Mapping[str, Value], given: Mapping[str, Value]
) -> Values:
    """Return the rule's parameters: `--set` and `[rules.<id>]` first, then configuration, lab, default.

    `given` is by parameter, `configured` by configuration key. A lab's number counts only when
    every line of the run is of that lab's dialect.
    """
    values: Values = {}
    for name, parameter in rule.parameters.items():
        key = parameter.config_key
        lab = [parameter.lab[dialect] for dialect in dialects if dialect in parameter.lab]
        if name in given:
            values[name] = given[name]
        elif key and key in configured:
            values[name] = configured[key]
        elif lab and len(lab) == len(dialects):
            values[name] = Value(lab[0], f"default of the {sorted(dialects)[0]} lab")
        else:
            values[name] = Value(parameter.default, "default")
    return values


def parse_settings(settings: Iterable[str], rules: Iterable[Rule]) -> dict[str, dict[str, Value]]:
    """Return `--set RULE.PARAM=VALUE` by rule and parameter. Raises UsageError in words."""
    by_id = {rule.id: rule for rule in rules}
    found: dict[str, dict[str, Value]] = {}
    for setting in settings:
        match = re.match(r"^([a-z0-9-]+)\.([a-z0-9_]+)=(.+)$", setting)
        if not match:
            raise UsageError(f"--set {setting!r}: write RULE.PARAMETER=NUMBER, such as saturation.wait_ms=1500.")
        rule_id, name, text = match.groups()
        found.setdefault(rule_id, {})[name] = Value(checked_number(by_id, rule_id, name, text), "--set")
    return found


def checked_number(by_id: Mapping[str, Rule], rule_id: str, name: str, text: object) -> float:
    """Return a parameter's number after checking that rule, parameter and number exist."""
    if rule_id not in by_id:
        raise UsageError(f"no rule {rule_id!r}{nearest(rule_id, by_id)} to set {name!r} of.")
    if name not in by_id[rule_id].parameters:
        raise UsageError(f"rule {rule_id!r} has no parameter {name!r}{nearest(name, by_id[rule_id].parameters)}.")
    try:
        number = float(str(text))
    except ValueError:
        number = float("nan")
    if isinstance(text, bool) or not math.isfinite(number):
        raise UsageError(f"{rule_id}.{name}: {text!r} is not a number.")
    least, most = by_id[rule_id].parameters[name].range
    if not least <= number <= most:
        raise UsageError(f"{rule_id}.{name}: {text} is outside its range, {least:g} to {most:g}.")
    return number


def bind(expression: str, values: Values) -> str:
    """Put the parameters' numbers into an SQL expression (NULL where one has none)."""

    def number(match: re.Match[str]) -> str:
        value = values[match[1]].number
        return "CAST(NULL AS DOUBLE)" if value is None else f"CAST({value!r} AS DOUBLE)"

    return re.sub(r"\$([a-z][a-z0-9_]*)", number, expression)

"""Check rule files: each problem with its file, and the key or the command that fixes it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quietburn.authoring.checkout import Checkout
from quietburn.common.resources import ROUTES_FILE
from quietburn.engine.binding import undeclared
from quietburn.errors import ConfigError
from quietburn.metrics.contract import ATTEMPT_EVENTS
from quietburn.metrics.rule_events import events_of
from quietburn.report.columnpage import COLUMNS_PAGE, columns_markdown
from quietburn.report.rulebook import rulebook
from quietburn.ruleset.explains import check_explains
from quietburn.ruleset.files import Values, load_rule, parameter_values
from quietburn.ruleset.guard import RuleFault
from quietburn.ruleset.lint import lint
from quietburn.ruleset.lock import LOCK_FILE, read_lock, unraised
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.sentences import Sentences

_TO_DO = "TODO"


@dataclass(frozen=True)
class Problem:
    """One thing to mend, and the file that it is in."""

    file: str
    words: str

    def __str__(self) -> str:
        return f"{self.file}: {self.words}"


def rule_paths(path: Path) -> list[Path]:
    """Return the rule files that a path names: itself, or those of a folder. Raises ConfigError."""
    if path.is_dir():
        found = [each for each in sorted(path.glob("*.toml")) if each.name != ROUTES_FILE]
        if not found:
            raise ConfigError(f"{path}: contains no rule file (*.toml).")
        return found
    if not path.is_file():
        raise ConfigError(f"{path}: no such file or folder.")
    return [path]


def load_all(paths: Iterable[Path]) -> tuple[dict[Path, Rule], list[Problem]]:
    """Return the rules that can be read, by file, and what is wrong with the others."""
    rules: dict[Path, Rule] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            rules[path] = load_rule(path)
        except ConfigError as problem:
            problems.append(Problem(str(path), str(problem).removeprefix(f"rule {path}: ")))
    return rules, problems


def check_files(rules: dict[Path, Rule]) -> Iterator[Problem]:
    """Yield what is wrong inside each rule file, and between the files."""
    for path, rule in rules.items():
        values = default_values(rule)
        for issue in (*lint(rule, values), *undeclared(rule, values)):
            yield Problem(str(path), f"{issue.where}: {issue.problem}.")
        yield from _sentences(path, rule)
    yield from _counted_twice(rules)
    yield from _named_twice(rules)


def default_values(rule: Rule) -> Values:
    """Return the numbers that a rule takes where nothing is configured."""
    return parameter_values(rule, dialects=frozenset(), configured={}, given={})


def _sentences(path: Path, rule: Rule) -> Iterator[Problem]:
    """Yield the sentences of a finding that can't be written from what the rule observes."""
    measured = [f"p50_{rule.finding.measure_name}"] if rule.finding.measure_name else []
    observed = dict.fromkeys([*rule.observed_names, *measured], 1.0)
    try:
        sentences = Sentences(rule)
        sentences.inference(observed)
        sentences.action(observed)
    except RuleFault as fault:
        yield Problem(str(path), f"{fault.problem}; it may use {', '.join(observed)}.")


def _counted_twice(rules: dict[Path, Rule]) -> Iterator[Problem]:
    """Yield events of one name that count different things: a gateway has one counter for both."""
    first: dict[str, tuple[str, str]] = {name: ("quietburn itself", where) for name, where in ATTEMPT_EVENTS.items()}
    for path, rule in rules.items():
        for count in events_of(rule, default_values(rule)):
            ((_, event),) = count.fixed
            owner, definition = first.setdefault(event, (rule.id, f"{count.source} {count.where}"))
            if definition != f"{count.source} {count.where}":
                yield Problem(str(path), f"event {event!r} counts something different from the one in {owner}. Rename it.")


def _named_twice(rules: dict[Path, Rule]) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for path, rule in rules.items():
        for name in filter(None, (*rule.rule.aliases, rule.id, rule.alert.name)):
            if owners.setdefault(name, rule.id) != rule.id:
                yield Problem(str(path), f"the name {name!r} is already used by {owners[name]}. Choose another.")


# In a checkout


def check_checkout(place: Checkout, rules: Iterable[Rule]) -> Iterator[Problem]:
    """Yield what these rules lack around their files: cases, edges, faults, words, generated files, pages, the lock."""
    rules = list(rules)
    for rule in rules:
        yield from _to_do(place, rule.id)
        yield from _case(place, rule)
        yield from _fault(place, rule.id)
    yield from stale_fixtures(place, [rule.id for rule in rules])
    for rule_id, words in unraised(rules, read_lock(place.rules / LOCK_FILE)).items():
        yield Problem(place.name(place.rule_file(rule_id)), f"rule.revision {words}.")


def check_whole(place: Checkout, rules: Iterable[Rule]) -> Iterator[Problem]:
    """Yield what is wrong between all the rules of a checkout, and the pages in docs/ that are not theirs."""
    rules = list(rules)
    try:
        check_explains(rules)
    except ConfigError as problem:
        yield Problem(place.name(place.rules), str(problem))
    pages = dict.fromkeys(rulebook(rules).items(), "quietburn rules table --out docs")
    pages[COLUMNS_PAGE, columns_markdown()] = "quietburn columns --out docs"
    for (name, text), command in pages.items():
        page = place.root / "docs" / name
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            yield Problem(place.name(page), f"is out of date; run `{command}`.")


def _to_do(place: Checkout, rule_id: str) -> Iterator[Problem]:
    for path in place.written_by_hand(rule_id):
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for number, line in enumerate(lines, start=1):
            if _TO_DO in line:
                yield Problem(f"{place.name(path)}:{number}", f"fill in: {line.strip()}")


def _case(place: Checkout, rule: Rule) -> Iterator[Problem]:
    """Yield what a rule's case lacks: the file, a flip or an edge for a parameter."""
    name = place.name(place.case_file(rule.id))
    made = place.fixtures(rule.id) / "expected.json"
    if not place.case_file(rule.id).is_file():
        yield Problem(name, "is missing; model it on its neighbours (`quietburn rules new` creates one for a new rule).")
        return
    if not made.is_file():
        return  # said with the generated files
    expected = json.loads(made.read_text(encoding="utf-8"))
    flipped = {name for flip in expected["flips"] if len(flip["set"]) == 1 for name in flip["set"]}
    edged = {edge["parameter"] for edge in expected.get("edges", ())}
    older = (place.root / "tests" / "rules" / "edges.py").read_text(encoding="utf-8")
    for parameter in rule.parameters:
        if parameter not in flipped:
            yield Problem(name, f"has no Flip for {parameter} alone; add one that changes a verdict.")
        if parameter not in edged and f'"{rule.id}": (' not in older:
            yield Problem(name, f"has no edge for {parameter}; add the number at which a verdict changes.")


def _fault(place: Checkout, rule_id: str) -> Iterator[Problem]:
    planted = re.compile(rf'^@plants\("{rule_id}"\)', re.MULTILINE)
    modules = sorted((place.root / "fixtures" / "days").glob("*_faults.py"))
    if not any(planted.search(module.read_text(encoding="utf-8")) for module in modules):
        words = f'is missing: no fault is planted for {rule_id}; write a function under @plants("{rule_id}").'
        yield Problem(place.name(place.fault_file(rule_id)), words)


def stale_fixtures(place: Checkout, rule_ids: list[str]) -> Iterator[Problem]:
    """Yield the generated files that are not what their case makes, as the script that makes them says."""
    script = place.root / "fixtures" / "rules" / "make.py"
    done = subprocess.run(  # noqa: S603 - the checkout's own script
        [sys.executable, str(script), "--check", *rule_ids], cwd=place.root, capture_output=True, text=True, check=False
    )
    old = [line.removeprefix("out of date: ") for line in done.stdout.splitlines() if line.startswith("out of date: ")]
    for name in old:
        yield Problem(name, f"is out of date; run `python fixtures/rules/make.py {Path(name).parent.name}`.")
    if done.returncode and not old:
        yield Problem("fixtures/rules/cases", (done.stderr.strip().splitlines() or ["can't be run"])[-1])

"""Everything that `quietburn alerts` writes, rendered in memory before a file is touched."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quietburn.alerts.companions import companion_groups, companion_tests
from quietburn.alerts.firing import runs
from quietburn.alerts.groups import Group, Options, alerts_of, alerts_yaml, build_groups
from quietburn.alerts.input_series import stepped_values
from quietburn.alerts.promtool import check_rules, run_tests
from quietburn.alerts.prove import Expected, alert_minutes, expect, frames, reach_minutes, series_for
from quietburn.alerts.runbook import runbook_page, runbook_pages
from quietburn.alerts.templates import rendered
from quietburn.common.resources import samples_dir
from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.engine.minutes import reduce_to_minutes
from quietburn.engine.settings import Settings
from quietburn.errors import ConfigError
from quietburn.metrics.samples import EventRows, Frame
from quietburn.records.inputs import LedgerFile
from quietburn.ruleset.alert import PREFIX
from quietburn.ruleset.files import Values
from quietburn.ruleset.guard import RuleFault, running
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.severity import Severity

RUNBOOK = "runbook"
ALERTS, TESTS, OPERATOR = "alerts.yaml", "alerts_test.yaml", "prometheusrule.yaml"
SCRAPE, INHIBIT = "scrape.yaml", "inhibit.yaml"
BESIDE_THE_RUNBOOK = (ALERTS, TESTS, OPERATOR, SCRAPE, INHIBIT)
_FIRST_LINE = (
    "These alerts query metrics made from the gateway's ledger: they see nothing unless the ledger is exported "
    "to Prometheus under the names used here (scrape.yaml)."
)

Chosen = list[tuple[Rule, Values]]
Check = dict[str, object]


@dataclass(frozen=True)
class Bundle:
    """The files by path relative to the output folder.

    `proofs` are rules and tests for each rule alone; `failed` are faults of rules that are left out.
    """

    files: dict[str, str]
    proofs: dict[str, dict[str, str]]
    failed: tuple[RuleFault, ...] = ()

    def stale(self, folder: Path) -> list[str]:
        """Return the files that are missing in a folder or differ from what would be written."""
        return [name for name, text in self.files.items() if _content(folder / name) != text]

    def surplus(self, folder: Path) -> list[str]:
        """Return runbook pages in a folder whose alert is written no longer."""
        pages = sorted((folder / RUNBOOK).glob(f"{PREFIX}*.md"))
        return [name for page in pages if (name := f"{RUNBOOK}/{page.name}") not in self.files]


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def build_bundle(chosen: Chosen, options: Options, origin: Iterable[str] = ()) -> Bundle:
    """Return the alert rules, their tests, the runbook and what stands beside them.

    `origin` are lines for the header: where the numbers come from. The same input gives the same
    bytes. A rule of which any part fails is left out and costs no other rule its alert.
    """
    tests, failed = _tests_by_rule(chosen, options)
    left_out = {fault.rule for fault in failed}
    chosen = [(rule, values) for rule, values in chosen if rule.id not in left_out]
    header = [_FIRST_LINE, *origin, *_revisions(chosen)]
    groups = build_groups(chosen, options)
    beside = companion_tests(options)
    every = [test for of_rule in (*tests.values(), *beside.values()) for test in of_rule]
    page, ticket = (options.severity_labels[severity] for severity in (Severity.PAGE, Severity.TICKET))
    files = {
        ALERTS: alerts_yaml(groups, Options(), header),
        TESTS: rendered("alerts_test.yaml.j2", header=header, rule_file=ALERTS, tests=every),
        SCRAPE: rendered("scrape.yaml.j2"),
        INHIBIT: rendered("inhibit.yaml.j2", page=page, ticket=ticket),
    }
    if options.target == "operator":
        files[OPERATOR] = alerts_yaml(groups, options, header)
    files |= {f"{RUNBOOK}/{name}": text for name, text in runbook_pages(chosen, options).items()}
    alone = {rule.id: Group("proof", tuple(alerts_of(rule, values, options))) for rule, values in chosen if rule.id in tests}
    proofs = {name: _alone(group, (tests | beside)[name]) for name, group in (alone | companion_groups(options)).items()}
    return Bundle(files, proofs, tuple(failed))


def _tests_by_rule(chosen: Chosen, options: Options) -> tuple[dict[str, list[dict[str, object]]], list[RuleFault]]:
    """Return the tests of each rule with an alert, and the faults of rules whose alert, page or tests can't be made."""
    tests: dict[str, list[dict[str, object]]] = {}
    failed: list[RuleFault] = []
    for rule, values in chosen:
        if not rule.alert.grades:
            continue
        try:
            with running(rule, "alert", "can't be rendered"):
                alerts_of(rule, values, options)
                runbook_page(rule, values)
            with running(rule, "alert", "its tests can't be built from the rule's own sample ledgers"):
                tests[rule.id] = _sample_tests(rule, values, options)
        except RuleFault as fault:
            failed.append(fault)
    return tests, failed


def _alone(group: Group, tests: list[dict[str, object]]) -> dict[str, str]:
    """Return rule file and tests of one group alone: promtool evaluates every rule in every test."""
    return {
        ALERTS: alerts_yaml([group], Options(), []),
        TESTS: rendered("alerts_test.yaml.j2", header=[], rule_file=ALERTS, tests=tests),
    }


def prove_bundle(bundle: Bundle) -> None:
    """Put a bundle through promtool.

    Raises PromtoolError where there is no promtool, and ConfigError when a rule does not pass:
    then nothing may be shipped.
    """
    problem = check_rules(bundle.files[ALERTS])
    if problem:
        raise ConfigError(f"promtool rejects the generated rules, so nothing was written: {problem}")
    for rule_id, files in bundle.proofs.items():
        differing = run_tests(files, TESTS)
        if differing:
            raise ConfigError(
                f"the alert of rule {rule_id} disagrees with the rule at {len(differing)} evaluations, so "
                f"nothing was written; first: {differing[0].expr} at minute {differing[0].minute}."
            )


def _revisions(chosen: Chosen) -> list[str]:
    revisions = ", ".join(f"{rule.id} {rule.rule.revision}" for rule, _ in chosen if rule.alert.grades)
    changed = [
        f"{rule.id}.{name} = {value.number:g} ({value.origin})"
        for rule, values in chosen
        for name, value in values.items()
        if value.origin != "default" and value.number is not None
    ]
    return [f"Rules and revisions: {revisions}.", *(f"Not the default: {text}" for text in changed)]


def _sample_tests(rule: Rule, values: Values, options: Options) -> list[dict[str, object]]:
    """Return promtool tests from a rule's own sample ledgers."""
    tests: list[dict[str, object]] = []
    for kind in ("fires", "quiet"):
        path = samples_dir() / rule.id / f"{kind}.jsonl"
        if path.is_file():
            tests += _tests_of(rule, values, path, kind, options)
    return tests


def _tests_of(rule: Rule, values: Values, path: Path, kind: str, options: Options) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    alerts = alerts_of(rule, values, options)
    with DuckEngine(known=shipped_mappings(), threads=1) as engine:
        engine.load([LedgerFile(path.name, path)])
        engine.prepare(Settings())
        reduction = reduce_to_minutes(engine, [(rule, values)])
        flagged = [alert_minutes(engine, rule, grade, values, reduction) for grade in rule.alert.grades]
        ledger = EventRows(engine)
        for number, frame in enumerate(frames(engine, reach_minutes(rule, alerts)), start=1):
            judged = [
                expect(alert, grade, minutes, frame)
                for alert, grade, minutes in zip(alerts, rule.alert.grades, flagged, strict=True)
            ]
            series = series_for(ledger, rule, values, alerts, frame)
            found.append({
                "name": f"{rule.id}, {kind}, part {number}",
                "interval": "15s",
                "series": [{"selector": one.selector, "text": stepped_values(one, frame.minutes * 60)} for one in series],
                "checks": [check for expected in judged for check in _checks(expected, frame)],
            })
    return found


def _checks(expected: Expected, frame: Frame) -> list[Check]:
    """Return checks inside and outside of each firing run, two minutes off its edges.

    Prometheus 3 leaves out the left edge of a range, so that at the very edges versions differ;
    what is asserted here holds in all of them.
    """
    wanted: set[int] = set()
    for minutes in expected.firing.values():
        for first, last in runs(minutes):
            wanted |= {first - 3, first + 2, (first + last) // 2, last - 2, last + 3}
    checks: list[Check] = [
        {"expr": expected.selector, "minute": minute - frame.base, "labels": expected.labels_at(minute)}
        for minute in sorted(wanted)
        if frame.base < minute <= frame.last and _settled(expected, minute)
    ]
    if checks:
        return checks
    count = f"count_over_time({expected.selector}[{frame.minutes}m])"
    return [{"expr": count, "minute": frame.minutes, "labels": []}]


def _settled(expected: Expected, minute: int) -> bool:
    """Whether no subject's firing starts or ends within two minutes of this one."""
    return all(
        len({(minute + off) in set(minutes) for off in (-2, -1, 0, 1, 2)}) == 1 for minutes in expected.firing.values()
    )

"""The alerts beside those of the rules, burn rate and silent ledger, and the tests that prove them.

No ledger stands behind their tests: the series are written down, and so is what must follow. Each
has what fires and the near miss that doesn't.
"""

import math
from collections.abc import Iterable

from quietburn.alerts import objective
from quietburn.alerts.groups import AlertRule, Group, Options, firing_labels, ledger_group, objective_group
from quietburn.metrics.contract import LEDGER_LINES, REQUESTS
from quietburn.metrics.samples import number_text
from quietburn.ruleset.severity import Severity

Test = dict[str, object]

_A_MINUTE = 10_000.0  # requests in a test of shares: enough for a threshold to lie between two whole numbers


def companion_groups(options: Options) -> dict[str, Group]:
    """Return the groups by the id that their alerts carry."""
    return {objective.RULE_ID: objective_group(options), objective.SILENT_ID: ledger_group(options)}


def companion_tests(options: Options) -> dict[str, list[Test]]:
    """Return promtool tests of each group's alerts, by the id that they carry."""
    return {objective.RULE_ID: _burn_tests(options), objective.SILENT_ID: _silent_tests(options)}


def _test(name: str, series: dict[str, str], checks: Iterable[tuple[str, int, list[str]]]) -> Test:
    return {
        "name": name,
        "interval": "1m",
        "series": [{"selector": selector, "text": text} for selector, text in series.items()],
        "checks": [{"expr": expr, "minute": minute, "labels": labels} for expr, minute, labels in checks],
    }


def _requests(verdict: str) -> str:
    return f'{REQUESTS}{{route="complete",kind="generate",verdict="{verdict}"}}'


def _burn_tests(options: Options) -> list[Test]:
    page, ticket = objective_group(options).alerts
    both = f'ALERTS{{alertname="{page.name}",alertstate="firing"}}'
    fires = [firing_labels(alert, {"route": "complete"}) for alert in (page, ticket)]
    late, usable = _requests("late"), _requests("usable")
    tests = [
        # Two a minute: twenty judged requests at minute 10, and then `for`.
        _test("the objective, nothing usable was ever counted", {late: "0+2x60"}, [
            (both, 9, []), (both, 20, fires[:1]), (both, 60, fires),
        ]),
        _test("the objective, all usable", {usable: "0+2x120"}, [(both, 60, []), (both, 120, [])]),
        _test("the objective, counters that stand still", {late: "70x120", usable: "50x120"}, [(both, 60, []), (both, 120, [])]),
        _test("the objective, too few requests to judge", {late: "0+1x15 15x60"}, [(both, 15, []), (both, 60, [])]),
    ]
    for alert, severity in ((page, Severity.PAGE), (ticket, Severity.TICKET)):
        tests += _share_tests(alert, objective.burning_share(severity, options.objective))
    return tests


def _share_tests(alert: AlertRule, share: float) -> list[Test]:
    """Return tests on both sides of a burn alert's threshold."""
    own = f'ALERTS{{alertname="{alert.name}",alertstate="firing",severity="{alert.labels["severity"]}"}}'
    over, under = math.ceil(share * _A_MINUTE) + 1, math.floor(share * _A_MINUTE) - 1
    found = []
    for side, late, labels in (("over", over, [firing_labels(alert, {"route": "complete"})]), ("under", under, [])):
        if 0 <= late <= _A_MINUTE:
            series = {_requests("late"): f"0+{late}x90", _requests("usable"): f"0+{number_text(_A_MINUTE - late)}x90"}
            found.append(_test(f"the objective, {alert.labels['severity']}, a share just {side}", series, [(own, 90, labels)]))
    return found


def _silent_tests(options: Options) -> list[Test]:
    (alert,) = ledger_group(options).alerts
    own = f'ALERTS{{alertname="{alert.name}",alertstate="firing"}}'
    fires = [firing_labels(alert, {})]
    used = f'{LEDGER_LINES}{{result="used"}}'
    return [
        _test("a silent ledger, no counter", {}, [(own, 1, []), (own, 5, fires)]),
        _test("a silent ledger, no line for ten minutes", {used: "0+5x20 100x40"}, [
            (own, 20, []), (own, 28, []), (own, 40, fires),
        ]),
        _test("a ledger that is read", {used: "0+1x60"}, [(own, 30, []), (own, 60, [])]),
        _test("a ledger with a line every eight minutes", {used: "0x7 1x7 2x7 3x7 4x7 5x7 6x7"}, [(own, 30, []), (own, 55, [])]),
    ]

"""The usable-answer objective and the silent ledger, by promtool on counters written by hand, one sample a minute."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from quietburn.alerts import objective
from quietburn.alerts.companions import companion_groups, companion_tests
from quietburn.alerts.groups import Group, Options, alerts_yaml, build_groups
from quietburn.alerts.objective import burn_alerts, usable_record
from quietburn.alerts.promtool import Difference, run_tests
from quietburn.alerts.templates import rendered

BURN = 'ALERTS{alertname="LLMGatewayUsableAnswersBurn",alertstate="firing"}'
SILENT = 'ALERTS{alertname="LLMGatewayLedgerSilent",alertstate="firing"}'
SUCCESS = "route:quietburn_attempts:success_ratio_rate5m"
Expected = dict[str, float]


@pytest.fixture
def agree(real_promtool: str, tmp_path: Path) -> Any:
    """Return a check: with these series, each expression has these samples at each minute."""

    def check(series: dict[str, str], wanted: dict[tuple[str, int], Expected], objective: float = 0.99) -> None:
        options = Options(objective=objective)
        (tmp_path / "rules.yaml").write_text(alerts_yaml(build_groups([], options), options, []), encoding="utf-8")
        asked = [
            {
                "expr": expr, "eval_time": f"{minute}m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
            }
            for (expr, minute), samples in wanted.items()
        ]
        test = {
            "rule_files": ["rules.yaml"],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": asked,
            }],
        }
        (tmp_path / "test.yaml").write_text(yaml.safe_dump(test), encoding="utf-8")
        command = [real_promtool, "test", "rules", "test.yaml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return check


def requests(verdict: str, route: str = "complete") -> str:
    return f'quietburn_requests_total{{route="{route}",kind="generate",verdict="{verdict}"}}'


def attempts(code: str) -> str:
    return f'quietburn_attempts_total{{route="complete",kind="generate",code="{code}"}}'


def burning(severity: str, window: str, route: str = "complete") -> str:
    return (
        'ALERTS{alertname="LLMGatewayUsableAnswersBurn",alertstate="firing",'
        f'severity="{severity}",window="{window}",route="{route}",rule_id="usable-answer-objective"}}'
    )


PAGE, TICKET = burning("critical", "1h"), burning("warning", "6h")
SILENT_FIRES = 'ALERTS{alertname="LLMGatewayLedgerSilent",alertstate="firing",severity="warning",rule_id="ledger-silent"}'


def usable(window: str, route: str = "complete") -> str:
    return f'{usable_record(window)}{{route="{route}"}}'


def test_nothing_usable_burns_although_no_usable_answer_was_ever_counted(agree: Any) -> None:
    # Two late answers a minute: twenty judged at minute 10, so the page fires at 12, the ticket at 25.
    agree({requests("late"): "0+2x60"}, {
        (usable_record("5m"), 30): {usable("5m"): 0},
        (usable_record("6h"), 30): {usable("6h"): 0},
        (BURN, 11): {},
        (BURN, 12): {PAGE: 1},
        (BURN, 24): {PAGE: 1},
        (BURN, 25): {PAGE: 1, TICKET: 1},
        (BURN, 60): {PAGE: 1, TICKET: 1},
    })


def test_the_success_rate_is_zero_although_no_success_was_ever_counted(agree: Any) -> None:
    agree({attempts("500"): "0+2x20"}, {(SUCCESS, 20): {f'{SUCCESS}{{route="complete"}}': 0}})


def untold(attempts: str) -> dict[str, str]:
    return {'quietburn_events_total{route="complete",rule="any-outcome-unknown"}': attempts}


def test_the_success_rate_is_over_attempts_whose_outcome_is_known(agree: Any) -> None:
    # A second brings 3 successes, a failure and 2 attempts of which nothing is known: 3 of 4.
    known = {attempts("200"): "0+180x20", attempts("500"): "0+60x20", attempts(""): "0+120x20"}
    agree(known | untold("0+120x20"), {(SUCCESS, 20): {f'{SUCCESS}{{route="complete"}}': 0.75}})
    # Without a status, but with an error: a failure, of whom all is known.
    agree(known, {(SUCCESS, 20): {f'{SUCCESS}{{route="complete"}}': 0.5}})


def test_there_is_no_success_rate_where_the_outcome_of_most_attempts_is_unknown(agree: Any) -> None:
    half = {attempts("200"): "0+60x20", attempts(""): "0+60x20"} | untold("0+60x20")
    agree(half, {(SUCCESS, 20): {f'{SUCCESS}{{route="complete"}}': 1}})
    agree(half | untold("0+120x20") | {attempts(""): "0+120x20"}, {(SUCCESS, 20): {}})


def test_without_any_series_nothing_burns_and_there_is_no_rate(agree: Any) -> None:
    agree({}, {(BURN, 60): {}, (usable_record("1h"), 60): {}, (SUCCESS, 60): {}})


def test_without_traffic_nothing_burns_and_there_is_no_rate_instead_of_nan(agree: Any) -> None:
    flat = {requests("usable"): "50x120", requests("late"): "70x120", attempts("200"): "120x120"}
    agree(flat, {
        (BURN, 30): {}, (BURN, 120): {}, (usable_record("1h"), 120): {}, (usable_record("5m"), 120): {}, (SUCCESS, 120): {},
    })


def test_a_page_ends_five_minutes_after_the_short_window_has_seen_no_request(agree: Any) -> None:
    # The last increase stands at minute 30; the window of minute 35 begins there, so 35 to 39 are kept.
    agree({requests("late"): "0+2x30 60x60"}, {(BURN, 39): {PAGE: 1, TICKET: 1}, (f"{BURN} and {PAGE}", 40): {}})


def test_all_usable_does_not_burn(agree: Any) -> None:
    agree({requests("usable"): "0+2x120"}, {(BURN, 60): {}, (BURN, 120): {}, (usable_record("1h"), 60): {usable("1h"): 1}})


@pytest.mark.parametrize("verdict", ["unknown", "invalid", "abandoned"])
def test_requests_that_nobody_can_judge_burn_nothing_and_have_no_rate(agree: Any, verdict: str) -> None:
    agree({requests(verdict): "0+5x120"}, {(BURN, 60): {}, (BURN, 120): {}, (usable_record("1h"), 120): {}})


def test_unknown_requests_do_not_dilute_the_rate(agree: Any) -> None:
    half = {requests("unknown"): "0+2x60", requests("usable"): "0+1x60", requests("late"): "0+1x60"}
    agree(half, {(usable_record("1h"), 60): {usable("1h"): 0.5}, (BURN, 60): {PAGE: 1, TICKET: 1}})


def test_where_more_than_half_cannot_be_judged_there_is_no_rate_and_nothing_burns(agree: Any) -> None:
    mostly = {requests("unknown"): "0+3x60", requests("usable"): "0+1x60", requests("late"): "0+1x60"}
    agree(mostly, {(usable_record("1h"), 60): {}, (BURN, 60): {}})


def test_nineteen_judged_requests_are_too_few_and_twenty_are_enough(agree: Any) -> None:
    # All late, one a minute. Twenty at minute 20; the short window sees them until 24: firing from 22 on.
    agree({requests("late"): "0+1x19 19x60"}, {(BURN, minute): {} for minute in (19, 21, 22, 24, 40)})
    agree({requests("late"): "0+1x20 20x60"}, {(BURN, 21): {}, (BURN, 22): {PAGE: 1}})


def test_the_page_begins_above_14_4_times_the_budget_and_the_ticket_above_six_times(agree: Any) -> None:
    # One in five unusable is 20 % of a budget of 1 %; one in ten is 10 %, one in twenty 5 %.
    for route, bad in (("fifth", 4), ("tenth", 2), ("twentieth", 1)):
        agree({requests("usable", route): f"0+{20 - bad}x60", requests("empty", route): f"0+{bad}x60"}, {
            (usable_record("1h"), 60): {usable("1h", route): (20 - bad) / 20},
            (BURN, 60): {
                "fifth": {burning("critical", "1h", route): 1, burning("warning", "6h", route): 1},
                "tenth": {burning("warning", "6h", route): 1},
                "twentieth": {},
            }[route],
        })


def test_a_stricter_objective_burns_sooner(agree: Any) -> None:
    twentieth = {requests("usable"): "0+19x60", requests("late"): "0+1x60"}
    agree(twentieth, {(BURN, 60): {}}, objective=0.99)
    agree(twentieth, {(BURN, 60): {PAGE: 1, TICKET: 1}}, objective=0.999)


def test_an_objective_too_low_for_the_factor_still_burns_when_nothing_is_usable(agree: Any) -> None:
    agree({requests("late"): "0+2x60"}, {(BURN, 12): {PAGE: 1}, (BURN, 60): {PAGE: 1, TICKET: 1}}, objective=0.5)
    agree({requests("usable"): "0+1x60", requests("late"): "0+9x60"}, {(BURN, 60): {}}, objective=0.5)


@pytest.mark.parametrize(
    ("objective", "page", "ticket"),
    [
        (0.99, "threshold 14.4 %, 14.4 times the budget", "threshold 6 %, 6 times the budget"),
        (0.9, "threshold 99.9 %)", "threshold 60 %, 6 times the budget"),
    ],
)
def test_a_burn_alert_names_the_threshold_that_it_compares_with(objective: float, page: str, ticket: str) -> None:
    fast, slow = burn_alerts(objective)

    assert page in fast.description
    assert ticket in slow.description


def test_a_route_that_burns_is_told_from_one_that_does_not(agree: Any) -> None:
    agree(
        {requests("late", "chat"): "0+2x60", requests("usable", "embed"): "0+2x60"},
        {(BURN, 30): {burning("critical", "1h", "chat"): 1, burning("warning", "6h", "chat"): 1}},
    )


# The companion: a ledger that nobody reads

LINES = 'quietburn_ledger_lines_total{result="used"}'


def test_the_ledger_is_silent_when_its_counter_does_not_exist(agree: Any) -> None:
    agree({}, {(SILENT, 1): {}, (SILENT, 2): {SILENT_FIRES: 1}, (SILENT, 60): {SILENT_FIRES: 1}})


def test_the_ledger_is_silent_when_its_exporter_goes_away(agree: Any) -> None:
    # The last sample stands at 20, the series is stale at 21: absent from there on, firing two minutes later.
    agree({LINES: "0+10x20 stale _x40"}, {(SILENT, 22): {}, (SILENT, 23): {SILENT_FIRES: 1}, (SILENT, 60): {SILENT_FIRES: 1}})


def test_the_ledger_is_silent_when_no_line_was_read_for_ten_minutes(agree: Any) -> None:
    # The last line is read at minute 20; the window of minute 30 begins there: firing at 32.
    agree({LINES: "0+10x20 200x40"}, {(SILENT, 31): {}, (SILENT, 32): {SILENT_FIRES: 1}, (SILENT, 60): {SILENT_FIRES: 1}})


def test_a_new_exporter_has_ten_minutes_before_its_ledger_is_called_silent(agree: Any) -> None:
    agree({LINES: "0x60"}, {(SILENT, 5): {}, (SILENT, 11): {}, (SILENT, 12): {SILENT_FIRES: 1}})


def test_the_ledger_is_not_silent_while_lines_come(agree: Any) -> None:
    agree({LINES: "0+1x60"}, {(SILENT, minute): {} for minute in (2, 12, 30, 60)})


def test_the_ledger_is_not_silent_with_one_line_every_eight_minutes(agree: Any) -> None:
    agree({LINES: " ".join(f"{n}x7" for n in range(8))}, {(SILENT, minute): {} for minute in (10, 20, 30, 40, 50, 60)})


def test_the_ledger_is_not_silent_while_only_refused_lines_come(agree: Any) -> None:
    agree(
        {LINES: "7x60", 'quietburn_ledger_lines_total{result="quarantined"}': "0+1x60"},
        {(SILENT, minute): {} for minute in (12, 30, 60)},
    )


def test_the_ledger_is_not_silent_when_its_exporter_restarts(agree: Any) -> None:
    agree({LINES: "0+10x20 0+10x40"}, {(SILENT, minute): {} for minute in (21, 25, 32, 60)})


# What a user gets to prove them with

SETTINGS = [Options(), Options(objective=0.999, team='a "team"'), Options(objective=0.5), Options(objective=0.9)]


@pytest.mark.usefixtures("real_promtool")
@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: f"{options.objective:g}")
def test_the_tests_that_are_shipped_with_these_alerts_pass_and_notice_a_broken_one(options: Options) -> None:
    tests = companion_tests(options)
    broken = {
        objective.RULE_ID: [("> 20 - 0.5", "> 10 - 0.5"), (' > 0.', ' > 0.0'), ('verdict="usable"', 'verdict="late"'),
                            ("and on (route) (sum", "or on (route) (sum")],
        objective.SILENT_ID: [("absent(", "sum("), ("< 0.5", "< -1"), ("< 0.5", "< 7"), ("[10m]", "[5m]")],
    }
    for rule_id, group in companion_groups(options).items():
        assert differences(group, tests[rule_id]) == []
        for old, new in broken[rule_id]:
            changed = replace(
                group, alerts=tuple(replace(alert, expr=alert.expr.replace(old, new)) for alert in group.alerts),
                records=tuple(replace(record, expr=record.expr.replace(old, new)) for record in group.records),
            )
            assert changed != group
            assert differences(changed, tests[rule_id]), (rule_id, old, new)


def differences(group: Group, tests: list[dict[str, object]]) -> list[Difference]:
    """Put one group through promtool."""
    text = rendered("alerts_test.yaml.j2", header=[], rule_file="rules.yaml", tests=tests)
    return run_tests({"rules.yaml": alerts_yaml([group], Options(), []), "test.yaml": text}, "test.yaml")

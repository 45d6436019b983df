"""The requirements on a generated alert (alert-facts 2.5), a test a point, over all rule files of both targets."""

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from tests.promtool.proofs import every_rule, open_ledger, samples
from tests.promtool.syntax import (
    COMPARISONS,
    CONTRACT,
    COUNTER_NAMES,
    GAUGE_NAMES,
    SERIES_OF_HISTOGRAMS,
    SET_OPERATORS,
    bare,
    binaries,
    is_condition,
    is_number,
    nodes,
    selectors,
    surviving_labels,
)

from quietburn.alerts.groups import Options, alerts_yaml, build_groups
from quietburn.alerts.promql import bound_expression, longest_range_s, promql_number
from quietburn.alerts.promtool import check_rules
from quietburn.alerts.runbook import runbook_pages
from quietburn.alerts.templates import comment
from quietburn.analysis.run import Request, analyzing, configured_rules
from quietburn.common.config import Config
from quietburn.metrics.contract import COUNTERS, GAUGES, HISTOGRAMS
from quietburn.metrics.samples import STEP_S
from quietburn.ruleset.files import Value

BARE = Options()
FULL = Options(
    runbook_url="https://runbooks.example/quietburn/", dashboard_url="https://grafana.example/d/quietburn", team="ml-serving",
    objective=0.9995,
)
FILES = {
    f"{name}-{target}": replace(options, target=target)
    for name, options in (("bare", BARE), ("full", FULL))
    for target in ("prometheus", "operator")
}
# Functions of Prometheus 2.42 that 3.x has under the same name, as far as an alert may need them.
SAFE_FUNCTIONS = {
    "absent", "absent_over_time", "avg_over_time", "clamp_max", "clamp_min", "count_over_time", "histogram_quantile", "increase",
    "label_replace", "max_over_time", "min_over_time", "rate", "sum_over_time",
}


def made(options: Options, header: list[str] | None = None) -> str:
    """Return the rule file with every rule there is."""
    chosen = configured_rules(Request(config=Config(hourly_token_cap=50_000)))
    return alerts_yaml(build_groups(chosen, options), options, header or [])


@cache
def text_named(name: str) -> str:
    return made(FILES[name], ["From night.jsonl."])


def groups_of(text: str) -> list[dict[str, Any]]:
    """Return the groups of a rule file, wherever its target has them."""
    document = yaml.safe_load(text)
    found: list[dict[str, Any]] = document["spec"]["groups"] if "spec" in document else document["groups"]
    return found


@dataclass(frozen=True)
class Rule:
    """One rule of a file, with its group."""

    group: dict[str, Any]
    content: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.content.get("alert") or self.content.get("record"))

    @property
    def expression(self) -> promql.Expr:
        return promql.parse(self.content["expr"])

    @property
    def records(self) -> dict[str, promql.Expr]:
        """The recording rules of the same group."""
        return {rule["record"]: promql.parse(rule["expr"]) for rule in self.group["rules"] if "record" in rule}

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.content["annotations"]
        return found


def rules_in(text: str) -> list[Rule]:
    return [Rule(group, rule) for group in groups_of(text) for rule in group["rules"]]


def alerts_in(text: str) -> list[Rule]:
    return [rule for rule in rules_in(text) if "alert" in rule.content]


def seconds(duration: str) -> int:
    assert re.fullmatch(r"[1-9][0-9]*[smhd]", duration), duration
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


@pytest.fixture(params=FILES)
def text(request: pytest.FixtureRequest) -> str:
    """Return one rule file: both targets, with and without links and team."""
    return text_named(request.param)


# Structure


def test_every_rule_with_an_alert_is_in_the_file_with_each_of_its_grades(text: str) -> None:
    found = Counter(rule.content["labels"]["rule_id"] for rule in alerts_in(text))

    own = {rule.id: len(rule.alert.grades) for rule in every_rule() if rule.alert.grades}
    assert found == own | {"usable-answer-objective": 2, "ledger-silent": 1}


def test_groups_have_unique_names_an_interval_and_at_most_twenty_rules(text: str) -> None:
    groups = groups_of(text)

    names = [group["name"] for group in groups]
    assert len(set(names)) == len(names)
    for group in groups:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", group["name"])
        assert 20 <= seconds(group["interval"]) <= 300
        assert 1 <= len(group["rules"]) <= 20


def test_groups_have_nothing_that_prometheus_2_42_refuses(text: str) -> None:
    for group in groups_of(text):
        assert set(group) == {"name", "interval", "rules"}
        for rule in group["rules"]:
            assert set(rule) in ({"record", "expr"}, {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"})


def mappings(node: yaml.Node | None) -> list[yaml.MappingNode]:
    assert node is not None
    inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    below = [] if isinstance(node, yaml.ScalarNode) else [found for part in inner for found in mappings(part)]
    return [node, *below] if isinstance(node, yaml.MappingNode) else below


def test_the_file_is_one_document_with_unique_keys_and_no_anchors(text: str) -> None:
    assert len(list(yaml.compose_all(text))) == 1
    for mapping in mappings(yaml.compose(text)):
        keys = [key.value for key, _ in mapping.value]
        assert len(set(keys)) == len(keys)
    assert not [token for token in yaml.scan(text) if isinstance(token, yaml.AnchorToken | yaml.AliasToken)]


def test_every_label_and_annotation_is_a_quoted_string(text: str) -> None:
    checked = 0
    for mapping in mappings(yaml.compose(text)):
        for key, value in mapping.value:
            if key.value in {"labels", "annotations"} and "release" not in {name.value for name, _ in value.value}:
                assert {inner.style for _, inner in value.value} == {'"'}
                checked += 1
    assert checked == 2 * len(alerts_in(text))


def test_an_alert_waits_and_lingers_for_at_most_a_day_in_prometheus_units(text: str) -> None:
    for rule in alerts_in(text):
        assert 0 < seconds(rule.content["for"]) <= 86_400
        assert 0 < seconds(rule.content["keep_firing_for"]) <= 86_400


def test_no_two_alerts_share_name_and_labels(text: str) -> None:
    told = [(rule.name, frozenset(rule.content["labels"].items())) for rule in alerts_in(text)]

    assert len(set(told)) == len(told)


# Names


def test_alert_names_are_camel_case_and_begin_with_the_prefix(text: str) -> None:
    assert [rule.name for rule in alerts_in(text) if not re.fullmatch(r"LLMGateway[A-Z][A-Za-z0-9]+", rule.name)] == []


def test_every_alert_has_a_runbook_page_of_its_own_name_and_links_to_it(text: str) -> None:
    chosen = configured_rules(Request(config=Config(hourly_token_cap=50_000)))
    pages = runbook_pages(chosen, Options())
    assert {f"{rule.name}.md" for rule in alerts_in(text)} | {"README.md"} == set(pages)
    for rule in alerts_in(text):
        link = rule.annotations.get("runbook_url") or rule.annotations["runbook"]
        assert link.rsplit("/", 1)[1] == f"{rule.name}.md"
        assert pages[f"{rule.name}.md"].startswith(f"# {rule.name}\n")
        assert f"]({rule.name}.md)" in pages["README.md"]


def test_recording_rules_say_level_metric_and_operation(text: str) -> None:
    records = [rule.name for rule in rules_in(text) if "record" in rule.content]

    assert records
    for name in records:
        assert re.fullmatch(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+", name)
        assert "_total" not in name
        assert promql.parse(name)


def test_the_level_of_a_recording_rule_is_the_labels_that_it_keeps(text: str) -> None:
    for rule in rules_in(text):
        if "record" in rule.content:
            assert set(rule.name.split(":")[0].split("_")) == surviving_labels(rule.expression, rule.records)


def test_recording_rules_are_used_only_in_their_own_group_and_stand_before_their_use(text: str) -> None:
    for rule in rules_in(text):
        before = [other.get("record") for other in rule.group["rules"][: rule.group["rules"].index(rule.content)]]
        for selector in selectors(rule.expression):
            assert ":" not in (selector.name or "") or selector.name in before


# Labels


def test_severity_is_one_that_alertmanagers_know_and_identity_is_stable(text: str) -> None:
    for rule in alerts_in(text):
        labels = rule.content["labels"]
        assert labels["severity"] in {"critical", "warning", "info"}
        assert re.fullmatch(r"[a-z][a-z0-9-]*", labels["rule_id"])


def test_no_label_is_a_template_so_none_holds_a_changing_value(text: str) -> None:
    for rule in alerts_in(text):
        assert not [value for value in rule.content["labels"].values() if "{{" in value or "$" in value]


def test_static_labels_do_not_overwrite_those_that_tell_series_apart(text: str) -> None:
    for rule in alerts_in(text):
        assert not set(rule.content["labels"]) & surviving_labels(rule.expression, rule.records)


# Annotations


def test_a_summary_is_one_static_sentence(text: str) -> None:
    for rule in alerts_in(text):
        assert re.fullmatch(r"[A-Z][^{}\n]*\.", rule.annotations["summary"])


def test_a_description_says_value_threshold_inference_and_one_command(text: str) -> None:
    for rule in alerts_in(text):
        description = rule.annotations["description"]
        observed, _, rest = description.partition(" Inference: ")
        inference, _, command = rest.partition(" Run: ")
        assert inference.endswith(".")
        assert re.fullmatch(r"(quietburn|systemctl) [^.;&|\n]+", command), command
        if "absent(" not in rule.content["expr"]:  # what is absent has no value
            assert "$value" in observed
            assert "threshold" in observed
        assert "<<" not in description
        assert "not configured" not in description


def test_links_are_absolute_when_known_and_left_out_when_not() -> None:
    for name in FILES:
        for rule in alerts_in(text_named(name)):
            links = {key: value for key, value in rule.annotations.items() if key.endswith("_url")}
            if name.startswith("bare"):
                assert links == {}
            else:
                assert re.fullmatch(r"https://runbooks\.example/quietburn/[A-Za-z-0-9]+\.md", links["runbook_url"])
                assert links["dashboard_url"] == "https://grafana.example/d/quietburn"
            assert all(rule.annotations.values())


def test_templates_name_only_labels_that_survive_the_aggregation(text: str) -> None:
    named = 0
    for rule in alerts_in(text):
        survivors = surviving_labels(rule.expression, rule.records)
        for value in (*rule.annotations.values(), *rule.content["labels"].values()):
            used = set(re.findall(r"\$labels\.([A-Za-z_][A-Za-z0-9_]*)", value))
            assert used <= survivors, (rule.name, used - survivors)
            named += len(used)
    assert named


def test_templates_use_only_what_2_42_and_3_have(text: str) -> None:
    form = re.compile(r"\$labels\.[a-z_]+|\$value( \| (humanize|humanizePercentage|humanizeDuration))?")
    for rule in alerts_in(text):
        for value in rule.annotations.values():
            for inside in re.findall(r"\{\{(.*?)\}\}", value):
                assert form.fullmatch(inside.strip()), inside


def test_a_share_reads_as_a_percentage(text: str) -> None:
    for rule in alerts_in(text):
        divides = any(str(node.op) == "/" and not is_number(node) for node in binaries(rule.expression))
        if divides or ":" in rule.content["expr"]:
            assert "{{ $value | humanizePercentage }}" in rule.annotations["description"]


# Expressions


def test_an_alert_is_a_comparison_without_bool_and_never_unequal(text: str) -> None:
    for rule in alerts_in(text):
        assert is_condition(rule.expression), rule.content["expr"]
        assert not [node for node in binaries(rule.expression) if node.modifier is not None and node.modifier.return_bool]
        assert "!=" not in {str(node.op) for node in binaries(rule.expression)}


def test_every_division_is_guarded_against_nothing(text: str) -> None:
    divisions = 0
    for rule in rules_in(text):
        for node in binaries(rule.expression):
            if str(node.op) == "/" and not is_number(node.rhs):
                guard = bare(node.rhs)
                assert isinstance(guard, promql.BinaryExpr), rule.content["expr"]
                assert str(guard.op) == ">"
                assert is_number(guard.rhs)
                divisions += 1
    assert divisions


def test_every_alert_on_a_share_asks_for_a_count_as_well(text: str) -> None:
    for rule in alerts_in(text):
        shares = any(str(node.op) == "/" and not is_number(node) for node in binaries(rule.expression))
        if shares or ":" in rule.content["expr"]:
            floors = [
                node for node in binaries(rule.expression)
                if str(node.op) == ">" and isinstance(bare(node.lhs), promql.AggregateExpr) and is_floor(node.rhs)
            ]
            assert floors, rule.content["expr"]


def is_floor(node: promql.Expr) -> bool:
    """Whether a number is written `N - 0.5`, since an increase is seldom whole."""
    node = bare(node)
    return isinstance(node, promql.BinaryExpr) and str(node.op) == "-" and str(node.rhs) == "0.5"


def test_rates_are_of_counters_and_taken_before_they_are_added_up(text: str) -> None:
    for rule in rules_in(text):
        for node in nodes(rule.expression):
            if isinstance(node, promql.Call) and node.func.name in {"rate", "increase"}:
                assert isinstance(node.args[0], promql.MatrixSelector)
                assert node.args[0].vector_selector.name in COUNTER_NAMES | SERIES_OF_HISTOGRAMS
            if isinstance(node, promql.Call) and node.func.name == "avg_over_time":
                assert node.args[0].vector_selector.name in GAUGE_NAMES


def test_ranges_hold_at_least_four_scrapes_and_a_minute(text: str) -> None:
    ranges = [
        node.range.total_seconds()
        for rule in rules_in(text) for node in nodes(rule.expression) if isinstance(node, promql.MatrixSelector)
    ]

    assert ranges
    assert min(ranges) >= max(4 * STEP_S, 60)


def test_an_alert_on_single_events_remembers_them_longer_than_it_waits(text: str) -> None:
    for rule in alerts_in(text):
        ranges = [n.range.total_seconds() for n in nodes(rule.expression) if isinstance(n, promql.MatrixSelector)]
        assert all(length >= seconds(rule.content["for"]) + 60 for length in ranges)


def test_only_functions_that_2_42_has_are_called_and_time_is_not(text: str) -> None:
    called = {
        node.func.name for rule in rules_in(text) for node in nodes(rule.expression) if isinstance(node, promql.Call)
    }

    assert called <= SAFE_FUNCTIONS
    assert "time()" not in text
    assert not [node for rule in rules_in(text) for node in nodes(rule.expression) if isinstance(node, promql.SubqueryExpr)]


def test_numbers_from_a_thousand_on_are_written_with_an_exponent(text: str) -> None:
    for rule in rules_in(text):
        bare_text = re.sub(r'"[^"]*"', '""', rule.content["expr"])
        assert re.findall(r"(?<![\w.])[0-9]{4,}", bare_text) == []


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.05, "0.05"), (5, "5"), (999.0, "999"), (999.5, "999.5"), (1000, "1e3"), (50_000, "5e4"), (1234, "1.234e3"),
        (123_456_789, "1.23456789e8"), (0.1234567, "0.1234567"), (1500.25, "1.50025e3"), (0, "0"), (-2500, "-2.5e3"),
    ],
)
def test_a_number_is_written_exactly(number: float, written: str) -> None:
    assert promql_number(number) == written
    assert float(written) == number


@pytest.mark.parametrize(("hours", "written", "length"), [(6, "[6h]", 21_600), (6.5, "[23400s]", 23_400), (0.25, "[900s]", 900)])
def test_hours_are_written_as_a_range_that_prometheus_reads(hours: float, written: str, length: int) -> None:
    bound = bound_expression("increase(quietburn_requests_total[$seen:h])", {"seen": Value(hours, "--set")})

    assert bound == f"increase(quietburn_requests_total{written})"
    assert longest_range_s([bound, "increase(quietburn_requests_total[1m])"]) == length
    assert promql.parse(bound)


def test_every_selector_names_a_metric_of_the_contract_or_a_recording_rule_of_its_group(text: str) -> None:
    for rule in rules_in(text):
        for selector in selectors(rule.expression):
            assert selector.name in CONTRACT | set(rule.records), selector


def test_regular_expressions_stand_only_where_an_equality_would_not_do(text: str) -> None:
    for rule in rules_in(text):
        for selector in selectors(rule.expression):
            for matcher in selector.matchers.matchers:
                if matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe):
                    assert re.search(r"[|.*+\[]", matcher.value), f"{matcher} is an equality"
                    assert not matcher.value.startswith("^")
                    assert not matcher.value.endswith("$")


def test_labels_of_both_sides_are_known_wherever_vectors_meet(text: str) -> None:
    for rule in rules_in(text):
        for node in binaries(rule.expression):
            surviving_labels(node, rule.records)  # fails where sides of different labels meet unsaid
            vectors = not is_number(node.lhs) and not is_number(node.rhs)
            if vectors and str(node.op) in SET_OPERATORS - {"or"}:
                assert node.modifier is not None
                assert node.modifier.matching is not None, f"{node}: say on which labels"
            if not vectors and str(node.op) in COMPARISONS:
                assert is_number(node.rhs), f"{node}: the number stands on the right"


# Files


def test_both_targets_hold_the_same_groups() -> None:
    for name in ("bare", "full"):
        assert groups_of(text_named(f"{name}-operator")) == groups_of(text_named(f"{name}-prometheus"))


def test_the_operator_form_is_a_prometheus_rule_that_a_selector_can_find() -> None:
    document = yaml.safe_load(text_named("full-operator"))

    assert document["apiVersion"] == "monitoring.coreos.com/v1"
    assert document["kind"] == "PrometheusRule"
    assert document["metadata"] == {"name": "quietburn", "labels": {"release": "kube-prometheus-stack"}}
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(document["spec"]) == {"groups"}


@pytest.mark.usefixtures("real_promtool")
def test_promtool_has_nothing_against_a_rule_file_with_every_lint_on(text: str) -> None:
    assert check_rules(yaml.safe_dump({"groups": groups_of(text)})) is None
    if "kind:" not in text:
        assert check_rules(text) is None


# Hostile strings

STRINGS = {
    "quotes": "\"it's\" \\ \\n",
    "newline": "a\n- b: c\r\n",
    "template": "{{ $value }} {{{ }} {{/* x",
    "colon": "a: b: ",
    "hash": "a # b",
    "controls": "\x00\x07\x1b[31m\x7f\x85",
    "line-separators": "a\u2028b\u2029c\ufeff",
    "beyond-bmp": "fire \U0001f525 \U0010fffd",
    "yaml": "!!python/object:x &a *a [1, {",
    "indicators": "@`%|>-",
    "lone-surrogate": "a\udcffb",
}
HOSTILE = [pytest.param(string, id=name) for name, string in STRINGS.items()]


def as_written(string: str) -> str:
    """Return what can be kept of a string: a byte that was no UTF-8 is no character."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", string)


@pytest.mark.usefixtures("real_promtool")
@pytest.mark.parametrize("string", HOSTILE)
@pytest.mark.parametrize("target", ["prometheus", "operator"])
def test_hostile_team_and_addresses_leave_the_file_as_it_is_but_for_their_own_values(target: str, string: str) -> None:
    options = Options(
        target=target, team=string, runbook_url=f"https://r.example/{string}", dashboard_url=f"https://d.example/{string}"
    )
    usual = groups_of(made(replace(options, team="t", runbook_url="https://r.example/", dashboard_url="https://d.example/")))

    groups = groups_of(made(options))

    assert check_rules(yaml.safe_dump({"groups": groups}, allow_unicode=False)) is None
    for group, other in zip(groups, usual, strict=True):
        for rule, plain in zip(group["rules"], other["rules"], strict=True):
            own = {"labels": ("team",), "annotations": ("runbook_url", "dashboard_url")}
            for part, names in own.items():
                for name in names if part in rule else ():
                    assert as_written(string).split("{{")[0].rstrip("/") in rule[part].pop(name)
                    plain[part].pop(name)
            assert rule == plain


@pytest.mark.usefixtures("real_promtool")
@pytest.mark.parametrize("string", HOSTILE)
def test_prometheus_gives_a_hostile_team_and_address_back_as_they_were(real_promtool: str, string: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(made(Options(team=string, runbook_url=f"https://r.example/{string}#")), encoding="utf-8")
    labels = {"severity": "warning", "rule_id": "ledger-silent", "team": as_written(string)}
    silent = next(rule for rule in alerts_in(text_named("bare-prometheus")) if rule.name == "LLMGatewayLedgerSilent")
    annotations = {key: value for key, value in silent.annotations.items() if key != "runbook"}
    annotations["runbook_url"] = f"https://r.example/{as_written(string)}#/LLMGatewayLedgerSilent.md"
    expected = [{"exp_labels": labels, "exp_annotations": annotations}]
    asked = {"eval_time": "3m", "alertname": silent.name, "exp_alerts": expected}
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [], "alert_rule_test": [asked]}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test, allow_unicode=False), encoding="utf-8")

    done = subprocess.run(
        [real_promtool, "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("string", HOSTILE)
def test_hostile_names_of_ledgers_stay_inside_their_comment(string: str) -> None:
    text = made(BARE, [f"Numbers are taken from {string}.jsonl.", "And so on."])

    assert [line for line in text.splitlines() if line.startswith("#")] == text.splitlines()[:2]
    assert groups_of(text) == groups_of(text_named("bare-prometheus"))
    assert text.isascii() or comment(text.splitlines()[0]) == text.splitlines()[0]


@pytest.mark.usefixtures("real_promtool")
def test_an_alert_is_proven_for_a_backend_with_a_hostile_name(tmp_path: Path) -> None:
    name = 'gpu"\\\n{{ $value }}: #\t\r\U0001f525\x7f'
    lines = samples("saturation", "fires")[0].read_text(encoding="utf-8")
    ledger = tmp_path / "hostile.jsonl"
    ledger.write_text(lines.replace('"gpu-a"', json.dumps(name)), encoding="utf-8")

    with open_ledger("saturation", ledger) as opened:
        verdicts = opened.prove()

    assert [(sorted(v.missed), sorted(v.false)) for v in verdicts] == [([], [])]
    assert {dict(subject)["backend"] for v in verdicts for subject, _ in v.actual} == {name}


def test_no_text_of_a_ledger_enters_an_expression(tmp_path: Path) -> None:
    lines = samples("saturation", "fires")[0].read_text(encoding="utf-8")
    ledger = tmp_path / "hostile.jsonl"
    for fields in ('"gpu-a"', '"complete"'):
        lines = lines.replace(fields, json.dumps('x"} or vector(1) #\n\x07'))
    ledger.write_text(lines + '{"ts": 1788833640, "route": "complete", "status": 200}\n', encoding="utf-8")

    with analyzing([str(ledger)], Request(config=Config(hourly_token_cap=50_000))) as analysis:
        text = alerts_yaml(build_groups(analysis.rules, BARE), BARE, [])

    assert groups_of(text) == groups_of(text_named("bare-prometheus"))


# The contract's exposition


def test_every_metric_that_alerts_use_has_one_name_and_its_kind_in_it() -> None:
    names = [metric.name for metric in (*COUNTERS, *HISTOGRAMS, *GAUGES)]

    assert len(set(names)) == len(names)
    assert all(name.startswith("quietburn_") for name in names)
    assert [name for name in names if name.endswith("_total")] == [counter.name for counter in COUNTERS]


def test_promtool_has_nothing_against_the_names_and_help_texts_of_the_contract(real_promtool: str) -> None:
    lines = []
    for counter in COUNTERS:
        lines += [f"# HELP {counter.name} {counter.help}", f"# TYPE {counter.name} counter", f"{counter.name} 0"]
    for gauge in GAUGES:
        lines += [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} gauge", f"{gauge.name} 0"]
    for histogram in HISTOGRAMS:
        name = histogram.name
        lines += [f"# HELP {name} {histogram.help}", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="1.0"}} 0', f'{name}_bucket{{le="+Inf"}} 0', f"{name}_sum 0", f"{name}_count 0"]

    done = subprocess.run(
        [real_promtool, "check", "metrics"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

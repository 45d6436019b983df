"""One rule that fails, in whatever part, is named with that part and costs no other rule its verdict."""

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.promtool.real import require_promtool
from tests.rules.helpers import RULE_IDS, RULES, ledger_path, rule

from quietburn.analysis.run import Request, analyze
from quietburn.cli import main as cli
from quietburn.ruleset.files import load_rule
from quietburn.ruleset.guard import RuleFault
from quietburn.ruleset.rule import Rule
from quietburn.ruleset.sentences import Sentences, number, percent

# By place: what stands in the rule file, what makes it fail, and the part that must be named.
BROKEN = {
    "minutes.waiting": ("queue_age_ms > $wait_ms THEN 1", "no_such_column > $wait_ms THEN 1", "minutes"),
    "window.flag": (">= $min_requests AND", ">= $min_requests AND no_such_function(cpu_5m) AND", "window"),
    "window.observed": ('"cpu_5m"', "\"CAST('none' AS INTEGER)\"", "window"),
    "window.text": ('"cpu_5m"', "\"'a text where a number belongs'\"", "rule"),
    "finding.evidence": ('evidence = "served_after_wait"', 'evidence = "no_such_column > $wait_ms"', "finding.evidence"),
    "finding.no_evidence": ('evidence = "served_after_wait"', 'evidence = "FALSE"', "finding.evidence"),
    "finding.inference": ('inference = "', 'inference = "{{ 1 // 0 }} ', "finding.inference"),
    "finding.action": ('action = "', 'action = "{{ no_such_value }} ', "finding.action"),
    "classify.sql": ("FROM events", "FROM no_such_table", "classify.sql"),
    "classify.suspects": ('sql = ', 'suspects = "SELECT no_such_column FROM events"\nsql = ', "classify.suspects"),
    "classify.flag": ('flag = "events_5m >= 1"', 'flag = "no_such_function(events_5m)"', "classify.grades"),
    "classify.inference": ('inference = "', 'inference = "{{ inflight.no.such }} ', "finding.inference"),
}


def broken_rule(place: str, folder: Path) -> Rule:
    """Return the rule `saturation` (or, of event rules, `over-envelope`) under another name, failing in one place."""
    name = "over-envelope" if place.startswith("classify") else "saturation"
    text = (RULES / f"{name}.toml").read_text(encoding="utf-8")
    text = text.replace(f'id = "{name}"', 'id = "broken-rule"').replace("LLMGatewayOverEnvelope", "LLMGatewayBroken")
    text = text.replace("LLMGatewaySaturation", "LLMGatewayBroken").replace(", required = true", ", default = 0")
    text = text.replace("decision = 'allow' AND inflight >=", "COALESCE(inflight, 0) >=")  # so that it fires on any ledger
    text = text.replace('needs = ["ts", "inflight", "decision"]', 'needs = ["ts"]')
    old, new, _ = BROKEN[place]
    assert old in text, place
    path = folder / "broken-rule.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return load_rule(path)


def command(monkeypatch: pytest.MonkeyPatch, rules: tuple[Rule, ...], *arguments: str) -> Any:
    """Run the command with these rules for the shipped ones and return its exit status."""
    monkeypatch.setattr("quietburn.analysis.run.shipped_rules", lambda: rules)
    monkeypatch.setattr(sys, "argv", ["quietburn", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


@pytest.mark.parametrize("place", BROKEN)
def test_a_rule_of_which_a_part_fails_is_errored_and_costs_no_other_rule_its_verdict(place: str, tmp_path: Path) -> None:
    others = tuple(rule(rule_id) for rule_id in RULE_IDS)
    ledger = str(ledger_path("saturation", "fires"))
    healthy = analyze([ledger], Request(rules=others))

    report = analyze([ledger], Request(rules=(broken_rule(place, tmp_path), *others)))

    assert [error.rule for error in report.errored] == ["broken-rule"]
    assert report.errored[0].problem.startswith(f"{BROKEN[place][2]}: ")
    assert (report.findings, report.quiet, report.not_evaluated) == (healthy.findings, healthy.quiet, healthy.not_evaluated)
    assert "saturation" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("place", BROKEN)
def test_analyze_exits_undecided_and_names_the_rule_that_failed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = (broken_rule(place, tmp_path), rule("saturation"), rule("late-but-200"))

    status = command(monkeypatch, every, "analyze", str(ledger_path("saturation", "fires")), "--format", "json")
    printed = capsys.readouterr()

    assert status == 3
    assert "broken-rule" in printed.err
    assert "Traceback" not in printed.err
    report = json.loads(printed.out)
    assert [error["rule"] for error in report["errored"]] == ["broken-rule"]
    assert "saturation" in {finding["rule"] for finding in report["findings"]}


@pytest.mark.parametrize("place", ["finding.inference", "finding.evidence", "classify.sql"])
def test_gate_exits_undecided_and_names_the_rule_that_failed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = (broken_rule(place, tmp_path), rule("saturation"))
    ledger = str(ledger_path("saturation", "fires"))

    status = command(monkeypatch, every, "gate", ledger, "--max-gap", "100%", "--format", "json")
    report = json.loads(capsys.readouterr().out)

    assert status == 3
    outcomes = {entry["rule"]: entry["outcome"] for entry in report["rules"]}
    assert outcomes == {"broken-rule": "errored", "saturation": "fired"}


@pytest.mark.parametrize("place", ["finding.inference", "finding.evidence", "classify.sql"])
def test_alerts_writes_those_of_the_other_rules_and_exits_undecided(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_promtool()
    every = (broken_rule(place, tmp_path), rule("saturation"))
    ledger = str(ledger_path("saturation", "fires"))

    status = command(monkeypatch, every, "alerts", ledger, "--out", str(tmp_path / "out"))

    assert status == 3
    assert f"rule broken-rule failed, so its alert is left out: {BROKEN[place][2]}: " in capsys.readouterr().err
    written = (tmp_path / "out" / "alerts.yaml").read_text(encoding="utf-8")
    assert "LLMGatewaySaturation" in written
    assert "LLMGatewayBroken" not in written


def test_an_alert_that_cannot_be_rendered_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (RULES / "saturation.toml").read_text(encoding="utf-8").replace('id = "saturation"', 'id = "broken-rule"')
    text = text.replace("LLMGatewaySaturation", "LLMGatewayBroken")
    text = text.replace("waiting_share = { default = 0.20,", "waiting_share = {")
    assert "waiting_share = { unit" in text
    (tmp_path / "broken-rule.toml").write_text(text, encoding="utf-8")
    every = (load_rule(tmp_path / "broken-rule.toml"), rule("late-but-200"))  # its $waiting_share has no number

    status = command(monkeypatch, every, "alerts", "--out", str(tmp_path / "out"), "--unproven")

    assert status == 3
    assert "rule broken-rule failed, so its alert is left out: alert: can't be rendered" in capsys.readouterr().err
    written = (tmp_path / "out" / "alerts.yaml").read_text(encoding="utf-8")
    assert "LLMGatewayLateBut200" in written
    assert "LLMGatewayBroken" not in written


def test_export_leaves_out_what_a_failed_rule_counts_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = (broken_rule("window.flag", tmp_path), rule("late-but-200"))
    made = tmp_path / "t.prom"

    status = command(monkeypatch, every, "export", str(ledger_path("saturation", "fires")), "--textfile", str(made))

    assert status == 3
    assert f"rule broken-rule failed, so its events are left out: {BROKEN['window.flag'][2]}: " in capsys.readouterr().err
    written = made.read_text(encoding="utf-8")
    assert "quietburn_requests_total{" in written
    assert "served-after-wait" not in written  # an event of the rule that failed


@pytest.mark.parametrize("place", ["window.flag", "finding.evidence"])
def test_backtest_judges_the_other_alerts_and_exits_undecided(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_promtool()
    every = (broken_rule(place, tmp_path), rule("saturation"))

    status = command(monkeypatch, every, "backtest", str(ledger_path("saturation", "fires")), "--format", "json")
    result = json.loads(capsys.readouterr().out)

    # Evidence is nothing that an alert stands on.
    assert (status, list(result["errored"])) == ((3, ["broken-rule"]) if place == "window.flag" else (0, []))
    assert {"saturation"} <= {alert["rule"] for alert in result["alerts"]}


# Sentences


VALUES = (None, 0, -1.0, -7_500.25, 0.5, 1, 1_234_567.0, 1e300)


@pytest.mark.parametrize("rule_id", RULE_IDS)
def test_every_sentence_is_sensible_whatever_is_observed(rule_id: str) -> None:
    names = [*rule(rule_id).observed_names, *((f"p50_{name}",) if (name := rule(rule_id).finding.measure_name) else ())]
    sentences = Sentences(rule(rule_id))
    alike: list[dict[str, float | None]] = [dict.fromkeys(names, value) for value in VALUES]
    one_apart = [dict[str, float | None](dict.fromkeys(names, 2.0)) | {name: v} for name, v in product(names, VALUES)]
    for observed in (*alike, *one_apart):
        for text in (sentences.inference(observed), sentences.action(observed)):
            for nonsense in ("None", "nan", "inf ", "{", "}", "  ", "-0 ", "True", "False", "- "):
                assert nonsense not in text, (observed, text)
            assert text[:1].isupper()
            assert text.endswith(".")


def test_numbers_read_as_people_write_them() -> None:
    assert number(1_234_567.4, 1, "ms") == "1,234,567.4 ms"
    assert number(12.0, 1) == "12"
    assert number(-0.04, 1) == "0"
    assert number(1e300, unit="s") == "1e+300 s"
    assert number(None, 1, "ms") == "an unknown number of ms"
    assert number(None) == "an unknown number"
    assert percent(0.125) == "12.5 %"
    assert percent(None) == "an unknown share"


def test_a_sentence_that_fails_names_its_rule_and_key(tmp_path: Path) -> None:
    with pytest.raises(RuleFault, match=r"^rule broken-rule: finding.inference: can't be rendered \(ZeroDivisionError\)$"):
        Sentences(broken_rule("finding.inference", tmp_path)).inference({})

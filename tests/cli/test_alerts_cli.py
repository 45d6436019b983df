"""`alerts` and `backtest` in the real program: files, their currency, proof or the lack of it, calls that can't be used."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import Done, environment, is_one_line, run, run_all, run_without_rights
from tests.promtool.real import require_promtool

from quietburn.alerts import bundle
from quietburn.alerts.bundle import build_bundle
from quietburn.alerts.groups import Options
from quietburn.analysis.run import Request, analyzing
from quietburn.cli.commands.alerts_command import alerts as write_alerts

ROOT = Path(__file__).resolve().parents[2]
NIGHT = str(ROOT / "fixtures" / "ledgers" / "short_night.jsonl")
ONE = ("--only", "late-but-200")
PAGE = "runbook/LLMGatewayLateBut200.md"
PAGES = [PAGE, "runbook/LLMGatewayLedgerSilent.md", "runbook/LLMGatewayUsableAnswersBurn.md", "runbook/README.md"]
FILES = ["alerts.yaml", "alerts_test.yaml", "inhibit.yaml", *PAGES, "scrape.yaml"]


@pytest.fixture
def real_promtool() -> str:
    return require_promtool()


@pytest.fixture
def without_promtool(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which no promtool is found."""
    empty = tmp_path / "no-programs"
    empty.mkdir()
    return environment(PATH=str(empty))


@pytest.fixture
def refusing_promtool(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose promtool refuses every rule file."""
    folder = tmp_path / "programs"
    folder.mkdir()
    fake = folder / "promtool"
    fake.write_text("#!/bin/sh\necho 'rules: group quietburn-answers is bad' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    return environment(PATH=str(folder))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def alerts_of(folder: Path, name: str = "alerts.yaml") -> list[dict[str, Any]]:
    document = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
    groups = document["spec"]["groups"] if "spec" in document else document["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def written(cwd: Path, env: dict[str, str] | None, *arguments: str) -> Done:
    """Run `alerts` on one rule into `out`, proven in the usual environment only; it must succeed."""
    proof = () if env is None else ("--unproven",)
    done = run(cwd, "alerts", *ONE, "--out", "out", *proof, *arguments, env=env)
    assert (done.status, done.out) == (0, ""), done.err
    return done


# What is written


def test_without_a_ledger_the_alerts_have_default_numbers_and_are_proven_before_they_are_written(
    tmp_path: Path, real_promtool: str
) -> None:
    done = written(tmp_path, None)

    assert done.err == "quietburn: 8 files in out, proven by promtool.\n"
    assert sorted(tree(tmp_path / "out")) == sorted(FILES)
    header = (tmp_path / "out" / "alerts.yaml").read_text(encoding="utf-8").splitlines()[:3]
    assert "see nothing unless the ledger is exported" in header[0]
    assert header[1] == "# No ledger was given: the numbers are rule defaults and configured values."
    assert header[2] == "# Rules and revisions: late-but-200 1."
    as_they_lie = subprocess.run(
        [real_promtool, "test", "rules", "alerts_test.yaml"], cwd=tmp_path / "out", capture_output=True, text=True, check=False
    )
    assert as_they_lie.returncode == 0, as_they_lie.stdout + as_they_lie.stderr


@pytest.mark.usefixtures("real_promtool")
def test_with_a_ledger_the_header_names_it_and_its_span(tmp_path: Path) -> None:
    done = written(tmp_path, None, NIGHT)

    assert done.err == "quietburn: 8 files in out, proven by promtool.\n"
    header = (tmp_path / "out" / "alerts.yaml").read_text(encoding="utf-8").splitlines()[1]
    assert header.startswith(f"# Numbers that depend on the ledger come from it: {NIGHT} (2026-09-06T20:00:00")
    assert header.endswith("Z).")


def test_numbers_that_are_not_the_default_stand_in_header_expression_and_description(
    tmp_path: Path, without_promtool: dict[str, str]
) -> None:
    written(tmp_path, without_promtool, "--set", "late-but-200.late_share=0.04")

    assert "# Not the default: late-but-200.late_share = 0.04 (--set)\n" in (tmp_path / "out" / "alerts.yaml").read_text()
    page = next(rule for rule in alerts_of(tmp_path / "out") if rule["alert"] == "LLMGatewayLateBut200")
    assert ">= 0.04" in page["expr"]
    assert "threshold 4 %" in page["annotations"]["description"]


def test_the_same_call_writes_the_same_bytes_from_any_folder_and_with_any_hash_seed(
    tmp_path: Path, without_promtool: dict[str, str]
) -> None:
    trees = []
    for name, seed in (("first", "1"), ("second", "2")):
        cwd = tmp_path / name
        cwd.mkdir()
        written(cwd, without_promtool | {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo" if seed == "2" else "UTC"}, NIGHT)
        trees.append(tree(cwd / "out"))

    assert trees[0] == trees[1]
    assert sorted(trees[0]) == sorted(FILES)


def test_the_same_bytes_come_out_whatever_the_number_of_threads() -> None:
    made = []
    for threads in (1, 2, 5):
        with analyzing([NIGHT], Request(only=("late-but-200", "saturation"), threads=threads)) as analysis:
            made.append(build_bundle(analysis.rules, Options(), ["origin"]).files)

    assert made[0] == made[1] == made[2]


def test_writing_again_leaves_no_file_beside_and_the_same_bytes(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    written(tmp_path, without_promtool)
    before = tree(tmp_path / "out")

    written(tmp_path, without_promtool)

    assert tree(tmp_path / "out") == before


def test_for_the_operator_a_prometheus_rule_is_added(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    written(tmp_path, without_promtool, "--target", "operator")

    assert sorted(tree(tmp_path / "out")) == sorted([*FILES, "prometheusrule.yaml"])
    resource = yaml.safe_load((tmp_path / "out" / "prometheusrule.yaml").read_text(encoding="utf-8"))
    assert resource["kind"] == "PrometheusRule"
    assert alerts_of(tmp_path / "out", "prometheusrule.yaml") == alerts_of(tmp_path / "out")


def test_team_and_addresses_stand_in_every_alert(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    written(
        tmp_path, without_promtool, "--team", "ml-serving", "--runbook-url", "https://runbooks.example/llm/",
        "--dashboard-url", "https://grafana.example/d/1", "--target", "operator",
    )

    for name in ("alerts.yaml", "prometheusrule.yaml"):
        for rule in alerts_of(tmp_path / "out", name):
            assert rule["labels"]["team"] == "ml-serving"
            assert rule["annotations"]["runbook_url"].startswith("https://runbooks.example/llm/")
            assert "//" not in rule["annotations"]["runbook_url"].removeprefix("https://")
            assert rule["annotations"]["dashboard_url"] == "https://grafana.example/d/1"


def test_without_addresses_the_alerts_name_the_runbook_s_file_which_is_there(
    tmp_path: Path, without_promtool: dict[str, str]
) -> None:
    written(tmp_path, without_promtool)

    found = alerts_of(tmp_path / "out")
    assert {rule["annotations"]["runbook"] for rule in found} | {"runbook/README.md"} == set(PAGES)
    for rule in found:
        assert (tmp_path / "out" / rule["annotations"]["runbook"]).is_file()
        assert not {"runbook_url", "dashboard_url", "team"} & {*rule["annotations"], *rule["labels"]}


def test_the_objective_moves_the_burn_alerts(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    written(tmp_path, without_promtool, "--objective", "99.9%")

    burns = [rule["expr"] for rule in alerts_of(tmp_path / "out") if rule["labels"]["rule_id"] == "usable-answer-objective"]
    assert [">" in expr and limit in expr for expr, limit in zip(burns, ("> 0.0144)", "> 0.006)"), strict=True)] == [True, True]


# Current or stale


def test_check_is_silent_success_when_the_folder_is_current_and_names_what_is_stale(
    tmp_path: Path, without_promtool: dict[str, str]
) -> None:
    written(tmp_path, without_promtool)
    current = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", env=without_promtool)
    page = tmp_path / "out" / PAGE
    page.write_text(page.read_text(encoding="utf-8") + "x", encoding="utf-8")
    (tmp_path / "out" / "scrape.yaml").unlink()
    before = tree(tmp_path / "out")

    stale = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", env=without_promtool)
    quiet = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", "--quiet", env=without_promtool)

    assert (current.status, current.out, current.err) == (0, "", "")
    assert (stale.status, stale.out) == (1, "")
    assert is_one_line(stale.err)
    assert f"scrape.yaml, {PAGE}" in stale.err
    assert (quiet.status, quiet.out, quiet.err) == (1, "", "")
    assert tree(tmp_path / "out") == before


def test_check_of_a_folder_that_is_not_there_is_stale_and_makes_none(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    done = run(tmp_path, "alerts", *ONE, "--out", "none", "--check", env=without_promtool)

    assert done.status == 1
    assert not (tmp_path / "none").exists()


def test_check_with_other_numbers_is_stale(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    written(tmp_path, without_promtool)

    done = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", "--set", "late-but-200.min_late=6", env=without_promtool)

    assert done.status == 1
    assert "alerts.yaml" in done.err


# Calls that can't be used


def test_calls_that_cannot_be_used_say_why_in_one_line_and_write_nothing(tmp_path: Path) -> None:
    calls = {
        ("--runbook-url", "runbooks/llm"): "--runbook-url 'runbooks/llm': write an absolute URL",
        ("--runbook-url", ""): "--runbook-url '': write an absolute URL",
        ("--dashboard-url", "grafana.example/d/1"): "--dashboard-url 'grafana.example/d/1': write an absolute URL",
        ("--objective", "100%"): "--objective '100%': write a share between 0 and 100 %",
        ("--objective", "0"): "--objective '0': write a share between 0 and 100 %",
        ("--objective", "most"): "--objective",
        ("--only", "no-such-rule"): "no rule 'no-such-rule'",
        ("--set", "late-but-200.no_such=1"): "no parameter 'no_such'",
        ("none.jsonl",): "none.jsonl",
    }

    done = run_all(tmp_path, [("alerts", "--out", "out", *call) for call in calls])

    for (call, words), one in zip(calls.items(), done, strict=True):
        assert (one.status, one.out) == (2, ""), call
        assert is_one_line(one.err), (call, one.err)
        assert words in one.err, call
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line_and_status_two(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "runbook").write_text("mine", encoding="utf-8")
    before = tree(tmp_path)

    for place in ("file", "file/below", "half"):
        done = run(tmp_path, "alerts", *ONE, "--out", place, "--unproven", env=without_promtool)
        assert (done.status, done.out) == (2, "")
        assert is_one_line(done.err)
        assert f"--out {place}" in done.err

    assert tree(tmp_path) == before


def test_a_folder_without_the_right_to_write_is_one_line_and_status_two(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)

    done = run_without_rights(tmp_path, "alerts", *ONE, "--out", "closed/out", "--unproven")

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert "--out closed/out" in done.err


# Proof, or the lack of it


def test_without_promtool_nothing_is_written_unless_that_is_asked_for(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    refused = run(tmp_path, "alerts", *ONE, "--out", "out", env=without_promtool)
    there = (tmp_path / "out").exists()
    asked = written(tmp_path, without_promtool)

    assert (refused.status, refused.out, there) == (2, "", False)
    assert is_one_line(refused.err)
    assert "apt-get install prometheus" in refused.err
    assert "--unproven" in refused.err
    assert is_one_line(asked.err)
    assert "NOT proven" in asked.err
    assert "promtool" in asked.err
    assert sorted(tree(tmp_path / "out")) == sorted(FILES)


def test_the_page_of_an_alert_that_is_written_no_longer_is_named_and_left_alone(
    tmp_path: Path, without_promtool: dict[str, str]
) -> None:
    written(tmp_path, without_promtool, "--only", "saturation")
    again = written(tmp_path, without_promtool)
    kept = (tmp_path / "out" / "runbook" / "LLMGatewaySaturation.md").exists()
    done = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", env=without_promtool)
    (tmp_path / "out" / "runbook" / "notes.md").write_text("mine", encoding="utf-8")
    (tmp_path / "out" / "runbook" / "LLMGatewaySaturation.md").unlink()
    current = run(tmp_path, "alerts", *ONE, "--out", "out", "--check", env=without_promtool)

    assert kept
    assert "LLMGatewaySaturation.md belongs to an alert that no longer exists" in again.err
    assert (done.status, done.out) == (1, "")
    assert is_one_line(done.err)
    assert "runbook/LLMGatewaySaturation.md" in done.err
    assert (current.status, current.err) == (0, "")


def test_rules_that_promtool_refuses_are_not_written_and_what_was_there_stays(
    tmp_path: Path, refusing_promtool: dict[str, str], without_promtool: dict[str, str]
) -> None:
    written(tmp_path, without_promtool)
    before = tree(tmp_path / "out")

    over = run(tmp_path, "alerts", *ONE, "--out", "out", "--team", "new", env=refusing_promtool)
    fresh = run(tmp_path, "alerts", *ONE, "--out", "fresh", env=refusing_promtool)

    for done in (over, fresh):
        assert (done.status, done.out) == (2, "")
        assert is_one_line(done.err)
        assert "nothing was written" in done.err
        assert "group quietburn-answers is bad" in done.err
    assert tree(tmp_path / "out") == before
    assert not (tmp_path / "fresh").exists()


# backtest


@pytest.mark.usefixtures("real_promtool")
def test_backtest_tells_pages_and_minutes_of_the_night_by_rule(tmp_path: Path) -> None:
    """Callers leave in two stretches of the night, as the labs' own callers counted (docs/drills.md).

    Two crowds: 31 of 32 left at 20:45, and again at 20:46. All had an answer within their minute, so a window of
    five minutes holds at least five of them from 20:46 to 20:51: 6 minutes flagged. The page waits two (20:48) and
    stays five longer (20:56): 9 minutes. A slow backend: 8 of 8 left at 21:30:00, 21:30:45, 21:31:30 and 21:32:15,
    three seconds before their answers. Flagged from 21:31 to 21:37: 7 minutes; firing from 21:33 to 21:42: 10. Between
    them, a gateway with a bound loses 2 of its 32 callers at 21:00 and 21:01, which is under the five of a page.
    """
    table, printed = run_all(tmp_path, [
        ("backtest", NIGHT, "--only", "late-but-200", "--only", "saturation"), ("backtest", NIGHT, *ONE, "--format", "json"),
    ])

    assert (table.status, table.err) == (0, "")
    rows = [line.split() for line in table.out.splitlines()]
    assert " ".join(rows[0]) == "rule severity pages a night flagged min firing min matched missed false"
    assert ["late-but-200", "critical", "2", "2", "13", "19", "19", "0", "0"] in rows
    assert ["saturation", "critical", "0", "0", "0", "0", "0", "0", "0"] in rows
    assert "over 1 night, by promtool; minutes are summed over subjects" in table.out
    assert (printed.status, printed.err) == (0, "")
    page, ticket = printed.report["alerts"]
    assert page == {
        "rule": "late-but-200", "severity": "critical", "pages": 2, "pages_a_night": 2, "minutes_flagged": 13,
        "minutes_firing": 19, "matched": 19, "missed": 0, "false": 0,
    }
    assert (ticket["severity"], ticket["pages"], ticket["missed"], ticket["false"]) == ("warning", 1, 0, 0)


@pytest.mark.usefixtures("real_promtool")
def test_backtest_answers_how_often_another_number_would_have_paged(tmp_path: Path) -> None:
    # The two crowds leave 62 late answers in five minutes, the slow backend 32.
    done = run(tmp_path, "backtest", NIGHT, *ONE, "--set", "late-but-200.min_late=33", "--format", "json")

    assert done.status == 0
    assert {alert["severity"]: alert["pages"] for alert in done.report["alerts"]} == {"critical": 1, "warning": 1}


@pytest.mark.usefixtures("real_promtool")
def test_backtest_names_rules_that_the_ledger_cannot_tell(tmp_path: Path) -> None:
    ledger = tmp_path / "thin.jsonl"
    ledger.write_text(json.dumps({"ts": 1_788_833_640, "route": "complete", "status": 200}) + "\n", encoding="utf-8")

    done = run(tmp_path, "backtest", "thin.jsonl", "--only", "saturation", "--only", "late-but-200")

    assert done.status == 0
    assert "not evaluated: saturation (missing queue_age_ms)" in done.out
    assert "not evaluated: late-but-200 (missing latency_ms, deadline_ms)" in done.out


def test_backtest_keeps_files_that_promtool_accepts(tmp_path: Path, real_promtool: str) -> None:
    done = run(tmp_path, "backtest", NIGHT, *ONE, "--keep", "kept/here")
    kept = tmp_path / "kept" / "here"

    assert done.status == 0
    tests = sorted(path.name for path in kept.glob("*_test.yaml"))
    assert len(tests) == 1
    assert sorted(path.name for path in kept.iterdir()) == ["late-but-200.yaml", *tests]
    for command in (["check", "rules", "--lint=all", "--lint-fatal", "late-but-200.yaml"], ["test", "rules", *tests]):
        judged = subprocess.run([real_promtool, *command], cwd=kept, capture_output=True, text=True, check=False)
        assert judged.returncode == 0, judged.stdout + judged.stderr


def test_backtest_without_promtool_says_how_to_get_it(tmp_path: Path, without_promtool: dict[str, str]) -> None:
    done = run(tmp_path, "backtest", NIGHT, *ONE, "--keep", "kept", env=without_promtool)

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert "apt-get install prometheus" in done.err
    assert not (tmp_path / "kept").exists()


def test_backtest_with_a_promtool_that_cannot_evaluate_is_no_pass(tmp_path: Path, refusing_promtool: dict[str, str]) -> None:
    done = run(tmp_path, "backtest", NIGHT, *ONE, env=refusing_promtool)

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert "promtool could not evaluate" in done.err


# The example in docs/

REGENERATE = (
    "quietburn alerts fixtures/ledgers/demo_night.jsonl --out /tmp/example && "
    "cp /tmp/example/alerts.yaml docs/example/ && cp /tmp/example/runbook/LLMGatewayLateBut200.md docs/example/runbook/"
)


def test_the_example_in_docs_is_what_the_night_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the promtool tests, for which sixty sample ledgers are read: they are not in the example."""
    monkeypatch.setattr(bundle, "_sample_tests", lambda *_: [])
    monkeypatch.chdir(ROOT)
    write_alerts(["fixtures/ledgers/demo_night.jsonl"], out=tmp_path / "out", unproven=True, quiet=True)
    example = ROOT / "docs" / "example"

    assert sorted(tree(example)) == ["alerts.yaml", PAGE]
    for name, content in tree(example).items():
        current = (tmp_path / "out" / name).read_bytes()
        assert content == current, f"docs/example/{name} is not current; in the checkout: {REGENERATE}"

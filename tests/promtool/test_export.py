"""`quietburn export`: what a real Prometheus says of a ledger is what the report says."""

import json
import subprocess
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cli.program import T0, call, is_one_line, late, run, write
from tests.promtool.prometheus import prometheus_over, value_of
from tests.promtool.proofs import NIGHT
from tests.promtool.real import require_promtool
from tests.rules.helpers import defaults

from quietburn.metrics.rule_events import events_of
from quietburn.ruleset.files import shipped_rules

GENERATE = 'kind="generate"'


def test_a_backfilled_night_gives_the_rates_of_the_report(tmp_path: Path) -> None:
    promtool = require_promtool()
    report = run(tmp_path, "analyze", str(NIGHT), "--format", "json").report

    done = run(tmp_path, "export", str(NIGHT), "--backfill", "night.om")

    assert (done.status, done.out) == (0, "")
    text = (tmp_path / "night.om").read_text(encoding="utf-8")
    assert text.endswith("\n# EOF\n")
    samples = sum(not line.startswith("#") for line in text.splitlines())
    assert f"{samples:,} samples in night.om" in done.err
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", "night.om", "data"], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )
    rows = [line.split() for line in made.stdout.splitlines()[1:]]
    assert sum(int(row[4]) for row in rows) == samples
    with prometheus_over(tmp_path / "data") as address:
        end = datetime.fromisoformat(report["ledger"]["last_ts"]).timestamp() + 60
        rates = report["rates"]
        assert value_of(address, f'sum(quietburn_requests_total{{{GENERATE},verdict="usable"}})', end) == rates["usable"]
        assert value_of(address, f'sum(quietburn_attempts_total{{{GENERATE}}})', end) == rates["attempts"]
        assert value_of(address, f'sum(quietburn_attempts_total{{{GENERATE},code=~"2.."}})', end) == rates["successes"]
        tokens = value_of(address, 'sum(quietburn_tokens_total{type!~"cached|reasoning"})', end)
        every = rates["tokens"]
        # The report keeps lines apart that tell only one part; a counter of that part takes them in.
        assert tokens == every["all"] + every["completion_only"] + every["prompt_only"]
        # Every series begins at 0, so `increase` over the whole night loses no birth.
        timed = value_of(address, "sum(quietburn_attempt_duration_seconds_count)", end)
        assert value_of(address, "sum(increase(quietburn_attempt_duration_seconds_count[12h]))", end) >= timed


def test_totals_for_node_exporter_are_those_of_the_report_and_pass_promtool(tmp_path: Path) -> None:
    promtool = require_promtool()
    write(tmp_path / "night.jsonl", [*(call(n) for n in range(40)), *(late(100 + n) for n in range(10))])
    with (tmp_path / "night.jsonl").open("ab") as ledger:
        ledger.write(b"no JSON\n")

    done = run(tmp_path, "export", "night.jsonl", "--textfile", "quietburn.prom")

    assert (done.status, done.out) == (0, "")
    text = (tmp_path / "quietburn.prom").read_text(encoding="utf-8")
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    requests = {name: float(value) for name, value in values.items() if name.startswith("quietburn_requests_total")}
    assert sum(value for name, value in requests.items() if 'verdict="usable"' in name) == 40
    assert sum(value for name, value in requests.items() if 'verdict="late"' in name) == 10
    assert sum(requests.values()) == 50
    assert values['quietburn_ledger_lines_total{result="used"}'] == "50"
    assert float(values["quietburn_newest_event_timestamp_seconds"]) == T0 + 109
    counts = [value for name, value in values.items() if name.startswith("quietburn_attempt_duration_seconds_count")]
    assert sum(map(float, counts)) == 50


def test_hostile_names_stay_values_of_labels(tmp_path: Path) -> None:
    promtool = require_promtool()
    hostile = 'gpu"} 1\nquietburn_forged_total 7\\'
    write(tmp_path / "night.jsonl", [call(n) | {"backend": hostile} for n in range(5)])

    done = run(tmp_path, "export", "night.jsonl", "--textfile", "t.prom", "--backfill", "b.om")

    assert done.status == 0
    for name in ("t.prom", "b.om"):
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith("quietburn_forged_total")]
    text = (tmp_path / "t.prom").read_text(encoding="utf-8")
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_gap_between_two_samples_can_be_chosen(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(n) for n in range(0, 240, 10)])

    ends = {}
    for step in ("15", "60"):
        assert run(tmp_path, "export", "night.jsonl", "--backfill", "b.om", "--step", step, "--quiet").status == 0
        text = (tmp_path / "b.om").read_text(encoding="utf-8")
        lines = [line.split() for line in text.splitlines() if line.startswith("quietburn_requests_total")]
        times = [int(line[2]) for line in lines]
        assert {later - time for time, later in pairwise(times)} == {int(step)}
        ends[step] = (lines[0][1], lines[-1][1])
    assert ends["15"] == ends["60"] == ("0", "24")


@pytest.mark.parametrize(("asked", "words"), [
    (("night.jsonl",), "--backfill FILE, --textfile FILE or both"),
    (("night.jsonl", "--backfill", "b.om", "--step", "7"), "--step 7: write 15, 30 or 60"),
    (("night.jsonl", "--backfill", "night.jsonl"), "is the ledger night.jsonl, which would be overwritten"),
    (("night.jsonl", "--backfill", "b", "--textfile", "b"), "are the same file, b"),
    (("night.jsonl", "--textfile", "absent/t.prom"), "--textfile absent/t.prom: can't be written"),
    (("timeless.jsonl", "--textfile", "t.prom"), "no event has a time"),
    (("night.jsonl", "--textfile", "t.prom", "--since", "2026-10-01"), "from 2026-09-08T02:14:00Z to 2026-09-08T02:14:02Z"),
])  # fmt: skip
def test_a_call_that_cannot_be_used_is_one_line_and_writes_nothing(asked: tuple[str, ...], words: str, tmp_path: Path) -> None:
    before = write(tmp_path / "night.jsonl", [call(n) for n in range(3)]).read_bytes()
    timeless = [{"i": n, "status": 200, "ms": 40} for n in range(3)]  # seed 003's sweep carries no times
    (tmp_path / "timeless.jsonl").write_text("".join(json.dumps(event) + "\n" for event in timeless))

    done = run(tmp_path, "export", *asked)

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err) and words in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"night.jsonl", "timeless.jsonl"}
    assert (tmp_path / "night.jsonl").read_bytes() == before


def test_rules_that_count_events_under_one_label_mean_the_same_ones() -> None:
    meant: dict[object, object] = {}
    for rule in shipped_rules():
        for count in events_of(rule, defaults(rule)):
            assert meant.setdefault(count.fixed, count) == count, rule.id

"""Each flag of `analyze` does what its help says, in the real program."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.program import T0, call, jsonl, late, run, run_all, run_without_rights, write


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Three late answers of four: a ticket, and nothing that pages."""
    return write(tmp_path / "night.jsonl", [call(1), late(2), late(3), late(4)])


def test_the_report_goes_to_standard_output_as_text_or_json(tmp_path: Path, ledger: Path) -> None:
    formats = [[], ["--format", "text"], ["--format", "json"]]
    default, text, as_json = run_all(tmp_path, [["analyze", ledger.name, *chosen] for chosen in formats])
    assert [done.status for done in (default, text, as_json)] == [0, 0, 0]
    assert [done.err for done in (default, text, as_json)] == ["", "", ""]
    assert default.out == text.out
    assert text.out.startswith(
        "quietburn  night.jsonl (gateway)\n4 lines, 4 events, 2026-09-08T02:14:01Z to 2026-09-08T02:14:04Z\n"
    )
    assert as_json.report["schema_version"] == 2
    assert as_json.out.startswith("{\n")
    assert as_json.out.endswith("}\n")


def test_output_writes_the_same_report_to_a_file_and_nothing_else(tmp_path: Path, ledger: Path) -> None:
    old = tmp_path / "report.json"
    old.write_text("old and longer than nothing")
    old.chmod(0o640)
    printed, written, failed = run_all(
        tmp_path,
        [
            ["analyze", ledger.name, "--format", "json"],
            ["analyze", ledger.name, "--format", "json", "--output", "report.json"],
            ["analyze", ledger.name, "--output", "report.txt", "--fail-on", "ticket"],
        ],
    )
    assert (written.status, written.out, written.err) == (0, "", "")
    assert old.read_text(encoding="utf-8") == printed.out
    assert old.stat().st_mode & 0o777 == 0o640
    assert (failed.status, failed.out) == (1, "")
    assert "Usable rate" in (tmp_path / "report.txt").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["night.jsonl", "report.json", "report.txt"]


def test_output_that_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path: Path, ledger: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "report.txt").write_text("kept")
    closed.chmod(0o555)
    unwritable = run_without_rights(tmp_path, "analyze", ledger.name, "--output", "closed/report.txt")
    no_folder = run(tmp_path, "analyze", ledger.name, "--output", "none/report.txt")
    closed.chmod(0o755)
    assert (unwritable.status, unwritable.out) == (2, "")
    assert unwritable.err == (
        "quietburn: --output closed/report.txt: can't be written (permission denied). "
        "Name a file in a writable folder.\n"
    )
    assert (closed / "report.txt").read_text() == "kept"
    assert [path.name for path in closed.iterdir()] == ["report.txt"]
    assert (no_folder.status, no_folder.out) == (2, "")
    assert no_folder.err == (
        "quietburn: --output none/report.txt: can't be written (no such file or directory). "
        "Name a file in a writable folder.\n"
    )


def test_a_call_that_fails_leaves_the_old_output_alone(tmp_path: Path) -> None:
    old = tmp_path / "report.json"
    old.write_text("kept")
    done = run(tmp_path, "analyze", "missing.jsonl", "--output", "report.json")
    assert done.status == 2
    assert old.read_text() == "kept"


def test_since_and_until_take_a_half_open_span(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(0), call(60), call(120)])
    at = ["2026-09-08T02:14:00Z", "2026-09-08T02:15:00Z", "2026-09-08T02:16:00Z"]
    calls = [
        ["--since", at[1]],
        ["--until", at[1]],
        ["--since", "2026-09-08T04:15:00", "--until", at[2], "--tz", "Europe/Berlin"],
    ]
    done = run_all(tmp_path, [["analyze", "night.jsonl", "--format", "json", *span] for span in calls])
    assert [d.report["rates"]["attempts"] for d in done] == [2, 1, 1]
    assert {d.report["ledger"]["lines"] for d in done} == {3}


def test_durations_count_back_from_now(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ages = [timedelta(minutes=30), timedelta(hours=5), timedelta(days=3)]
    write(tmp_path / "night.jsonl", [call(0, ts=(now - age).isoformat()) for age in ages])
    spans = [["--since", "1.5d"], ["--since", "4d", "--until", "7200s"]]
    done = run_all(tmp_path, [["analyze", "night.jsonl", "--format", "json", *span] for span in spans])
    assert [d.report["rates"]["attempts"] for d in done] == [2, 2]
    assert [d.report["findings"] for d in done] == [[], []]


def test_last_night_is_one_night_of_the_zone_that_is_named(tmp_path: Path) -> None:
    # 20:00 in Tokyo (11:00Z) of five days in a row, and noon there: one evening is within any night, noon never is.
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    events = [
        call(0, ts=(today + timedelta(days=day, hours=hour)).isoformat(), client=name)
        for day in range(-3, 2)
        for hour, name in ((11, "evening"), (3, "noon"))
    ]
    write(tmp_path / "night.jsonl", events)
    tokyo, as_configured = run_all(
        tmp_path,
        [
            ["analyze", "night.jsonl", "--format", "json", "--last-night", "--tz", "Asia/Tokyo"],
            ["analyze", "night.jsonl", "--format", "json", "--last-night", "--tz", "UTC"],
        ],
    )
    assert tokyo.report["rates"]["attempts"] == 1
    # In UTC the night is 18:00 to 09:00: 03:00 lies within it, 11:00 does not.
    assert as_configured.report["rates"]["attempts"] == 1


def test_tz_is_the_zone_of_times_that_name_none(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(0, ts="2026-07-01T12:00:00"), call(0, ts="2026-07-01T12:00:01Z")])
    assumed, berlin = run_all(
        tmp_path,
        [["analyze", "night.jsonl", "--format", "json"], ["analyze", "night.jsonl", "--format", "json", "--tz", "Europe/Berlin"]],
    )
    assert assumed.report["ledger"]["first_ts"] == "2026-07-01T12:00:00Z"
    assert any("UTC was assumed" in notice for notice in assumed.report["notices"])
    assert berlin.report["ledger"]["first_ts"] == "2026-07-01T10:00:00Z"
    assert berlin.report["ledger"]["last_ts"] == "2026-07-01T12:00:01Z"
    assert not any("UTC was assumed" in notice for notice in berlin.report["notices"])


def test_dialect_reads_every_line_as_asked(tmp_path: Path) -> None:
    line = {"ts": T0, "fp": "c8af", "decision": "allow", "reason": "stable_prefix", "cpu_pct_observed": 12}
    write(tmp_path / "night.jsonl", [line])
    detected, forced = run_all(
        tmp_path,
        [
            ["analyze", "night.jsonl", "--format", "json"],
            ["analyze", "night.jsonl", "--format", "json", "--dialect", "gateway"],
        ],
    )
    assert detected.report["ledger"]["files"][0]["dialect"] == "admission"
    assert detected.report["rates"]["successes"] == 1
    assert forced.report["ledger"]["files"][0]["dialect"] == "gateway"
    assert forced.report["ledger"]["files"][0]["detected_because"] == "it was requested"
    assert forced.report["rates"]["successes"] == 0  # the gateway dialect knows no status here, and invents none


def test_map_reads_a_dialect_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[dialect]\nname = "mine"\n\n[columns]\nts = { from = "when" }\nroute = { value = "complete" }\n'
        'status = { from = "outcome", translate = { good = 200, bad = 500 } }\nlatency_ms = { from = "took", unit = "s" }\n'
        'deadline_ms = { from = "patience", unit = "s" }\nanswer_chars = { from = "/answer/chars" }\n'
    )
    usual = {"when": T0, "outcome": "good", "took": 0.9, "patience": 1, "answer": {"chars": 7}}
    write(tmp_path / "night.jsonl", [usual, usual | {"when": T0 + 1, "took": 1.1}, usual | {"when": T0 + 2, "outcome": "bad"}])
    without, mapped = run_all(
        tmp_path, [["analyze", "night.jsonl"], ["analyze", "night.jsonl", "--map", "mine.toml", "--format", "json"]]
    )
    assert (without.status, without.out) == (2, "")
    assert without.err.startswith("quietburn: night.jsonl: no known dialect fits its lines. The closest is ")
    assert without.err.endswith("Map its fields in a mapping file, and pass it with --map.\n")
    assert mapped.report["ledger"]["files"][0]["dialect"] == "mine"
    rates = mapped.report["rates"]
    assert (rates["attempts"], rates["successes"], rates["usable"]) == (3, 2, 1)
    assert (rates["verdicts"]["late"], rates["verdicts"]["failed"]) == (1, 1)


def test_set_changes_a_rules_number_and_the_report_says_so(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(1), late(2), late(3)])
    only = ["analyze", "night.jsonl", "--format", "json", "--only", "late-but-200"]
    default, lowered = run_all(tmp_path, [only, [*only, "--set", "late-but-200.min_late_hour=2"]])
    assert default.report["findings"] == []
    assert default.report["thresholds"] == []
    assert [finding["rule"] for finding in lowered.report["findings"]] == ["late-but-200"]
    assert lowered.report["thresholds"] == [
        {"rule": "late-but-200", "parameter": "min_late_hour", "value": 2.0, "origin": "--set"}
    ]


def test_only_and_skip_choose_the_rules(tmp_path: Path, ledger: Path) -> None:
    every, only, skip = run_all(
        tmp_path,
        [
            ["analyze", ledger.name, "--format", "json"],
            ["analyze", ledger.name, "--format", "json", "--only", "saturation", "--only", "late-but-200"],
            ["analyze", ledger.name, "--format", "json", "--skip", "late-but-200"],
        ],
    )

    def told(report: dict[str, list[dict[str, str]]]) -> set[str]:
        named = {entry["rule"] for part in ("findings", "not_evaluated", "errored") for entry in report[part]}
        return named | {str(rule) for rule in report["quiet"]}

    assert told(only.report) == {"saturation", "late-but-200"}
    assert told(every.report) - told(skip.report) == {"late-but-200"}


def test_configuration_is_found_upward_and_said_where_it_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    event = call(1, deadline_ms=None)
    write(deep / "night.jsonl", [event, event | {"ts": T0 + 2, "latency_ms": 900}])
    (tmp_path / "quietburn.toml").write_text("deadline_ms = 500\n")
    (tmp_path / "other.toml").write_text('[deadline_ms.route]\ncomplete = 1000\n\n[rules.late-but-200]\nmin_late_hour = 1\n')
    found, named = run_all(
        deep,
        [
            ["analyze", "night.jsonl", "--format", "json"],
            ["analyze", "night.jsonl", "--format", "json", "--config", "../../other.toml"],
        ],
    )
    assert found.report["rates"]["usable"] == 1
    assert found.report["notices"][0] == (
        f"If a line has no deadline, 500 ms is assumed ({tmp_path.resolve() / 'quietburn.toml'})."
    )
    assert named.report["rates"]["usable"] == 2
    assert named.report["notices"][0] == (
        "If a line has no deadline, 1000 ms is assumed where route is complete (../../other.toml)."
    )
    assert {"rule": "late-but-200", "parameter": "min_late_hour", "value": 1.0, "origin": "../../other.toml"} in (
        named.report["thresholds"]
    )


def test_configuration_is_read_from_pyproject_where_it_has_the_table(tmp_path: Path) -> None:
    deep = tmp_path / "a"
    deep.mkdir()
    write(deep / "night.jsonl", [call(1, deadline_ms=None)])
    (deep / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")  # has no table: the search goes on upward
    (tmp_path / "pyproject.toml").write_text("[tool.quietburn]\ndeadline_ms = 100\n")
    done = run(deep, "analyze", "night.jsonl", "--format", "json")
    assert done.report["rates"]["verdicts"]["late"] == 1
    assert f"100 ms is assumed ({tmp_path.resolve() / 'pyproject.toml'})" in done.report["notices"][0]


@pytest.mark.parametrize(
    ("events", "statuses"),
    [
        ([call(1), late(2), late(3), late(4)], {"page": 0, "ticket": 1, "info": 1, "never": 0}),
        ([late(second) for second in range(1, 7)], {"page": 1, "info": 1}),
        ([call(1)], {"info": 0}),
    ],
    ids=["a ticket", "a page", "nothing"],
)
def test_fail_on_ends_in_one_from_the_asked_severity_on(
    tmp_path: Path, events: list[dict[str, object]], statuses: dict[str, int]
) -> None:
    write(tmp_path / "night.jsonl", events)
    done = run_all(tmp_path, [["analyze", "night.jsonl", "--fail-on", level] for level in statuses])
    assert [d.status for d in done] == list(statuses.values())
    assert {d.err for d in done} == {""}
    assert len({d.out for d in done}) == 1


def test_max_quarantined_is_exceeded_only_by_more(tmp_path: Path) -> None:
    (tmp_path / "night.jsonl").write_bytes(jsonl(call(second) for second in range(19)) + b"not json\n")
    limits = ["5%", "0.05", "4.9%", "0"]
    done = run_all(tmp_path, [["analyze", "night.jsonl", "--max-quarantined", limit] for limit in limits])
    assert [d.status for d in done] == [0, 0, 3, 3]
    assert [d.err for d in done if d.status == 0] == ["", ""]
    assert done[2].err == (
        "quietburn: undecided: 1 of 20 lines were refused, more than --max-quarantined allows (4.9%). "
        "See the quarantine in the report for the reasons.\n"
    )
    assert len({d.out for d in done}) == 1


def test_quiet_says_nothing_but_errors(tmp_path: Path) -> None:
    (tmp_path / "night.jsonl").write_bytes(jsonl([call(1)]) + b"not json\n")
    undecided, both, wrong = run_all(
        tmp_path,
        [
            ["analyze", "night.jsonl", "--quiet"],
            ["analyze", "night.jsonl", "--quiet", "--verbose"],
            ["analyze", "missing.jsonl", "--quiet"],
        ],
    )
    assert (undecided.status, undecided.err) == (3, "")
    assert (both.status, both.err) == (3, "")
    assert "Usable rate" in undecided.out
    assert wrong.status == 2
    assert wrong.err.startswith("quietburn: missing.jsonl: no such file.")


def test_verbose_says_why_a_dialect_was_chosen_and_names_every_refused_line(tmp_path: Path) -> None:
    (tmp_path / "night.jsonl").write_bytes(jsonl([call(1)]) + b"not json\n" * 14)
    short, verbose = run_all(
        tmp_path,
        [
            ["analyze", "night.jsonl", "--max-quarantined", "100%"],
            ["analyze", "night.jsonl", "--max-quarantined", "100%", "--verbose"],
        ],
    )
    assert "    and 4 more; --quarantine FILE lists them all\n" in short.out
    assert "night.jsonl:15" not in short.out
    assert verbose.err == "quietburn: night.jsonl: dialect gateway; 1 of 1 sampled lines fit gateway\n"
    for line in range(2, 16):
        assert f"    night.jsonl:{line}  not valid JSON\n" in verbose.out


def test_standard_input_files_folders_and_compressed_files_give_the_same_rates(tmp_path: Path) -> None:
    events = [call(1, request_id="a"), late(2, request_id="b"), call(3, request_id="c", status=503)]
    first, rest = events[:1], events[1:]
    folder = tmp_path / "folder"
    folder.mkdir()
    write(tmp_path / "whole.jsonl", events)
    write(tmp_path / "first.jsonl", first)
    write(tmp_path / "rest.jsonl.gz", rest)
    write(folder / "b.log", first)
    write(folder / "a.ndjson.gz", rest)
    (folder / "notes.txt").write_text("no ledger")
    import pyarrow as pa

    packed = pa.compress(jsonl(events), codec="zstd", asbytes=True)
    (tmp_path / "whole.jsonl.zst").write_bytes(packed)
    ways = [
        ["whole.jsonl"], ["whole.jsonl.zst"], ["first.jsonl", "rest.jsonl.gz"], ["folder"],
        ["whole.jsonl", "./whole.jsonl", str(tmp_path / "whole.jsonl")],
    ]
    done = run_all(tmp_path, [["analyze", *way, "--format", "json"] for way in ways])
    done.append(run(tmp_path, "analyze", "-", "--format", "json", stdin=jsonl(events)))
    assert [d.err for d in done] == [""] * 6
    rates = [d.report["rates"] for d in done]
    assert all(rate == rates[0] for rate in rates)
    assert (rates[0]["attempts"], rates[0]["successes"], rates[0]["usable"]) == (3, 2, 1)
    assert [[file["path"] for file in d.report["ledger"]["files"]] for d in done] == [
        ["whole.jsonl"], ["whole.jsonl.zst"], ["first.jsonl", "rest.jsonl.gz"], ["folder/a.ndjson.gz", "folder/b.log"],
        ["whole.jsonl"], ["-"],
    ]
    assert [[file["lines"] for file in d.report["ledger"]["files"]] for d in done] == [[3], [3], [1, 2], [2, 1], [3], [3]]


def test_files_of_several_dialects_are_reported_together(tmp_path: Path) -> None:
    write(tmp_path / "gateway.jsonl", [call(1)])
    write(tmp_path / "admission.jsonl", [{"ts": T0 + 2, "fp": "c8af", "decision": "reject", "reason": "queue_full"}])
    done = run(tmp_path, "analyze", "gateway.jsonl", "admission.jsonl", "--format", "json")
    assert [file["dialect"] for file in done.report["ledger"]["files"]] == ["gateway", "admission"]
    assert (done.report["rates"]["attempts"], done.report["rates"]["successes"]) == (2, 1)
    assert set(done.report["rates"]["criteria_by_dialect"]) == {"gateway"}


def test_numbers_in_json_are_numbers_or_null(tmp_path: Path, ledger: Path) -> None:
    done = run(tmp_path, "analyze", ledger.name, "--format", "json")

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    json.loads(done.out, parse_constant=refuse)

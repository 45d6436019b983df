"""Strings from ledgers can't act in a terminal or a CI log, and what is private appears nowhere."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import QUIETBURN, T0, Done, call, environment, jsonl, late, run, run_all, write

HOSTILE = (
    "\"double\" and 'single'; drop table ledger_events; --",
    "line\nbreak\r\nand more",
    "{{ 7*7 }}{% raw %}",
    "</script><script>alert(1)</script>",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eevil\u2066bidi",
    "::error::injected",
    "  ::warning file=a::injected",
    "##[error]injected",
    "x ##vso[task.setvariable variable=a]b",
    "%0A::error::injected",
    "[link](javascript:alert(1))",
    "[bold]rich[/bold][/] [link=https://example.org]x[/link]",
    "\x00nul\x9b31mc1",
    "line\u2028separator\u2029paragraph\u0085next",
    "```\n# heading",
    "=1+1|'@SUM(A1)",
    "zero\u200bwidth\ufeff",
    "grüße 😀 字",
    "a" * 300,
)
TEXT_FIELDS = (
    "backend", "client", "tenant", "model", "request_id", "idempotency_key", "user_agent", "reason", "error", "finish_reason",
)
CANARY = "kanarie-2841-7705-9316"
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_RUNNER_COMMAND = re.compile(r"^\s*::|##[A-Za-z]*\[", re.MULTILINE)


def hostile_night(path: Path) -> Path:
    """Write a ledger that holds every hostile string in every text field, in routes, traffic classes and key names."""
    night = []
    for index, text in enumerate(HOSTILE):
        everywhere = dict.fromkeys(TEXT_FIELDS, text)
        second = index / 10
        night += [
            call(second, **everywhere | {"error": None, "latency_ms": 5000, "traffic": "user", text: 1}),
            call(second, client=text, traffic=text, route="complete", latency_ms=5000, request_id=f"t{index}"),
            call(second, backend=text, route=text, request_id=f"r{index}", latency_ms=5000),
            call(second, **everywhere | {"status": None, "request_id": f"e{index}"}),
        ]
    return write(path, night)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Done]:
    folder = tmp_path_factory.mktemp("hostile")
    hostile_night(folder / "night.jsonl")
    text, as_json = run_all(folder, [["analyze", "night.jsonl", "--verbose"], ["analyze", "night.jsonl", "--format", "json"]])
    return text, as_json


def test_hostile_text_leaves_the_report_as_it_is(reports: tuple[Done, Done]) -> None:
    text, as_json = reports
    assert (text.status, as_json.status) == (0, 0)
    report = as_json.report
    assert report["ledger"]["events"] == 4 * len(HOSTILE)
    assert report["errored"] == []
    assert "late-but-200" in {finding["rule"] for finding in report["findings"]}
    shown = {entry["client"] for finding in report["findings"] for entry in finding["top"] if "client" in entry}
    assert shown
    assert shown <= set(HOSTILE)  # JSON gives each string back as it was


def test_the_text_report_holds_no_character_that_acts(reports: tuple[Done, Done]) -> None:
    text, _ = reports
    for shown in (text.out, text.err):
        assert not _CONTROL.search(shown)
        assert not _RUNNER_COMMAND.search(shown)


def test_the_json_report_is_ascii_and_no_line_of_it_is_a_runners_command(reports: tuple[Done, Done]) -> None:
    _, as_json = reports
    assert as_json.out.isascii()
    assert not _CONTROL.search(as_json.out)
    assert not _RUNNER_COMMAND.search(as_json.out)


def test_each_hostile_string_is_inert_where_it_is_shown(tmp_path: Path) -> None:
    # One string a night of three hours, so that each of them stands under `who` of a finding of its own.
    hours = 3 * 3600
    night = [
        call(index * hours + second, latency_ms=5000, client=text) for index, text in enumerate(HOSTILE) for second in range(1, 7)
    ]
    write(tmp_path / "night.jsonl", night)
    only = ["analyze", "night.jsonl", "--only", "late-but-200"]
    text, as_json = run_all(tmp_path, [only, [*only, "--format", "json"]])
    assert [finding["top"] for finding in as_json.report["findings"]] == [
        [{"client": hostile, "share": 1, "tokens": None}] for hostile in HOSTILE
    ]
    assert text.out.count("\n         who ") == len(HOSTILE)
    for shown in (text.out, as_json.out):
        assert not _CONTROL.search(shown)
        assert not _RUNNER_COMMAND.search(shown)
    shown_as = (
        "{{ 7*7 }}", "[bold]rich[/bold][/]", "\\x1b[31mred", "\\u202eevil", "line\\x0abreak", "\\x23#[error]", "grüße 😀 字",
    )
    assert [inert for inert in shown_as if inert not in text.out] == []


def test_hostile_names_of_files_are_inert_on_both_outputs(tmp_path: Path) -> None:
    names = ["::error::a.jsonl", "b\n::error::b.jsonl", "\x1b[31mc.jsonl", "[bold]d.jsonl", "'e\".jsonl", "##[error]f.jsonl"]
    for name in names:
        (tmp_path / name).write_bytes(jsonl([call(1)]) + b"broken\n")
    done = run(tmp_path, "analyze", *names, "--verbose", "--max-quarantined", "100%")
    missing = run(tmp_path, "analyze", "none\n::error::g.jsonl")
    assert done.status == 0
    for shown in (done.out, done.err, missing.err):
        assert not _CONTROL.search(shown)
        assert not _RUNNER_COMMAND.search(shown)
    assert "[bold]d.jsonl" in done.out
    assert missing.err.startswith("quietburn: none\\x0a::error::g.jsonl: no such file.")


def test_a_secret_in_private_text_appears_in_no_output(tmp_path: Path) -> None:
    secret = {
        "prefix": f"{CANARY} at 2026-09-08T02:14:03Z", "answer": f"the answer is {CANARY}", "answer_chars": None,
        "messages": [{"role": "user", "content": CANARY}], CANARY: CANARY,
    }
    routes = [*["complete"] * 6, f"/v1/complete?key={CANARY}", f"/other?q={CANARY}#x"]
    night = [call(second, latency_ms=5000, route=route, **secret) for second, route in enumerate(routes)]
    night += [call(9, status=status, error=f"upstream said {CANARY}", **secret) for status in (200, 500, None)]
    broken = (
        f'{{"ts": {T0}, "prefix": "{CANARY}\n'
        f"{CANARY}\n"
        f'{{"ts": {T0}, "status": 200, "status": 201, "prefix": "{CANARY}"}}\n'
        f'{{"ts": "{CANARY}", "status": 200}}\n'
        f'{{"ts": {T0}, "status": "{CANARY}", "latency_ms": "{CANARY}", "prefix": "{CANARY}"}}\n'
        f'{{"ts": {T0}, "status": 200, "prefix": "{CANARY}'
    )
    (tmp_path / "night.jsonl").write_bytes(jsonl(night) + broken.encode())
    (tmp_path / "nothing.jsonl").write_text(f'{{"{CANARY}": "{CANARY}"}}\n')
    (tmp_path / "plain.jsonl.gz").write_text(CANARY)
    usual = ["analyze", "night.jsonl", "--verbose", "--max-quarantined", "100%"]
    calls = [usual, [*usual, "--format", "json"], ["analyze", "nothing.jsonl"], ["analyze", "plain.jsonl.gz"]]
    done = run_all(tmp_path, calls)
    assert [d.status for d in done] == [0, 0, 2, 2]
    assert done[1].report["ledger"]["quarantined"] == 5
    assert {finding["rule"] for finding in done[1].report["findings"]} >= {"late-but-200"}
    for d in done:
        for part in (CANARY, CANARY[:9], "2841", "upstream said"):
            assert part not in d.out + d.err


@pytest.mark.parametrize("ending", ["", "alerts"])
def test_what_a_caller_wrote_stands_in_no_store_no_temporary_file_and_no_written_file(tmp_path: Path, ending: str) -> None:
    spill = tmp_path / "tmp"
    spill.mkdir()
    secrets: list[dict[str, Any]] = [
        {"prompt": CANARY, "messages": [{"content": CANARY}], "answer": CANARY, "prefix": f"{CANARY} at 2026-09-08T02:14:00Z"},
        {"error": f"upstream said {CANARY}", "reason": f"refused: {CANARY}", "finish_reason": f"a b {CANARY}", CANARY: 1},
        {"route": f"/v1/complete?key={CANARY}", "user_agent": f"curl/8 ({CANARY})"},
    ]
    night = [late(number, request_id=f"q{number}", **secrets[number % 3] | {"status": 200}) for number in range(3000)]
    (tmp_path / "night.jsonl").write_bytes(jsonl(night) + f'{{"ts": {T0}, "prompt": "{CANARY}\n'.encode())
    command = {"": ("analyze", "night.jsonl", "--db", "store.duckdb", "--quarantine", "refused.jsonl"),
               # Two rules: one that looks at prefixes and one that doesn't. What a file holds of a ledger are numbers.
               "alerts": ("alerts", "night.jsonl", "--out", "out", "--unproven",
                          "--only", "cache-busting-prefix", "--only", "late-but-200")}[ending]

    done = run(tmp_path, *command, env=environment(TMPDIR=str(spill)))

    assert done.status == 0, done.err
    written_files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "night.jsonl"]
    assert written_files
    assert list(spill.iterdir()) == []
    for path in written_files:
        content = path.read_bytes()
        for text in (CANARY, CANARY[:9]):
            assert text.encode() not in content, path.name


def on_a_terminal(folder: Path, *arguments: str, **extra: str) -> str:
    """Run the command with a terminal as standard output and return what it wrote there."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*QUIETBURN, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
        env=environment(**{"TERM": "xterm-256color", "COLUMNS": "100"} | extra),
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux ends a terminal that nobody holds any more so
        pass
    os.close(ours)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n")


def test_a_terminal_gets_the_same_words_with_colours_only(tmp_path: Path) -> None:
    hostile_night(tmp_path / "night.jsonl")
    shown = on_a_terminal(tmp_path, "analyze", "night.jsonl")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain != shown
    assert not _CONTROL.search(plain)
    assert plain == run(tmp_path, "analyze", "night.jsonl").out


def test_no_color_and_a_dumb_terminal_get_no_escapes(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(second, latency_ms=5000) for second in range(6)])
    assert "\x1b" not in on_a_terminal(tmp_path, "analyze", "night.jsonl", NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(tmp_path, "analyze", "night.jsonl", TERM="dumb")
    forced = run(tmp_path, "analyze", "night.jsonl", env=environment(FORCE_COLOR="1", TERM="xterm-256color"))
    assert "\x1b" not in forced.out


def test_an_output_that_knows_only_ascii_gets_escapes_and_no_fault(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(second, latency_ms=5000, client="grüße") for second in range(6)])
    done = run(tmp_path, "analyze", "night.jsonl", env=environment(PYTHONIOENCODING="ascii"))
    assert (done.status, done.err) == (0, "")
    assert done.out.isascii()
    assert "client gr\\xfc\\xdfe" in done.out
    as_json = run(tmp_path, "analyze", "night.jsonl", "--format", "json", env=environment(PYTHONIOENCODING="ascii"))
    assert as_json.report["findings"][0]["top"][0]["client"] == "grüße"

"""Help, the rule catalogue and fingerprints, in the real program."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import Done, run, run_all

from quietburn.common.resources import rule_files

ANALYZE_FLAGS = (
    "--format", "--output", "--since", "--until", "--last-night", "--tz", "--dialect", "--map", "--set", "--only", "--skip",
    "--config", "--fail-on", "--max-quarantined", "--json-schema", "--quiet", "--verbose",
)


def commands_in(shown: str) -> list[str]:
    """Return the commands that a help text lists."""
    listed = shown.partition("\nCommands:\n")[2].splitlines()
    return [line.split()[0] for line in listed if line.startswith("  ") and not line.startswith("   ")]


def test_every_command_has_help_and_analyze_names_each_flag(tmp_path: Path) -> None:
    shown = run_all(tmp_path, [["--help"], ["rules", "--help"]])
    top, of_rules = (commands_in(done.out) for done in shown)
    assert {"analyze", "rules", "fingerprint"} <= set(top)
    assert {"list", "show"} <= set(of_rules)
    commands = [*([name] for name in top), *(["rules", name] for name in of_rules)]
    done = dict(zip(map(tuple, commands), run_all(tmp_path, [[*command, "--help"] for command in commands]), strict=True))
    for command, d in done.items():
        assert (d.status, d.err) == (0, ""), command
        assert d.out.startswith(f"Usage: {' '.join(['quietburn', *command])} ")
    assert [flag for flag in ANALYZE_FLAGS if flag not in done["analyze",].out] == []


def test_no_command_shows_the_help_and_is_no_success(tmp_path: Path) -> None:
    bare, rules = run_all(tmp_path, [[], ["rules"]])
    for done, shown in ((bare, "Usage: quietburn "), (rules, "Usage: quietburn rules ")):
        assert done.status == 2
        assert done.out.startswith(shown)
        assert done.err == "quietburn: no command given. Use one of the commands above.\n"


def test_rules_list_names_every_rule_once_as_text_and_as_json(tmp_path: Path) -> None:
    text, as_json = run_all(tmp_path, [["rules", "list"], ["rules", "list", "--json"]])
    assert [(d.status, d.err) for d in (text, as_json)] == [(0, "")] * 2
    listed: list[dict[str, Any]] = json.loads(as_json.out)
    shipped = [path.stem for path in rule_files()]
    assert [rule["id"] for rule in listed] == shipped
    assert [line.split()[0] for line in text.out.splitlines()] == shipped
    for line, rule in zip(text.out.splitlines(), listed, strict=True):
        assert line.split(maxsplit=2)[1:] == [rule["severity"], rule["title"]]


def test_rules_show_tells_what_a_rule_needs_and_when_it_is_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, "rules", "show", "late-but-200")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("late-but-200 (revision 1, page): Answers arrive as 200 after the caller's deadline\n")
    assert "\nneeds: ts, status, latency_ms, deadline_ms\n" in done.out
    assert "\n  min_late = 5 (answers): page: fewest late answers in five minutes\n" in done.out
    assert "\nwrong when:\n" in done.out


def printed(scrubbed: str, *, stripped: bool) -> str:
    """Return what the command prints for a prefix whose scrubbed text was worked out by hand."""
    fp = hashlib.sha256(scrubbed.encode()).hexdigest()[:16]
    return json.dumps({"fp": fp, "stable_len": len(scrubbed), "stripped_clock": stripped}) + "\n"


@pytest.mark.parametrize(
    ("prefix", "scrubber", "scrubbed", "stripped"),
    [
        ("Grade essays.  Be\nstrict.", 1, "Grade essays. Be strict.", False),
        ("Now 2026-09-08T02:14:03.250Z, req-7f3a2b1c", 1, "Now <TS>, <ID>", True),
        ("Call 018f3c1e-1111-4222-8333-444455556666", 1, "Call 018f3c1e-1111-4222-8333-444455556666", False),
        ("Call 018f3c1e-1111-4222-8333-444455556666", 2, "Call <ID>", True),
        ("As of Tue, 08 Sep 2026 02:14:03 GMT: 1788833640", 2, "As of <TS>: <TS>", True),
        ("", 1, "", False),
    ],
)
def test_fingerprint_prints_what_is_left_without_clocks_and_ids(
    tmp_path: Path, prefix: str, scrubber: int, scrubbed: str, *, stripped: bool
) -> None:
    done = run(tmp_path, "fingerprint", "--scrubber", str(scrubber), stdin=json.dumps({"prefix": prefix, "other": 1}).encode())
    assert done == Done(0, printed(scrubbed, stripped=stripped), "")


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"plain text SECRET", 'not valid JSON; write {"prefix": "..."}.'),
        (b"", 'not valid JSON; write {"prefix": "..."}.'),
        (b"\xff\xfe", 'not valid JSON; write {"prefix": "..."}.'),
        (b'{"a":' * 60_000, 'not valid JSON; write {"prefix": "..."}.'),
        (b'{"text": "SECRET"}', 'must be an object with a string under "prefix".'),
        (b'{"prefix": 5}', 'must be an object with a string under "prefix".'),
        (b'["SECRET"]', 'must be an object with a string under "prefix".'),
    ],
    ids=["text", "nothing", "not UTF-8", "too deep", "no prefix", "a number", "a list"],
)
def test_fingerprint_refuses_what_is_no_prefix_in_one_line(tmp_path: Path, stdin: bytes, said: str) -> None:
    assert run(tmp_path, "fingerprint", stdin=stdin) == Done(2, "", f"quietburn: standard input: {said}\n")

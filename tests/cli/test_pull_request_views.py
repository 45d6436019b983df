"""What ends in a pull request or a CI server: complete, short, valid, and inert whatever a ledger holds."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.cli.program import Done, call, environment, late, run, write
from tests.cli.test_hostile_text import HOSTILE

from quietburn.report.github import command
from quietburn.report.markdown import code, escape

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = etree.XMLSchema(etree.parse(REPOSITORY / "tests" / "schemas" / "junit-10.xsd"))
FORMATS = ("text", "json", "markdown", "junit", "github")
OURS = re.compile(r"^::(error|warning|notice) title=quietburn[^:,]*::", re.MULTILINE)
COMMAND = re.compile(r"^\s*::|##[A-Za-z]*\[", re.MULTILINE)
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
EVERYTHING = (
    "--min-usable", "90%", "--max-gap", "2%", "--baseline", "before.jsonl", "--max-drop", "2%",
    "--require", "on_time,complete,non_empty", "--acceptance",
)


def hostile_night(folder: Path) -> None:
    """Write two ledgers whose every text field holds something that wants to act."""
    def lines(make: Any, offset: int) -> list[dict[str, Any]]:
        return [
            make(
                n, model=text + str(offset), client="client-canary", tenant="tenant-canary", request_id=f"request-canary-{n}",
                prefix_fp="fffe0000cafe4711", error=None, reason=text, backend=text, traffic=text[:40],
            )
            for n, text in enumerate(HOSTILE * 2)
        ]

    write(folder / "before.jsonl", lines(call, 1))
    write(folder / "after.jsonl", lines(late, 2))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Return a gate's and a comparison's output in every format, on hostile ledgers."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile_night(folder)
    found = {f"gate {form}": run(folder, "gate", "after.jsonl", *EVERYTHING, "--format", form) for form in FORMATS}
    both = ("before.jsonl", "after.jsonl")
    return found | {f"compare {form}": run(folder, "compare", *both, "--format", form) for form in FORMATS}


def test_no_line_starts_a_command_that_we_did_not_mean(hostile: dict[str, Done]) -> None:
    for name, done in hostile.items():
        assert done.err == "", name
        assert not CONTROL.search(done.out), name
        meant = len(OURS.findall(done.out)) if name.endswith("github") else 0
        assert len(COMMAND.findall(done.out)) == meant, name
    assert len(OURS.findall(hostile["gate github"].out)) >= 4


def test_markdown_is_short_marked_and_names_nobody(hostile: dict[str, Done]) -> None:
    for job in ("gate", "compare"):
        out = hostile[f"{job} markdown"].out
        assert out.splitlines()[0] == f"<!-- quietburn {job} -->"
        assert out.count("\n") <= 25
        assert "canary" not in out
        assert "fffe0000cafe4711" not in out
        assert "<script" not in out
        assert "@SUM" not in out.replace("`=1+1|'@SUM(A1)1`", "").replace("`=1+1|'@SUM(A1)2`", "")
        assert out.count("<details>") == out.count("</details>") == 1
        assert "Repeat: `quietburn " in out


def test_the_models_that_changed_stand_in_code_spans(hostile: dict[str, Done]) -> None:
    out = hostile["compare markdown"].out
    spans = re.findall(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", out)
    outside = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", out.split("<details>")[0])
    assert "Models only before:" in outside
    assert "javascript" not in outside
    assert len(spans) >= 10


def test_junit_is_what_ci_servers_read(hostile: dict[str, Done]) -> None:
    for job in ("gate", "compare"):
        document = etree.fromstring(hostile[f"{job} junit"].out.encode())
        SCHEMA.assertValid(document)
        for suite in document.iter("testsuite"):
            cases = suite.findall("testcase")
            assert int(suite.get("tests")) == len(cases)
            for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
                assert int(suite.get(attribute)) == sum(case.find(kind) is not None for case in cases)


def test_junit_tells_failed_errored_and_skipped_apart(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [late(n) for n in range(40)])
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "60%", "--acceptance", "--format", "junit")
    document = etree.fromstring(done.out.encode())
    kinds = {case.get("name"): [child.tag for child in case] for case in document.iter("testcase")}
    assert kinds["min_usable"] == ["failure"]
    assert kinds["acceptance_queue_wait"] == ["error"]  # it could not be judged
    assert kinds["acceptance_retry_floor"] == ["system-out"]
    assert done.status == 1


def test_a_finding_makes_junit_red_only_where_the_gates_own_threshold_failed(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [late(n) for n in range(40)])
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "0%", "--format", "junit")
    document = etree.fromstring(done.out.encode())
    SCHEMA.assertValid(document)
    assert done.status == 0
    assert (document.get("failures"), document.get("errors")) == ("0", "0")
    assert not [*document.iter("failure"), *document.iter("error")]
    properties = {one.get("name"): one.get("value") for one in document.iter("property")}
    assert properties["rule.late-but-200"] == "page"
    assert properties["rule.stuck-worker"] == "not_evaluated"  # its fields are not in the ledger
    (told,) = document.findall("testsuite/system-out")
    assert told.text.startswith("late-but-200 (page): ")


def test_a_schema_that_refuses_nothing_would_prove_nothing() -> None:
    assert not SCHEMA.validate(etree.fromstring("<testsuites><testcase name='loose'/></testsuites>"))
    assert not SCHEMA.validate(etree.fromstring("<testsuite name='a' tests='1' failures='0'/>"))


def test_the_comment_shows_both_rates_why_not_usable_and_the_source_of_the_deadline(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(0), *(late(n) for n in range(1, 32))])
    out = run(tmp_path, "gate", "night.jsonl", "--min-usable", "50%", "--format", "markdown").out
    assert "| success | 100.0 % | 32 of 32 attempts answered 2xx |" in out
    assert "| usable | 3.1 % [0.6 % to 15.7 %] | 1 of 32 judged requests |" in out
    assert "Not usable: late 31 (96.9 %)." in out
    assert "Deadline: 1,000 ms, from the ledger; usable means on time, complete and non-empty; complete is unknown" in out
    assert "### quietburn gate: failed" in out
    assert "Repeat: `quietburn gate night.jsonl --min-usable 50%`" in out


def test_github_annotates_and_adds_to_the_summary(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [late(n) for n in range(8)])
    (tmp_path / "summary.md").write_text("# before\n")
    env = environment(GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "60%", "--only", "late-but-200", "--format", "github", env=env)
    assert done.out == (
        "::error title=quietburn gate%3A min_usable (fail)::usable rate 0.0 %25 [0.0 %25 to 32.4 %25] of 8 judged requests; "
        "the minimum is 60.0 %25\n"
        "::warning title=quietburn%3A late-but-200::Answers arrive as 200 after the caller's deadline (1 finding, 8 lines)\n"
        "quietburn gate: failed\n"
    )
    assert (done.status, done.err) == (1, "")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("# before\n<!-- quietburn gate -->\n### quietburn gate: failed\n")


def test_a_summary_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(n) for n in range(8)])
    env = environment(GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "folder"))
    done = run(tmp_path, "gate", "night.jsonl", "--min-usable", "60%", "--format", "github", env=env)
    assert (done.status, done.err) == (0, "quietburn: GITHUB_STEP_SUMMARY: can't be written; there is no summary.\n")


@pytest.mark.parametrize(
    ("title", "message", "line"),
    [
        ("a", "b", "::error title=a::b"),
        ("a: b, c", "50 %: d, e", "::error title=a%3A b%2C c::50 %25: d, e"),
        ("a", "one\r\ntwo\n::error::three", r"::error title=a::one\x0d\x0atwo\x0a::error::three"),
        ("a", "%0A::error::b", "::error title=a::%250A::error::b"),
    ],
)
def test_nothing_in_a_workflow_command_ends_it(title: str, message: str, line: str) -> None:
    assert command("error", title, message) == line


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("plain", "`plain`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("```", "```` ``` ````"), ("", "` `"),
        ("a\nb", r"`a\x0ab`"),
    ],
)
def test_a_code_span_holds_its_text_whatever_it_is(text: str, span: str) -> None:
    assert code(text) == span


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](http://b)", "\\[a\\](http:\u2044\u2044b)"), ("<b>&", "&lt;b&gt;&amp;"), ("@team #12", "\uff20team \uff0312"),
        ("a|b*c_d`", "a\\|b\\*c\\_d\\`"), ("www.example.org", "www\u2024example.org"),
    ],
)
def test_escaped_text_links_to_nothing_and_mentions_nobody(text: str, shown: str) -> None:
    assert escape(text) == shown


def examples(page: Path) -> list[str]:
    """Return the shell scripts of a page that are marked as tested."""
    return re.findall(r"<!-- tested -->\n```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_in_the_docs_runs(tmp_path: Path) -> None:
    scripts = examples(REPOSITORY / "docs" / "ci" / "shell.md")
    assert scripts
    night = (REPOSITORY / "fixtures" / "ledgers" / "demo_night.jsonl").read_bytes()
    for name in ("ledger.jsonl", "baseline.jsonl"):
        (tmp_path / name).write_bytes(b"".join(night.splitlines(keepends=True)[:1000]))  # its first hour, which is healthy
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin" / "quietburn"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m quietburn "$@"\n')
    launcher.chmod(0o755)
    env = environment(PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for script in scripts:
        done = subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert (tmp_path / "gate.md").read_text().startswith("<!-- quietburn gate -->")
    SCHEMA.assertValid(etree.parse(tmp_path / "gate.xml"))


def test_the_pages_for_ci_servers_call_flags_that_exist() -> None:
    known = run(REPOSITORY, "gate", "--help").out + run(REPOSITORY, "compare", "--help").out
    for page in ("github-actions.md", "gitlab.md", "shell.md"):
        text = (REPOSITORY / "docs" / "ci" / page).read_text(encoding="utf-8")
        calls = re.findall(r"quietburn (?:gate|compare) (?!-->)([^|\n]*)", text)
        called = {flag for call_ in calls for flag in re.findall(r"(?<!\S)--[a-z-]+", call_)}
        assert called
        assert called <= set(re.findall(r"--[a-z-]+", known)), page

"""A new rule starts from an example that works, and whatever it still lacks is said in words."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rules.helpers import ROOT, defaults

from quietburn.authoring.checking import check_checkout, check_files, load_all, stale_fixtures
from quietburn.authoring.checkout import Checkout
from quietburn.authoring.skeleton import new_rule
from quietburn.authoring.trying import differences
from quietburn.engine.binding import undeclared
from quietburn.errors import UsageError
from quietburn.ruleset.files import load_rule
from quietburn.ruleset.lint import lint

RULE = "streams-slowed"


@pytest.fixture
def place(tmp_path: Path) -> Checkout:
    """Return a checkout without rules but with what makes fixtures."""
    for name in ("fixtures/rules/make.py", "fixtures/rules/build.py", "fixtures/rules/edges.py", "tests/rules/edges.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("rules", "fixtures/rules/cases", "fixtures/days"):
        (tmp_path / name).mkdir(parents=True)
    return Checkout(tmp_path)


def make(place: Checkout) -> None:
    script = place.root / "fixtures" / "rules" / "make.py"
    subprocess.run([sys.executable, str(script), RULE], cwd=place.root, check=True, capture_output=True)


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def said(place: Checkout) -> list[str]:
    return [str(problem) for problem in check_checkout(place, [load_rule(place.rule_file(RULE))])]


@pytest.mark.parametrize("of_events", [False, True])
def test_a_new_rule_works_before_anything_is_filled_in(of_events: bool, place: Checkout) -> None:  # noqa: FBT001
    written = [place.name(path) for path in new_rule(place, RULE, of_events=of_events)]
    make(place)
    rule = load_rule(place.rule_file(RULE))

    assert written == [
        "rules/streams-slowed.toml", "fixtures/rules/cases/streams_slowed.py", "fixtures/days/streams_slowed_faults.py"
    ]
    assert (lint(rule, defaults(rule)), undeclared(rule, defaults(rule))) == ([], [])
    assert list(differences(rule, place.fixtures(RULE))) == []
    assert [problem.words for problem in check_files({place.rule_file(RULE): rule})] == []
    assert (rule.classify is not None) == of_events


def test_what_is_still_to_be_filled_in_or_made_is_named_with_file_and_line(place: Checkout) -> None:
    new_rule(place, RULE)
    before = said(place)
    make(place)

    assert 'rules/streams-slowed.toml:6: fill in: title = "TODO: what contradicts the healthy signal, in one line"' in before
    ledger = "fixtures/rules/streams-slowed/fires.jsonl: is out of date; run `python fixtures/rules/make.py streams-slowed`."
    assert ledger in before
    assert ledger not in said(place)


def test_a_missing_case_flip_edge_or_fault_is_named_with_what_to_add(place: Checkout) -> None:
    new_rule(place, RULE)
    replaced(place.case_file(RULE), 'at_least("min_hits", "by-a-hair", "6", TICKET), ', "")
    replaced(place.case_file(RULE), 'Flip({"hit_share": 0.2}, "fires", {}),', "")
    place.fault_file(RULE).unlink()
    make(place)
    words = said(place)
    place.case_file(RULE).unlink()

    case = "fixtures/rules/cases/streams_slowed.py"
    assert f"{case}: has no edge for min_hits; add the number at which a verdict changes." in words
    assert f"{case}: has no Flip for hit_share alone; add one that changes a verdict." in words
    assert any(w.startswith("fixtures/days/streams_slowed_faults.py: is missing: no fault is planted") for w in words)
    assert any(w.startswith(f"{case}: is missing") for w in said(place))


def test_what_a_rule_finds_otherwise_than_its_case_says_is_told_in_words(place: Checkout) -> None:
    new_rule(place, RULE)
    make(place)
    replaced(place.rule_file(RULE), "status >= 500", "status >= 200")

    words = list(differences(load_rule(place.rule_file(RULE)), place.fixtures(RULE)))

    assert "fires.jsonl: by-a-hair: count is 60, expected 6" in words
    assert "fires.jsonl: by-a-hair: observed share is 1, expected 0.1" in words
    assert "quiet.jsonl: exactly-5-percent: found a ticket on {'route': 'complete'} that was not expected" in words
    assert "fires.jsonl with min_hits = 7: by-a-hair is ticket, expected quiet" in words
    assert any(w.startswith("fires.jsonl: edge of min_hits: at 6.000006 by-a-hair is ticket, expected quiet") for w in words)


def test_a_case_that_cannot_run_is_told_in_one_line(place: Checkout) -> None:
    new_rule(place, RULE)
    replaced(place.case_file(RULE), "(11, 15), 6, {", "(11, 15), 7, {")

    (problem,) = stale_fixtures(place, [RULE])

    assert str(problem) == "fixtures/rules/cases: ValueError: by-a-hair: 6 lines are marked, 7 expected"


def test_two_rules_that_count_different_things_under_one_name_are_named(place: Checkout) -> None:
    new_rule(place, RULE)
    new_rule(place, "answers-failed")
    replaced(place.rule_file("answers-failed"), "answers_failed_seen", "streams_slowed_seen")
    replaced(place.rule_file("answers-failed"), "status IS NOT NULL", "status > 0")
    rules, problems = load_all([place.rule_file("answers-failed"), place.rule_file(RULE)])

    assert problems == []
    assert [problem.words for problem in check_files(rules)] == [
        "event 'streams-slowed-seen' counts something different from the one in answers-failed. Rename it."
    ]


def test_an_id_that_is_taken_or_malformed_is_refused_and_nothing_is_written(place: Checkout) -> None:
    new_rule(place, RULE)
    written = sorted(place.root.rglob("*"))

    with pytest.raises(UsageError, match=r"rules/streams-slowed.toml already exists. Choose another id"):
        new_rule(place, RULE)
    with pytest.raises(UsageError, match=r"use lower-case words joined by -"):
        new_rule(place, "../Streams")
    assert sorted(place.root.rglob("*")) == written

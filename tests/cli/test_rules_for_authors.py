"""`rules check` and `rules new` from the command line: what is wrong in words, and an exit status that CI can read."""

from pathlib import Path

from tests.cli.program import run
from tests.rules.helpers import RULES


def own_rule(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write a shipped rule under a name of its own into a folder of a user, with some changes."""
    text = (RULES / "queue-over-budget.toml").read_text(encoding="utf-8")
    for old, new in (('id = "queue-over-budget"', 'id = "own-rule"'), *changes):
        assert old in text
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    (folder / "own-rule.toml").write_text(text, encoding="utf-8")
    return folder / "own-rule.toml"


def test_a_good_rule_of_ones_own_has_nothing_to_mend(tmp_path: Path) -> None:
    own_rule(tmp_path / "mine")

    done = run(tmp_path, "rules", "check", "mine")

    assert (done.status, done.out, done.err) == (0, "1 rule: nothing to fix.\n", "")


def test_each_thing_that_is_wrong_is_named_with_file_and_key_and_the_exit_status_is_1(tmp_path: Path) -> None:
    own_rule(
        tmp_path / "mine",
        ('"ts", "queue_age_ms", "deadline_ms"', '"ts", "queue_age_ms"'),
        ('over_share = "over_budget_5m / waits_with_budget_5m"', 'over_share = "median(over_budget_5m)"'),
        ('inference = "The queue takes', 'inference = "{{ wait }} The queue takes'),
    )
    (tmp_path / "mine" / "broken.toml").write_text('[rule]\nid = "broken"\n', encoding="utf-8")

    done = run(tmp_path, "rules", "check", "mine")

    assert (done.status, done.err) == (1, "4 to fix.\n")
    broken, median, needs, sentence = done.out.splitlines()
    assert broken.startswith("mine/broken.toml: rule.revision: is required; ")
    assert median.startswith("mine/own-rule.toml: window.observed.over_share: calls median(); ")
    assert needs == (
        "mine/own-rule.toml: rule.needs: reads 'deadline_ms' and doesn't declare it; name it in needs, any_of or optional."
    )
    assert sentence.startswith("mine/own-rule.toml: finding.inference: can't be rendered (UndefinedError); it may use ")


def test_a_place_without_rules_and_an_id_that_is_taken_are_refused_in_one_line(tmp_path: Path) -> None:
    nothing = run(tmp_path, "rules", "check", "nowhere")
    taken = run(tmp_path, "rules", "new", "saturation")

    assert (nothing.status, nothing.err) == (2, "quietburn: nowhere: no such file or folder.\n")
    assert (taken.status, taken.err) == (
        2, "quietburn: rules new saturation: rules/saturation.toml already exists. Choose another id.\n"
    )

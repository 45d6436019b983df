"""A forked call is what a started one is: these tests would not see a program that only works in one of them."""

from pathlib import Path

import pytest
from tests.cli.program import call, environment, jsonl, late, run, run_started, write
from tests.cli.warm import warm_server

CALLS = [
    ("analyze", "night.jsonl"), ("analyze", "night.jsonl", "--format", "json", "--fail-on", "page"), ("analyze", "-"),
    ("analyze", "none.jsonl"), ("gate", "night.jsonl", "--min-usable", "60%", "--format", "json"), ("rules", "list"),
    ("analyze", "--no-such-flag"), (),
]


@pytest.mark.parametrize("arguments", CALLS, ids=" ".join)
def test_a_forked_call_leaves_what_a_started_one_leaves(arguments: tuple[str, ...], tmp_path: Path) -> None:
    events = [late(second) for second in range(6)]
    write(tmp_path / "night.jsonl", events)

    forked = run(tmp_path, *arguments, stdin=jsonl(events))

    assert forked == run_started(tmp_path, *arguments, stdin=jsonl(events))
    assert forked.out or forked.err


def test_a_forked_call_writes_into_its_own_folder_and_keeps_nothing_for_the_next(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder / "night.jsonl", [call(second) for second in range(number)])
        assert run(folder, "analyze", "night.jsonl", "--format", "json", "--output", "report.json").status == 0
        assert f'"lines": {number},' in (folder / "report.json").read_text(encoding="utf-8")


def test_only_a_call_with_the_same_environment_is_forked_but_programs_may_lie_elsewhere(tmp_path: Path) -> None:
    assert run(tmp_path, "rules", "list").status == 0
    assert warm_server(environment(TZ="Asia/Tokyo")) is None
    assert warm_server(environment(PYTHONHASHSEED="1")) is None
    assert warm_server(environment()) is warm_server(environment(PATH="/nowhere"))

"""No output eats an input or another output, through whatever links, and a set of files is whole or absent."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import call, environment, is_one_line, run, write

from quietburn.cli.written import replace_set

# What the call is, and which flag the one line names.
OVERLAPS = {
    "the report over its ledger": (["analyze", "a.jsonl", "--output", "a.jsonl"], "--output a.jsonl"),
    "through a symbolic link": (["analyze", "a.jsonl", "--output", "link"], "--output link"),
    "through a hard link": (["analyze", "hard", "--output", "a.jsonl"], "--output a.jsonl"),
    "through a linked folder": (["analyze", "a.jsonl", "--output", "same/a.jsonl"], "--output same/a.jsonl"),
    "over a ledger of a folder": (["analyze", "logs", "--output", "logs/b.jsonl"], "--output logs/b.jsonl"),
    "over a ledger of a pattern": (["analyze", "logs/*.jsonl", "--output", "logs/b.jsonl"], "--output logs/b.jsonl"),
    "refused lines over the ledger": (["analyze", "a.jsonl", "--quarantine", "a.jsonl"], "--quarantine a.jsonl"),
    "the store over the ledger": (["analyze", "a.jsonl", "--db", "a.jsonl"], "--db a.jsonl"),
    "the report over the store": (["analyze", "--db", "s.db", "--output", "s.db"], "--output and --db"),
    "the report over CPU use": (["analyze", "a.jsonl", "--cpu", "cpu.csv", "--output", "cpu.csv"], "--output cpu.csv"),
    "the report over the configuration": (["analyze", "a.jsonl", "--output", "quietburn.toml"], "--output quietburn.toml"),
    "the report over the mapping": (["analyze", "a.jsonl", "--map", "m.toml", "--output", "m.toml"], "--output m.toml"),
    "one name for two": (["analyze", "a.jsonl", "--output", "new", "--quarantine", "./new"], "--output and --quarantine"),
    "one new file through a link": (
        ["analyze", "a.jsonl", "--output", "same/new", "--quarantine", "new"], "--output and --quarantine"
    ),
    "the verdict over the ledger": (["gate", "a.jsonl", "--min-usable", "1%", "--output", "a.jsonl"], "--output a.jsonl"),
    "the verdict over the baseline": (
        ["gate", "logs", "--baseline", "a.jsonl", "--max-drop", "1%", "--output", "a.jsonl"], "--output a.jsonl"
    ),
    "the comparison over its second": (["compare", "logs/b.jsonl", "a.jsonl", "--output", "link"], "--output link"),
    "alerts into the ledger": (["alerts", "a.jsonl", "--unproven", "--out", "a.jsonl"], "--out a.jsonl"),
    "alerts over a ledger": (["alerts", "out/alerts.yaml", "--unproven", "--out", "out"], "--out out/alerts.yaml:"),
    "both on standard output": (["analyze", "a.jsonl", "--quarantine", "-"], "--quarantine -"),
    "both on standard output by name": (["analyze", "a.jsonl", "--quarantine", "/dev/stdout"], "--quarantine /dev/stdout"),
    "a link in a circle": (["analyze", "a.jsonl", "--output", "circle"], "--output circle"),
}


@pytest.mark.parametrize(("arguments", "said"), OVERLAPS.values(), ids=OVERLAPS)
def test_an_output_that_is_an_input_is_refused_and_every_byte_stays(tmp_path: Path, arguments: list[str], said: str) -> None:
    for folder in ("logs", "out"):
        (tmp_path / folder).mkdir()
    for name in ("a.jsonl", "logs/b.jsonl", "logs/c.jsonl", "out/alerts.yaml"):
        write(tmp_path / name, [call(second) for second in range(5)])
    (tmp_path / "s.db").write_bytes(b"")
    (tmp_path / "cpu.csv").write_text("ts,cpu_pct\n2026-09-08T02:14:00Z,5\n")
    (tmp_path / "quietburn.toml").write_text("max_retries = 1\n")
    (tmp_path / "m.toml").write_text('[dialect]\nname = "mine"\n[columns]\nstatus = { from = "code" }\n')
    (tmp_path / "link").symlink_to("a.jsonl")
    os.link(tmp_path / "a.jsonl", tmp_path / "hard")
    (tmp_path / "same").symlink_to(".")
    (tmp_path / "circle").symlink_to("circle")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    done = run(tmp_path, *arguments)

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err) and said in done.err and "internal error" not in done.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_ledger_on_standard_input_is_no_output_either(tmp_path: Path) -> None:
    ledger = write(tmp_path / "a.jsonl", [call(1)])
    before = ledger.read_bytes()
    with ledger.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "quietburn", "analyze", "-", "--output", "a.jsonl"], cwd=tmp_path, stdin=stdin,
            capture_output=True, text=True, env=environment(), check=False,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert is_one_line(done.stderr) and "--output a.jsonl: is the ledger on standard input" in done.stderr
    assert ledger.read_bytes() == before


def test_outputs_that_are_two_files_are_written(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [call(1)])
    (tmp_path / "old.txt").write_text("old")
    done = run(tmp_path, "analyze", "a.jsonl", "--output", "old.txt", "--quarantine", "-")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert (tmp_path / "old.txt").read_text() != "old"
    done = run(tmp_path, "analyze", "a.jsonl", "--output", "/dev/null", "--quarantine", "/dev/null")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-m", "quietburn", "analyze", "a.jsonl"], cwd=gone,
        capture_output=True, text=True, env=environment(PYTHONPATH=str(Path(__file__).parents[2] / "analyzer")), check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "quietburn: the working directory no longer exists. Change to another folder.\n"


# A set of files, killed at every step

SET = {"alerts.yaml": "new", "alerts_test.yaml": "new test", "runbook/a.md": "new page", "scrape.yaml": "same"}
BOUND = ["alerts.yaml", "alerts_test.yaml"]


def killed_at(step: int, folder: Path) -> bool:
    """Write the set in a process that is killed before its so manieth change of a folder; return whether it came so far."""
    child = os.fork()
    if child == 0:
        left = step

        def counted(method: Callable[..., Any]) -> Callable[..., Any]:
            def change(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return method(*arguments, **named)

            return change

        for name in ("replace", "rename", "unlink", "mkdir"):
            setattr(Path, name, counted(getattr(Path, name)))
        try:
            replace_set(folder, SET, BOUND)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


OLD = {"alerts.yaml": "old", "alerts_test.yaml": "old test", "scrape.yaml": "same", "mine.txt": "mine"}


@pytest.mark.parametrize("old", [{}, OLD], ids=["a new folder", "a folder with an older set"])
def test_a_set_that_is_killed_at_any_step_is_the_old_the_new_or_absent(tmp_path: Path, old: dict[str, str]) -> None:
    seen = set()
    for step in range(40):
        cwd = tmp_path / str(step)
        cwd.mkdir()
        for name, text in old.items():
            (cwd / "out").mkdir(exist_ok=True)
            (cwd / "out" / name).write_text(text)
        killed = killed_at(step, cwd / "out")
        found = {name: path.read_text() for name in {*SET, *old} if (path := cwd / "out" / name).exists()}
        rules = tuple(found.get(name) for name in ("alerts.yaml", "alerts_test.yaml"))
        seen.add(rules)
        assert rules[0] in (None, "old", "new")
        if rules[0] == "new":
            assert found == old | SET
        if rules[0] == "old":
            assert {name: found.get(name) for name in old} == old
        assert found.get("mine.txt") == old.get("mine.txt")
        if not killed:
            break
    assert not killed
    assert (None, None) in seen or not old
    assert ("new", "new test") in seen


def test_a_disk_that_is_full_leaves_the_old_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_set(tmp_path / "out", SET | {"alerts.yaml": "old"}, ["alerts.yaml"])
    written = 0

    def fsync(_: int) -> None:
        nonlocal written
        written += 1
        if written == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        replace_set(tmp_path / "out", SET | {"scrape.yaml": "new too"}, ["alerts.yaml"])
    kept = {name: (tmp_path / "out" / name).read_text() for name in SET}
    assert kept == SET | {"alerts.yaml": "old"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"alerts.yaml", "alerts_test.yaml", "runbook", "scrape.yaml"}

"""SIGTERM: every command ends in 143 with one line, at whatever moment it comes and whatever runs."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.program import QUIETBURN, call, environment, jsonl, late, run, write
from tests.missing import unavailable

WAIT_S = 60  # a run that isn't ended would take hours; what bounds the answer is the command's own clock
TERMINATED = (143, b"", b"quietburn: terminated.\n")
COMMANDS = {
    "analyze": ["analyze", "-", "--fail-on", "page"],
    "gate": ["gate", "-", "--min-usable", "99.9%"],
    "alerts": ["alerts", "-", "--out", "made"],
    "backtest": ["backtest", "-"],
}


@contextmanager
def started(folder: Path, command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command whose temporary files go to `folder`/tmp; give it once it answers SIGTERM itself."""
    (folder / "tmp").mkdir()
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(TMPDIR=str(folder / "tmp"), PATH=os.environ["PATH"]),
    )
    try:
        while not catches_sigterm(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


def catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        unavailable("this system does not tell which signals a process catches")
    (caught,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, bytes, bytes]:
    assert process.stdout is not None and process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    return process.wait(WAIT_S), out, err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_waits_for_its_ledger_is_terminated(tmp_path: Path, command: list[str]) -> None:
    if command[0] in ("alerts", "backtest") and shutil.which("promtool") is None:
        unavailable("promtool is not installed")
    with started(tmp_path, [*QUIETBURN, *command]) as process:
        assert process.stdin is not None
        process.stdin.write(jsonl(call(second) for second in range(600)))
        process.stdin.flush()
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == TERMINATED
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("after_s", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_stopped_command_never_ends_as_one_that_passed(tmp_path: Path, command: list[str], after_s: float) -> None:
    if command[0] in ("alerts", "backtest") and shutil.which("promtool") is None:
        unavailable("promtool is not installed")
    night = write(tmp_path / "night.jsonl", ((late if n % 9 == 0 else call)(n / 20, client=f"c{n % 7}") for n in range(60_000)))
    with started(tmp_path, [*QUIETBURN, *(str(night) if word == "-" else word for word in command)]) as process:
        time.sleep(after_s)
        if process.poll() is not None:  # a quick machine: there was nothing left to stop
            assert process.returncode not in (0, TERMINATED[0])
            return
        process.send_signal(signal.SIGTERM)
        status, _, err = ended(process)  # the report may be out already: the run still didn't come to its end
    assert (status, err) == (TERMINATED[0], TERMINATED[2])
    assert list((tmp_path / "tmp").iterdir()) == []


# What neither unwinds nor looks at signals, put in the place of a part of the run.
STUCK = {
    "a thread of the pool": """
        import quietburn.ledger.load as load
        def parsed(*_, **__):
            started()
            time.sleep(3600)
        load.parsed = parsed
    """,
    "a long statement": """
        from quietburn.engine.duckdb_engine import DuckEngine
        def prepare(self, settings):
            started()
            pairs = "range(10_000_000_000) a, range(1_000_000) b"
            self.connection.execute(f"SELECT count(*) FROM {pairs} WHERE hash(a.range) % 7 = b.range")
        DuckEngine.prepare = prepare
    """,
    "a call that looks at no signal": """
        import ctypes
        from quietburn.engine.duckdb_engine import DuckEngine
        def prepare(self, settings):
            started()
            library = ctypes.CDLL(None)
            while True:
                library.sleep(3600)
        DuckEngine.prepare = prepare
    """,
    "a guard that takes everything for a fault of a rule": """
        from quietburn.engine.duckdb_engine import DuckEngine
        def prepare(self, settings):
            started()
            while True:
                try:
                    time.sleep(3600)
                except BaseException:
                    pass
        DuckEngine.prepare = prepare
    """,
    "a regular expression over many short texts": """
        import re
        import quietburn.ledger.load as load
        def parsed(*_, **__):
            started()
            while True:
                re.match("(a+)+$", "a" * 18 + "b")
        load.parsed = parsed
    """,
}


@pytest.mark.parametrize("stuck", STUCK.values(), ids=STUCK)
def test_what_is_stuck_is_ended_all_the_same_and_its_temporary_files_are_removed(tmp_path: Path, stuck: str) -> None:
    write(tmp_path / "night.jsonl", [call(second) for second in range(60)])
    program = "import pathlib, sys, time\n" + textwrap.dedent(f"""
        def started():
            pathlib.Path("started").touch()
        {textwrap.indent(textwrap.dedent(stuck), ' ' * 8).strip()}
        from quietburn.cli.main import main
        sys.argv[1:] = ["gate", "night.jsonl", "--min-usable", "1%"]
        main()
    """)
    with started(tmp_path, [sys.executable, "-c", program]) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == TERMINATED
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_terminated_load_leaves_a_store_that_the_next_call_fills(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", (call(n / 20, request_id=f"r{n}") for n in range(60_000)))
    with started(tmp_path, [*QUIETBURN, "analyze", "night.jsonl", "--db", "nights.duckdb"]) as process:
        while not (tmp_path / "nights.duckdb").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == TERMINATED
    done = run(tmp_path, "analyze", "night.jsonl", "--db", "nights.duckdb", "--format", "json")
    assert done.report["ledger"]["used"] == 60_000
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize(("raised", "status"), [("SystemExit(7)", 7), ("SystemExit()", 0), ("SystemExit('words')", 1)])
def test_every_other_exit_keeps_its_status(tmp_path: Path, raised: str, status: int) -> None:
    program = textwrap.dedent(f"""
        import sys
        import quietburn.dialects.mapping as mapping
        def shipped_mappings():
            raise {raised}
        mapping.shipped_mappings = shipped_mappings
        from quietburn.cli.main import main
        sys.argv[1:] = ["dialects", "list"]
        main()
    """)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (status, b"")

"""Ctrl-C, a reader that has seen enough, a full disk: a clear end each time."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

from tests.cli.program import QUIETBURN, Done, call, environment, interruptible, jsonl, late, run, write
from tests.missing import unavailable

_MORE_THAN_A_PIPE_HOLDS = 1 << 18


def wait_until_it_waits(process: "subprocess.Popen[bytes]") -> None:
    """Return once the process has emptied its pipe and sleeps, which it does only to wait for more of it."""
    assert process.stdin is not None
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        process.kill()
        unavailable("this system does not tell what a process is doing")
    while process.poll() is None:
        unread = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)
        if unread == 0 and stat.read_text().rpartition(")")[2].split()[0] == "S":
            return
        time.sleep(0.01)


def test_ctrl_c_while_reading_ends_in_130_with_one_line_and_no_traces(tmp_path: Path) -> None:
    spill = tmp_path / "tmp"
    spill.mkdir()
    process = subprocess.Popen(
        [*QUIETBURN, "analyze", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(TMPDIR=str(spill)), preexec_fn=interruptible,  # noqa: PLW1509 - no threads here
    )
    assert process.stdin is not None
    process.stdin.write(jsonl(call(second) for second in range(3000))[:_MORE_THAN_A_PIPE_HOLDS])
    process.stdin.flush()
    wait_until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    assert process.wait(60) == 130
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    assert (out, err) == (b"", b"quietburn: interrupted.\n")
    assert list(spill.iterdir()) == []


def into(folder: Path, output: int, *arguments: str) -> Done:
    """Run the command with this descriptor as standard output."""
    done = subprocess.run(
        [*QUIETBURN, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, check=False,
        env=environment(),
    )
    return Done(done.returncode, "", done.stderr.decode("utf-8"))


def test_a_reader_that_has_seen_enough_changes_no_exit_status_and_sees_no_traceback(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [late(second) for second in range(1, 7)])
    unread, written = os.pipe()
    os.close(unread)
    try:
        assert into(tmp_path, written, "analyze", "night.jsonl") == Done(0, "", "")
        assert into(tmp_path, written, "analyze", "night.jsonl", "--format", "json", "--fail-on", "page") == Done(1, "", "")
        assert into(tmp_path, written, "rules", "list") == Done(0, "", "")
        assert into(tmp_path, written, "--help") == Done(0, "", "")
    finally:
        os.close(written)


def test_a_standard_output_that_is_full_or_closed_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(1)])
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *QUIETBURN, "analyze", "night.jsonl"], cwd=tmp_path, stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=environment(), check=False,
    )
    assert (closed.returncode, closed.stderr) == (2, "quietburn: standard output: is closed; name a file with --output.\n")
    if not Path("/dev/full").is_char_device():
        unavailable("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = into(tmp_path, full.fileno(), "analyze", "night.jsonl")
    assert done == Done(2, "", "quietburn: standard output: can't be written (no space left on device).\n")
    with Path("/dev/full").open("wb") as full:
        missing = subprocess.run(
            [*QUIETBURN, "analyze", "none.jsonl"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full,
            env=environment(), check=False,
        )
    assert (missing.returncode, missing.stdout) == (2, b"")


def test_output_to_a_pipe_or_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    write(tmp_path / "night.jsonl", [call(1)])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    piped = run(tmp_path, "analyze", "night.jsonl", "--output", "pipe")
    if piped.status != 0 or not pipe.is_fifo():  # else the reader would wait for ever
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    reader.join(60)
    assert (piped.status, piped.out, piped.err) == (0, "", "")
    assert pipe.is_fifo()
    printed = run(tmp_path, "analyze", "night.jsonl")
    assert read == [printed.out]
    stdout = run(tmp_path, "analyze", "night.jsonl", "--output", "/dev/stdout")
    dash = run(tmp_path, "analyze", "night.jsonl", "--output", "-")
    assert stdout == dash == printed


def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path) -> None:
    spill = tmp_path / "tmp"
    spill.mkdir()
    write(tmp_path / "night.jsonl", [call(1)])
    (tmp_path / "empty.jsonl").touch()
    for name, status in (("night.jsonl", 0), ("empty.jsonl", 2)):
        assert run(tmp_path, "analyze", name, env=environment(TMPDIR=str(spill))).status == status
        assert list(spill.iterdir()) == []

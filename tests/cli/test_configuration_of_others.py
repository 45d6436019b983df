"""A configuration found upward counts where nobody else could have put it there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.program import call, is_one_line, run, run_without_rights, write
from tests.missing import unavailable

OTHER = 65_534  # nobody, on every system that matters here
LAX = "[gate]\nmin_usable = 0.0\n"


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A working directory with a ledger, below the folder where a configuration will be found."""
    if os.geteuid() != 0:
        unavailable("only root can give a file to another user")
    folder = tmp_path / "shared" / "work"
    folder.mkdir(parents=True)
    write(folder / "a.jsonl", [call(second) for second in range(5)])
    return folder


def owned_by_another(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


def linked_by_another(path: Path) -> None:
    path.rename(path.with_name("real.toml"))
    path.symlink_to("real.toml")
    os.lchown(path, OTHER, OTHER)


def writable_by_all(path: Path) -> None:
    path.chmod(0o646)


def writable_by_a_group(path: Path) -> None:
    os.chown(path, 0, OTHER)
    path.chmod(0o664)


@pytest.mark.parametrize("put", [owned_by_another, linked_by_another, writable_by_all, writable_by_a_group])
@pytest.mark.parametrize("name", ["quietburn.toml", "pyproject.toml"])
def test_what_somebody_else_could_have_put_there_is_not_taken(deep: Path, name: str, put: Callable[[Path], None]) -> None:
    path = deep.parent / name
    path.write_text(LAX if name == "quietburn.toml" else LAX.replace("gate", "tool.quietburn.gate"))
    put(path)
    gate = run(deep, "gate", "a.jsonl", "--max-gap", "50%")
    assert (gate.status, gate.out) == (2, "")
    assert is_one_line(gate.err) and f"configuration {path}: is ignored: " in gate.err
    analyzed = run(deep, "analyze", "a.jsonl", "--format", "json")
    assert analyzed.status == 0
    assert is_one_line(analyzed.err) and f"configuration {path}: is ignored: " in analyzed.err
    assert any(f"configuration {path}: is ignored: " in notice for notice in analyzed.report["notices"])
    named = run(deep, "gate", "a.jsonl", "--config", f"../{name}")
    assert (named.status, named.err) == (0, "")


def test_a_configuration_of_whoever_owns_the_working_directory_is_taken(deep: Path) -> None:
    path = deep.parent / "quietburn.toml"
    path.write_text(LAX)
    for owned in (path, deep):
        os.chown(owned, OTHER, OTHER)
    done = run(deep, "gate", "a.jsonl")
    assert (done.status, done.err) == (0, "")


def test_a_foreign_file_that_is_no_configuration_for_us_is_none_of_our_business(deep: Path) -> None:
    path = deep.parent / "pyproject.toml"
    for text in ("[tool.other]\nx = 1\n", "no TOML at all"):
        path.write_text(text)
        owned_by_another(path)
        done = run(deep, "analyze", "a.jsonl")
        assert (done.status, done.err) == (0, "")


def test_a_foreign_configuration_that_is_broken_stops_nobody_but_the_gate(deep: Path) -> None:
    path = deep.parent / "quietburn.toml"
    path.write_text("no TOML at all")
    owned_by_another(path)
    assert run(deep, "analyze", "a.jsonl").status == 0
    assert run(deep, "gate", "a.jsonl", "--max-gap", "50%").status == 2


def test_a_folder_above_that_may_not_be_searched_holds_no_configuration(deep: Path) -> None:
    deep.parent.chmod(0o600)
    try:
        done = run_without_rights(deep, "analyze", "a.jsonl")
    finally:
        deep.parent.chmod(0o755)
    assert (done.status, done.err) == (0, "")

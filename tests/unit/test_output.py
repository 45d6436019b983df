"""Files are written whole or not at all."""

import os
from pathlib import Path

import pytest

from quietburn.cli.written import replace_file, write_result
from quietburn.errors import UsageError


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"can't be written \(no space left on device\)"):
        write_result("new", path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_gets_the_usual_rights_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    old_mask = os.umask(0o027)
    try:
        replace_file(tmp_path / "new.txt", "a\n")
        (tmp_path / "old.txt").write_text("b")
        (tmp_path / "old.txt").chmod(0o604)
        replace_file(tmp_path / "old.txt", "c\n")
    finally:
        os.umask(old_mask)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "old.txt").stat().st_mode & 0o777 == 0o604
    assert (tmp_path / "old.txt").read_bytes() == b"c\n"


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    replace_file(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't be written \(is a directory\)"):
        write_result("new", tmp_path)
    assert list(tmp_path.iterdir()) == []

"""An input that can't be used is one line that names it and says how to mend it; never a traceback."""

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.program import Done, call, environment, interruptible, is_one_line, jsonl, run, run_all, run_without_rights, write

PDF = (
    b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    b"2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\n"
    b"endobj\nxref\n0 3\n0000000000 65535 f \n0000000015 00000 n \n0000000064 00000 n \n"
    b"trailer\n<< /Size 3 /Root 1 0 R >>\nstartxref\n117\n%%EOF\n"
)
NIGHT = jsonl(call(second) for second in range(2000))
PLAIN = "none of the sampled lines is a JSON object. A ledger has one JSON object per line."
NOT_REGULAR = "not a regular file. Copy its content into a file, or pipe it in and name '-'."
NO_LEDGER = "contains no ledger (*.jsonl, *.ndjson, *.log, also .gz and .zst). Name the files themselves."
NO_FILE = "no such file. Check the name, or name a folder that contains ledgers."
DAMAGED = (
    "can't be decompressed; it is not a {0} file, or it is truncated or damaged. "
    "Copy it again, or rename it without {0} if it is plain text."
)
BOMB = 100 << 20
EXPANDS = (
    "expands to more than 200 times its size; it looks like a decompression bomb. Decompress it yourself if you trust it, "
    "and name the result."
)
RANDOM = random.Random(7).randbytes(5000)  # noqa: S311 - bytes, not secrets


def _notes(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("nothing to see")


def _empties(path: Path) -> None:
    path.mkdir()
    (path / "a.jsonl").touch()
    (path / "b.jsonl.gz").write_bytes(gzip.compress(b""))


# By name: how it is made, and the line after `quietburn: NAME: `.
INPUTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty.jsonl": (lambda path: path.touch(), "is empty. There is nothing to analyze."),
    "empty.jsonl.gz": (lambda path: path.write_bytes(gzip.compress(b"")), "is empty. There is nothing to analyze."),
    "missing.jsonl": (lambda path: path, NO_FILE),
    "no-ledgers": (_notes, NO_LEDGER),
    "folder.jsonl": (lambda path: path.mkdir(), NO_LEDGER),
    "random.jsonl": (lambda path: path.write_bytes(RANDOM), PLAIN),
    "paper.pdf": (lambda path: path.write_bytes(PDF), PLAIN),
    "blank.jsonl": (lambda path: path.write_bytes(b"\n\n  \n\t\n\r\n\n"), PLAIN),
    "pipe.jsonl": (os.mkfifo, NOT_REGULAR),
    "null.jsonl": (lambda path: path.symlink_to("/dev/null"), NOT_REGULAR),
    "dangling.jsonl": (lambda path: path.symlink_to("gone.jsonl"), NO_FILE),
    "loop.jsonl": (
        lambda path: path.symlink_to(path.name),
        "can't be opened (too many levels of symbolic links). Name a readable file.",
    ),
    "s3:": (lambda path: path, NO_FILE),
    "none-*.jsonl": (lambda path: path, "no file matches this pattern. Check it, or name a folder that contains ledgers."),
    "empties": (_empties, "is empty, like every other ledger here. There is nothing to analyze."),
    "cut.jsonl.gz": (
        lambda path: path.write_bytes(gzip.compress(NIGHT)[:3000]),
        "the compressed data ends early; the file is truncated. Copy it again.",
    ),
    "plain.jsonl.gz": (lambda path: path.write_bytes(NIGHT), DAMAGED.format(".gz")),
    "tail.jsonl.gz": (lambda path: path.write_bytes(gzip.compress(NIGHT) + b"more text"), DAMAGED.format(".gz")),
    "random.jsonl.zst": (lambda path: path.write_bytes(RANDOM), DAMAGED.format(".zst")),
    "plain.jsonl.zst": (lambda path: path.write_bytes(NIGHT), DAMAGED.format(".zst")),
    "cut.jsonl.zst": (lambda path: path.write_bytes(_zstd(NIGHT)[:-3]), DAMAGED.format(".zst")),
    "bomb.jsonl.gz": (lambda path: path.write_bytes(gzip.compress(NIGHT + b"\n" * BOMB)), EXPANDS),
    "bomb.jsonl.zst": (lambda path: path.write_bytes(_zstd(NIGHT + b" " * BOMB)), EXPANDS),
    "objects.jsonl": (
        lambda path: path.write_bytes(b'{"name":"x","colour":"red"}\n{"name":"y","colour":"blue"}\n'),
        "no known dialect fits its lines. The closest is ",
    ),
}


def _zstd(data: bytes) -> bytes:
    import pyarrow as pa

    packed = pa.compress(data, codec="zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    folder = tmp_path_factory.mktemp("inputs")
    for name, (make, _) in INPUTS.items():
        make(folder / name)
    return dict(zip(INPUTS, run_all(folder, [["analyze", name] for name in INPUTS]), strict=True))


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_cannot_be_used_is_one_line_that_names_it(name: str, outcomes: dict[str, Done]) -> None:
    done = outcomes[name]
    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    first = "empties/a.jsonl" if name == "empties" else name
    assert done.err.startswith(f"quietburn: {first}: {INPUTS[name][1]}")
    assert "Traceback" not in done.err


def test_a_file_that_may_not_be_read_is_one_line_that_names_it(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.jsonl", [call(1)])
    secret.chmod(0)
    closed = tmp_path / "closed"
    closed.mkdir()
    write(closed / "night.jsonl", [call(1)])
    closed.chmod(0)
    file, folder, within = (run_without_rights(tmp_path, "analyze", n) for n in ("secret.jsonl", "closed", "closed/night.jsonl"))
    closed.chmod(0o755)
    assert (file.status, file.out) == (2, "")
    assert file.err == "quietburn: secret.jsonl: can't be read (permission denied). Name a readable file.\n"
    assert (folder.status, folder.out) == (2, "")
    assert folder.err == "quietburn: closed: can't be listed (permission denied). Name the files themselves.\n"
    assert (within.status, within.out) == (2, "")
    assert within.err == "quietburn: closed/night.jsonl: can't be opened (permission denied). Name a readable file.\n"


def test_one_bad_file_among_good_ones_refuses_the_call(tmp_path: Path) -> None:
    write(tmp_path / "good.jsonl", [call(1)])
    (tmp_path / "empty.jsonl").touch()
    done = run(tmp_path, "analyze", "good.jsonl", "empty.jsonl")
    assert (done.status, done.out) == (2, "")
    assert done.err == "quietburn: empty.jsonl: is empty. There is nothing to analyze.\n"


def test_an_empty_or_closed_standard_input_is_one_line(tmp_path: Path) -> None:
    import subprocess

    from tests.cli.program import QUIETBURN, environment

    empty = run(tmp_path, "analyze", "-", stdin=b"")
    assert (empty.status, empty.out) == (2, "")
    assert empty.err == "quietburn: -: is empty. There is nothing to analyze.\n"
    for arguments, said in (
        (["analyze", "-"], "-: standard input is closed. Pipe a ledger in, or name a file."),
        (["fingerprint"], 'standard input: is closed; write {"prefix": "..."} to it.'),
    ):
        closed = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *QUIETBURN, *arguments], cwd=tmp_path, capture_output=True, text=True,
            env=environment(), check=False, preexec_fn=interruptible,
        )
        assert (closed.returncode, closed.stdout, closed.stderr) == (2, "", f"quietburn: {said}\n")


def test_compressed_files_of_several_members_are_read_to_their_end(tmp_path: Path) -> None:
    (tmp_path / "two.jsonl.gz").write_bytes(gzip.compress(jsonl([call(1)])) + gzip.compress(jsonl([call(2)])))
    (tmp_path / "two.jsonl.zst").write_bytes(_zstd(jsonl([call(1)])) + _zstd(jsonl([call(2)])))
    done = run_all(tmp_path, [["analyze", name, "--format", "json"] for name in ("two.jsonl.gz", "two.jsonl.zst")])
    assert [d.report["ledger"]["events"] for d in done] == [2, 2]


def test_a_name_that_is_not_utf8_is_shown_as_its_escape(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/folder")  # noqa: PTH102 - bytes
    name = os.fsdecode(b"night-\xff.jsonl")
    write(tmp_path / "folder" / name, [call(1)])
    text, as_json = run_all(tmp_path, [["analyze", f"folder/{name}"], ["analyze", "folder", "--format", "json", "--verbose"]])
    assert (text.status, text.err) == (0, "")
    assert text.out.startswith("quietburn  folder/night-\\xff.jsonl (gateway)\n")
    assert as_json.report["ledger"]["files"][0]["path"] == "folder/night-\\xff.jsonl"
    assert as_json.err.startswith("quietburn: folder/night-\\xff.jsonl: dialect gateway; ")


@pytest.mark.parametrize("address", ["s3://bucket/night.jsonl", "https://logs.example/night.jsonl?signature=canary-77", "GS://b/n.jsonl"])
def test_a_ledger_behind_an_address_is_refused_in_one_line_without_its_query(address: str, tmp_path: Path) -> None:
    done = run(tmp_path, "analyze", address, env=environment(HOME=str(tmp_path)))

    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert f"{address.partition('?')[0]}: needs DuckDB's httpfs, which is not installed. Download the ledger" in done.err
    assert "canary" not in done.err

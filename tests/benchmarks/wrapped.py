"""Time reading wrapped ledgers beside the plain one: `python -m tests.benchmarks.wrapped [LINES]`.

Each is read as a whole three times, in turn; the ratios are of the least wall and CPU seconds.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from quietburn.dialects.mapping import shipped_mappings
from quietburn.engine.duckdb_engine import DuckEngine
from quietburn.records.inputs import LedgerFile
from tests.benchmarks.ledger import make_ledger
from tests.wrapping import WRAPS, cri, docker, wrapped

_PART = 200  # bytes: each line in two parts, the hardest case


def _seconds(path: Path) -> tuple[float, float]:
    begun, worked = time.perf_counter(), time.process_time()
    with DuckEngine(zone=None, known=shipped_mappings(), threads=2) as engine:
        engine.load([LedgerFile(path.name, path)])
        assert engine.files[0].quarantined == 0
    return time.perf_counter() - begun, time.process_time() - worked


def _in_parts(line: bytes) -> bytes:
    pieces = [line[start : start + _PART] for start in range(0, len(line), _PART)]
    return b"\n".join([*(docker(piece, end="") for piece in pieces[:-1]), docker(pieces[-1])])


def main(lines: int) -> None:
    """Write the ledgers, time them, print the ratios."""
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.jsonl"
        make_ledger(lines, plain)
        records = plain.read_bytes().splitlines()
        files = {"plain": plain}
        texts = {name: wrapped(records, wrap) for name, wrap in WRAPS.items()}
        texts["cri, one in ten a text"] = b"".join(
            cri(record) + b"\n" + (cri(b"INFO answered") + b"\n" if number % 10 == 0 else b"")
            for number, record in enumerate(records)
        )
        texts["docker, one in 1,000 in parts"] = b"".join(
            (_in_parts(record) if number % 1000 == 0 else docker(record)) + b"\n" for number, record in enumerate(records)
        )
        texts["docker, every line in parts"] = wrapped(records, _in_parts)
        for name, text in texts.items():
            files[name] = Path(folder) / f"{name}.log"
            files[name].write_bytes(text)
        wall, cpu = dict.fromkeys(files, float("inf")), dict.fromkeys(files, float("inf"))
        for _ in range(3):
            for name, path in files.items():
                took, worked = _seconds(path)
                wall[name], cpu[name] = min(wall[name], took), min(cpu[name], worked)
        for name, path in files.items():
            ratios = f"{wall[name] / wall['plain']:5.2f} x wall, {cpu[name] / cpu['plain']:5.2f} x CPU of the plain one"
            print(f"{name:30} {path.stat().st_size / 1e6:7.1f} MB {wall[name]:6.2f} s  {ratios}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)

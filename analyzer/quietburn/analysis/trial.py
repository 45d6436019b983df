"""Try a proposed mapping on the lines that it came from, and drop what gives no sensible value."""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from quietburn.analysis.run import Request, analyzing
from quietburn.dialects.mapping import Mapping
from quietburn.dialects.names import Unit
from quietburn.errors import InputError
from quietburn.records.reasons import FieldFault
from quietburn.report.model import Number


@dataclass(frozen=True)
class Trial:
    """What a mapping gives on sampled lines; `units` are those that the lines tell, by column and key."""

    lines: int
    attempts: int = 0
    successes: int = 0
    success_rate: float | None = None
    tokens: Number | None = None
    first: str | None = None
    last: str | None = None
    ends_before_start: int = 0
    units: dict[tuple[str, str], Unit] = field(default_factory=dict)


def tried(mapping: Mapping, lines: Iterable[bytes]) -> Trial:
    """Read lines by a mapping, which must have another name than every shipped dialect."""
    lines = [line for line in lines if line.strip()]
    with tempfile.TemporaryDirectory(prefix="quietburn-") as folder:  # readable by its owner only
        path = Path(folder) / "sample.jsonl"
        path.write_bytes(b"".join(line.rstrip(b"\r\n") + b"\n" for line in lines))
        try:
            with analyzing([str(path)], Request(mapping=mapping, dialect=mapping.dialect.name, rules=())) as analysis:
                report, settled = analysis.report, analysis.engine.settled
        except InputError:  # none of the lines is one of its
            return Trial(len(lines))
    return Trial(
        report.ledger.lines, report.rates.attempts, report.rates.successes, report.rates.success_rate, report.rates.tokens.all,
        report.ledger.first_ts, report.ledger.last_ts,
        sum(invalid.reason == FieldFault.ENDS_BEFORE_START for invalid in report.invalid),
        {(one.column, one.key): one.unit for one in settled if one.unit is not None},
    )  # fmt: skip

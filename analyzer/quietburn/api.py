"""What `import quietburn` gives: a report, or an analysis whose events can be asked as frames."""

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack, cast

from quietburn.common.config import Config

if TYPE_CHECKING:
    import polars as pl

    from quietburn.analysis.run import Request
    from quietburn.report.model import Report

PathName = str | PathLike[str]


class Options(TypedDict, total=False):
    """Options of `analyze` and `open`; each means what the flag of `quietburn analyze` means.

    `config` is a configuration or its file; without it quietburn.toml is found as the command finds it,
    upward from the working directory. `settings` are `RULE.PARAMETER=NUMBER`; `only` and `skip` are rule ids.
    """

    config: Config | PathName
    since: str
    until: str
    tz: str
    dialect: str
    mapping: PathName
    settings: Iterable[str]
    only: Iterable[str]
    skip: Iterable[str]
    db: PathName
    cpu: PathName


class Analysis:
    """An analysis of ledgers whose events can still be asked; a context manager.

    `report` is the report. Frames are Polars data frames (`.to_arrow()` gives Arrow). A name that ends in
    `_us` holds UTC microseconds, in `_ms` milliseconds, in `_s` seconds; what is not known is null.
    """

    def __init__(self, ledgers: list[str], request: "Request") -> None:
        from quietburn.analysis.run import analyzing

        self._stack = ExitStack()
        self._analysis = self._stack.enter_context(analyzing(ledgers, request))
        self.report: Report = self._analysis.report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release memory and temporary files; the report and frames already taken stay valid."""
        self._stack.close()

    def events(self) -> "pl.DataFrame":
        """Return every event of the asked span: one row an event, with canonical and derived columns."""
        from quietburn.engine.frames import EVENTS

        return self.sql(EVENTS)

    def requests(self) -> "pl.DataFrame":
        """Return one row a request (what one caller wanted once), with its verdict, in order of start."""
        from quietburn.engine.frames import REQUESTS

        return self.sql(REQUESTS)

    def minutes(self) -> "pl.DataFrame":
        """Return one row for each minute, route, model and backend: attempts, outcomes, tokens and means, in order of time."""
        from quietburn.engine.frames import MINUTES

        return self.sql(MINUTES)

    def findings(self) -> "pl.DataFrame":
        """Return one row a finding, worst first: rule, severity, UTC times, subject, count and sentences."""
        import polars as pl

        times = pl.Datetime("us", "UTC")
        schema = pl.Schema({
            "rule": pl.String(), "severity": pl.String(), "title": pl.String(), "start": times, "end": times,
            "route": pl.String(), "model": pl.String(), "backend": pl.String(), "count": pl.Int64(),
            "inference": pl.String(), "action": pl.String(),
        })  # fmt: skip
        rows = [
            finding.model_dump(include={"rule", "severity", "title", "count", "inference", "action"})
            | {name: finding.subject.get(name) for name in ("route", "model", "backend")}
            | {"start": datetime.fromisoformat(finding.window.start), "end": datetime.fromisoformat(finding.window.end)}
            for finding in self.report.findings
        ]
        return pl.DataFrame(rows, schema=schema)

    def sql(self, query: str) -> "pl.DataFrame":
        """Return the rows of one SELECT over `events`, in DuckDB's SQL. Raises UsageError saying what is wrong with it."""
        import polars as pl

        from quietburn.engine.base import EngineError
        from quietburn.errors import UsageError

        try:
            return cast("pl.DataFrame", pl.from_arrow(self._analysis.engine.select(query)))
        except EngineError as problem:
            raise UsageError(f"sql: {problem}") from None


def analyze(ledgers: PathName | Iterable[PathName], **options: Unpack[Options]) -> "Report":
    """Read ledgers, classify, and return the report; `Options` says what can be asked.

    `ledgers` is one path or several: files, folders, patterns, `.gz` and `.zst`; none (an empty list) with
    `db` reads what the store holds. Raises QuietburnError for what can't be used: a ledger, the
    configuration, an option.
    """
    with open(ledgers, **options) as analysis:
        return analysis.report


def open(  # noqa: A001 - quietburn.open reads as gzip.open does
    ledgers: PathName | Iterable[PathName], **options: Unpack[Options]
) -> Analysis:
    """Read ledgers, classify, and return the analysis; use it in a `with`, or close it.

    Arguments and errors as those of `analyze`.
    """
    from quietburn.analysis.request import request_from

    config = options.get("config")
    request = request_from(
        config=config if isinstance(config, Config) else _path(config),
        since=options.get("since"), until=options.get("until"), tz=options.get("tz"), dialect=options.get("dialect"),
        map_file=_path(options.get("mapping")), settings=options.get("settings"), only=options.get("only"),
        skip=options.get("skip"), store=_path(options.get("db")), cpu=_path(options.get("cpu")),
    )  # fmt: skip
    return Analysis(_names(ledgers), request)


def _names(ledgers: PathName | Iterable[PathName]) -> list[str]:
    if isinstance(ledgers, str | PathLike):
        return [fspath(ledgers)]
    return [fspath(ledger) for ledger in ledgers]


def _path(name: PathName | None) -> Path | None:
    return None if name is None else Path(name)

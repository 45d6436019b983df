"""One finding as lines for a terminal."""

import textwrap
from collections.abc import Iterator

from rich.text import Text

from quietburn.report.model import FindingReport
from quietburn.report.printable import printable
from quietburn.report.words import number, observed, percent

_SHOWN_LINES = 8
SEVERITY_STYLE = {"page": "bold red", "ticket": "bold yellow", "info": "bold blue"}
Lines = Iterator[Text]


def plain(text: str, style: str = "") -> Text:
    """Return text in which nothing acts."""
    return Text(printable(text), style=style)


def finding_lines(finding: FindingReport, width: int) -> Lines:
    """Yield all that a finding says."""
    subject = ", ".join(f"{key} {value}" for key, value in finding.subject.items())
    doubt = "" if finding.confidence == "likely" else f" ({finding.confidence})"
    yield (
        Text(f"  {finding.severity.upper():<7}", style=SEVERITY_STYLE[finding.severity])
        + Text(finding.rule + doubt, style="bold")
        + plain(f"  {subject}  {finding.window.start} to {finding.window.end}")
    )
    yield from field_lines("", finding.title, width, "italic")
    yield from field_lines("observed", observed(finding), width)
    yield from field_lines("inference", finding.inference, width)
    yield from field_lines("action", finding.action, width)
    if finding.top:
        yield from field_lines("who", ", ".join(who(entry) for entry in finding.top), width)
    yield from field_lines("lines", _lines(finding), width, "dim")


def who(entry: dict[str, str | float | int | None]) -> str:
    """Return one of those behind a finding, with its share and tokens."""
    column = next(name for name in entry if name not in ("share", "tokens"))
    share, tokens = entry["share"], entry["tokens"]
    spent = f", {number(tokens)} tokens" if isinstance(tokens, int | float) else ""
    return f"{column} {entry[column]} ({percent(share if isinstance(share, float | int) else None)}{spent})"


def _lines(finding: FindingReport) -> str:
    parts: list[str] = []
    last = None
    for evidence in finding.evidence[:_SHOWN_LINES]:
        place = f"{evidence.line}" if evidence.item is None else f"{evidence.line}#{evidence.item}"
        parts.append(place if evidence.file == last else f"{evidence.file}:{place}")
        last = evidence.file
    more = f" ({finding.count:,} in all)" if finding.count > len(parts) else ""
    return ", ".join(parts) + more


def field_lines(label: str, value: str, width: int, style: str = "") -> Lines:
    """Yield a labelled value, wrapped to the width."""
    room = width - len(field_head(""))
    wrapped = textwrap.wrap(printable(value), room, break_long_words=False, break_on_hyphens=False) or [""]
    for index, line in enumerate(wrapped):
        yield field_head("" if index else label) + plain(line, style)


def field_head(label: str) -> Text:
    """Return what stands before a value, or before its further lines."""
    return Text(f"         {label:<12}", style="dim")

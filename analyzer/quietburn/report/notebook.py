"""The report as a notebook shows it: the text report in a block of HTML."""

import io

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from quietburn.report.model import Report
from quietburn.report.text import render_text

_BLOCK = '<pre style="line-height: 1.3; white-space: pre-wrap">{code}</pre>'


def as_html(report: Report) -> str:
    """Return the report as one `<pre>` block with inline styles; whatever stands in a ledger is escaped."""
    console = Console(file=io.StringIO(), width=100, record=True, force_terminal=True, legacy_windows=False)
    render_text(report, console)
    return console.export_html(theme=DEFAULT_TERMINAL_THEME, code_format=_BLOCK, inline_styles=True)

"""Options and output that `gate` and `compare` share: formats, the command to repeat, GitHub's step summary."""

import json
import os
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.cli.options import say

if TYPE_CHECKING:
    from quietburn.report.verdict import ComparisonReport, GateReport

_SUMMARY = "GITHUB_STEP_SUMMARY"
_OF_THE_VIEW = ("--format", "--output")  # they change the looks of a result, not the result


class VerdictFormat(StrEnum):
    """Formats of `gate` and `compare`."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"


Format = Annotated[VerdictFormat, typer.Option("--format", help="Format of the result.")]
Output = Annotated[Path | None, typer.Option(help="Write the result to this file instead of standard output.")]


def rendered(report: "GateReport | ComparisonReport", output_format: VerdictFormat) -> str:
    """Return a result in a format."""
    from quietburn.report import github, junit, markdown, verdict_text
    from quietburn.report.printable import inert_json
    from quietburn.report.verdict import GateReport

    if output_format is VerdictFormat.JSON:
        return inert_json(json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True, allow_nan=False)) + "\n"
    if isinstance(report, GateReport):
        return {
            VerdictFormat.TEXT: verdict_text.gate_text, VerdictFormat.MARKDOWN: markdown.gate_markdown,
            VerdictFormat.JUNIT: junit.gate_junit, VerdictFormat.GITHUB: github.gate_github,
        }[output_format](report)
    return {
        VerdictFormat.TEXT: verdict_text.compare_text, VerdictFormat.MARKDOWN: markdown.compare_markdown,
        VerdictFormat.JUNIT: junit.compare_junit, VerdictFormat.GITHUB: github.compare_github,
    }[output_format](report)


def deliver(report: "GateReport | ComparisonReport", output_format: VerdictFormat, output: Path | None) -> None:
    """Write a result where it was asked; in GitHub's format its Markdown joins the step's summary too."""
    from quietburn.cli.written import write_result

    write_result(rendered(report, output_format), output)
    summary = os.environ.get(_SUMMARY)
    if output_format is VerdictFormat.GITHUB and summary:
        try:
            with Path(summary).open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(rendered(report, VerdictFormat.MARKDOWN))
        except OSError:
            say(f"{_SUMMARY}: can't be written; there is no summary.")


def command_line(arguments: Sequence[str]) -> str:
    """Return the command that gives the same result in a terminal: as called, without format and output."""
    kept = []
    skip = False
    for argument in arguments:
        if skip or argument in _OF_THE_VIEW:
            skip = not skip
        elif not argument.startswith(tuple(f"{flag}=" for flag in _OF_THE_VIEW)):
            kept.append(argument)
    return shlex.join(["quietburn", *kept])

"""Refused lines as JSON lines: where each stands and why; its text only on request."""

import json
from collections.abc import Mapping

from quietburn.report.model import Report
from quietburn.report.printable import inert_json


def quarantine_lines(report: Report, texts: Mapping[tuple[str, int], str] | None = None) -> str:
    """Return one JSON object a refused line; with `texts` (by file and offset) its text too."""
    rows = []
    for line in report.quarantine:
        row: dict[str, object] = line.model_dump(mode="json")
        if texts is not None:
            row["text"] = texts.get((line.file, line.offset))
        rows.append(inert_json(json.dumps(row, ensure_ascii=True)))
    return "".join(row + "\n" for row in rows)

"""quietburn reads an LLM gateway ledger offline and finds where healthy signals contradict what callers got.

import quietburn

report = quietburn.analyze("night.jsonl")
print(report.rates.success_rate, report.rates.usable_rate)

with quietburn.open("night.jsonl") as night:
late = night.sql("SELECT client, count(*) AS n FROM events WHERE verdict = 'late' GROUP BY client")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quietburn.api import Analysis, analyze, open  # noqa: A004 - quietburn.open reads as gzip.open does
    from quietburn.errors import QuietburnError
    from quietburn.report.model import Report

__all__ = ["Analysis", "QuietburnError", "Report", "__version__", "analyze", "open"]

_HOMES = {
    "Analysis": "quietburn.api", "analyze": "quietburn.api", "open": "quietburn.api", "QuietburnError": "quietburn.errors",
    "Report": "quietburn.report.model",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name on its first use: `import quietburn` alone loads nothing of ours."""
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("quietburn")
    if name not in _HOMES:
        raise AttributeError(f"module 'quietburn' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

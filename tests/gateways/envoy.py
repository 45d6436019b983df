"""A JSON access log as Envoy writes it: a format of keys and command operators, filled in for each call.

Only single operators are known, as in the recommended format. As in Envoy's `json_format`, an operator
alone gives its value's own type, and what is not there is null.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

START = datetime(2026, 9, 8, 2, 14, tzinfo=UTC)


@dataclass(frozen=True)
class Call:
    """One call: when it began in seconds after START, how long it took, what was answered, by whom, and the headers."""

    second: float
    duration_ms: int
    status: int
    flags: str = "-"
    hosts: tuple[str, ...] = ("10.1.2.3:8000",)
    asked: Mapping[str, str] = field(default_factory=dict)
    answered: Mapping[str, str] = field(default_factory=dict)
    path: str = "/v1/chat/completions"

    def operator(self, text: str) -> Any:
        """Return what an operator gives. Raises KeyError for one that is not known here."""
        name, _, argument = text.strip("%").rstrip(")").partition("(")
        if name in ("REQ", "RESP"):
            headers = dict(self.asked) | {":PATH": self.path} if name == "REQ" else dict(self.answered)
            first, _, second = argument.partition("?")  # the second stands in where the first is missing
            return headers.get(first, headers.get(second))
        start = START + timedelta(seconds=self.second)
        return {
            "START_TIME": start.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "RESPONSE_CODE": self.status, "RESPONSE_FLAGS": self.flags, "DURATION": self.duration_ms,
            "RESPONSE_DURATION": self.duration_ms - 1 if self.status else None,
            "UPSTREAM_HOST": self.hosts[-1] if self.hosts else None,
            "UPSTREAM_HOSTS_ATTEMPTED": ",".join(self.hosts) or None,
            "UPSTREAM_REQUEST_ATTEMPT_COUNT": len(self.hosts),
        }[name]


def format_of(text: str) -> dict[str, str]:
    """Return the keys and operators of a format's YAML."""
    keys = yaml.safe_load(text) or {}
    return {str(key): str(operator) for key, operator in keys.items()}


def logged(calls: Iterable[Call], keys: Mapping[str, str]) -> str:
    """Return the log of calls in a format."""
    lines = [{key: call.operator(operator) for key, operator in keys.items()} for call in calls]
    return "".join(json.dumps(line) + "\n" for line in lines)

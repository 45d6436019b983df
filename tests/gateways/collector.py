"""What the OpenTelemetry collector's transform processor does with a span, as far as the suggested statements go.

They set an attribute, from the resource or made a number of it, where each of some simple conditions holds.
Anything else is refused, so that a statement that is not understood here can't pass for one that works.
"""

import re
from typing import Any

import yaml

_STATEMENT = re.compile(r'set\(attributes\["(?P<target>[^"]+)"\], (?P<value>.+)\) where (?P<conditions>.+)')
_FROM_RESOURCE = re.compile(r'(?P<number>Int\()?resource\.attributes\["(?P<name>[^"]+)"\]\)?')
_CONDITION = re.compile(
    r'(?P<place>resource\.)?attributes\["(?P<name>[^"]+)"\] (?P<how>[!=]=) nil|kind == SPAN_KIND_(?P<kind>SERVER|CLIENT)'
)
_KINDS = {"SERVER": 2, "CLIENT": 3}
Attributes = dict[str, Any]


def statements_of(text: str) -> list[str]:
    """Return the statements of a collector's configuration, which has one pipeline through them into a file."""
    config = yaml.safe_load(text)
    (pipeline,) = config["service"]["pipelines"].values()
    (exporter,), (processor,) = pipeline["exporters"], pipeline["processors"]
    assert exporter.startswith("file/")
    assert config["exporters"][exporter]["path"]
    (group,) = config["processors"][processor]["trace_statements"]
    assert group["context"] == "span"
    return list(group["statements"])


def target_of(statement: str) -> str:
    """Return the attribute that a statement sets."""
    return _matched(_STATEMENT, statement)["target"]


def transformed(span: Attributes, kind: int, resource: Attributes, statements: list[str]) -> Attributes:
    """Return a span's attributes after the statements."""
    found = dict(span)
    for statement in statements:
        parts = _matched(_STATEMENT, statement)
        if all(_holds(condition, found, kind, resource) for condition in parts["conditions"].split(" and ")):
            source = _matched(_FROM_RESOURCE, parts["value"])
            value = resource[source["name"]]
            found[parts["target"]] = int(value) if source["number"] else value
    return found


def _holds(condition: str, span: Attributes, kind: int, resource: Attributes) -> bool:
    parts = _matched(_CONDITION, condition)
    if parts["kind"]:
        return kind == _KINDS[parts["kind"]]
    there = parts["name"] in (resource if parts["place"] else span)
    return there if parts["how"] == "!=" else not there


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    assert found, f"not understood here: {text}"
    return found


def as_otlp(attributes: Attributes) -> list[dict[str, Any]]:
    """Return attributes as OTLP-JSON writes them: integers as strings."""
    return [{"key": key, "value": _any_value(value)} for key, value in attributes.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}

"""Whether a line is of a dialect is decided alike where a file is sampled and where it is read, whatever the line holds."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.program import run
from tests.ledgers import T0, read, reading_way

from quietburn.dialects.mapping import Mapping
from quietburn.errors import InputError

ABSENT = object()
PLACEHOLDERS = ("", "-", "null", "NULL", "none", "None")
TEXTS = ("true", "false", "True", "1", "1.0", "-0", "0", "a", "-", "null", "[]", "{}", "1e2")


def mapping_of(recognise: dict[str, Any]) -> Mapping:
    columns = {"ts": {"from": "t"}, "request_id": {"from": "id"}, "prefix_text": {"from": "system"}}
    return Mapping.model_validate({"dialect": {"name": "mine"}, "recognise": recognise, "columns": columns})


def line(number: int, key: str, value: object) -> dict[str, Any]:
    members: dict[str, Any] = {"t": T0 + number, "id": f"r{number}"}
    if value is ABSENT:
        return members
    if key.startswith("/"):
        outer, inner = key[1:].split("/")
        return members | {outer: {inner: value}}
    return members | {key: value}


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "ledger.jsonl"
    path.write_text("".join(json.dumps(members) + "\n" for members in lines), encoding="utf-8")
    return path


def is_sampled(folder: Path, mapping: Mapping, members: dict[str, Any]) -> bool:
    """Whether a file of this line alone is said to be of the dialect."""
    try:
        read(written(folder, [members]), known=(mapping,))
    except InputError as refused:
        assert "no known dialect fits" in str(refused)
        return False
    return True


def is_read(folder: Path, mapping: Mapping, members: dict[str, Any], sure: dict[str, Any], way: str) -> bool:
    """Whether the line becomes an event in a file that is sure to be of the dialect."""
    with reading_way(way):
        return 2 in read(written(folder, [sure, members]), known=(mapping,)).events


def text_of(value: object) -> str | None:
    """Return the text of a value as the documentation of `recognise.values` has it."""
    if isinstance(value, str):
        return None if value in PLACEHOLDERS else value
    if isinstance(value, bool | int | float):
        return "0" if json.dumps(value) == "-0" else json.dumps(value)
    return None


values = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, -0.0, 1e300]) | st.sampled_from(TEXTS)
    | st.sampled_from([ABSENT, [], {}, [1], {"a": 1}, 10**30])
)  # fmt: skip


@pytest.mark.parametrize("way", ["as it comes", "by the exact parser"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["all", "any", "none", "values", "not_values"]), key=st.sampled_from(["k", "/a/k", "system"]),
    wanted=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3, unique=True), value=values,
)  # fmt: skip
def test_sampling_and_reading_agree_on_any_value(
    way: str, kind: str, key: str, wanted: list[str], value: object, tmp_path: Path
) -> None:
    named = {"values": {key: wanted}, "not_values": {key: wanted}}
    mapping = mapping_of({kind: named.get(kind, [key]), "all": ["t", *([key] if kind == "all" else [])]})
    present = value is not ABSENT and value is not None
    expected = {
        "all": present, "any": present, "none": not present,
        "values": text_of(value) in wanted, "not_values": text_of(value) not in wanted,
    }[kind]  # fmt: skip
    sure = {"all": "x", "any": "x", "none": ABSENT, "values": wanted[0], "not_values": "another"}[kind]
    assert is_sampled(tmp_path, mapping, line(1, key, value)) == expected
    if kind != "values" or text_of(sure) is not None:
        assert is_read(tmp_path, mapping, line(2, key, value), line(1, key, sure), way) == expected


MAPPING = """
[dialect]
name = "mine"
[recognise]
all = ["t"]
{recognise}
[columns]
ts = {{ from = "t" }}
request_id = {{ from = "id" }}
prefix_text = {{ from = "system" }}
"""


@pytest.mark.parametrize(
    ("recognise", "key", "used", "other"),
    [
        ('values = { llm = ["true"] }', "llm", True, False),
        ('not_values = { llm = ["false"] }', "llm", True, False),
        ('values = { "/meta/llm" = ["true"] }', "/meta/llm", True, False),
        ('values = { version = ["2"] }', "version", 2, 3),
        ('all = ["t", "system"]', "system", "Be short.", None),
    ],
    ids=["a flag", "not a flag", "a nested flag", "a number", "a private text"],
)
def test_a_mapping_recognises_lines_by_a_value(
    recognise: str, key: str, used: object, other: object, tmp_path: Path
) -> None:
    mapping = MAPPING.format(recognise=recognise)
    if recognise.startswith("all"):
        mapping = mapping.replace('all = ["t"]\n', "")
    (tmp_path / "mine.toml").write_text(mapping, encoding="utf-8")
    written(tmp_path, [line(1, key, used), line(2, key, used), line(3, key, other)])
    done = run(tmp_path, "analyze", "ledger.jsonl", "--map", "mine.toml", "--format", "json")
    ledger = done.report["ledger"]
    assert (ledger["files"][0]["dialect"], ledger["used"], ledger["not_a_request"]) == ("mine", 2, 1)

"""Constants of a mapping file must fit the columns that they fill: else exit 2, one line with the file and the key."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.program import T0, run
from tests.ledgers import jsonl

from quietburn.common.columns import COLUMNS, Kind
from quietburn.dialects.mapping import load_mapping, shipped_mappings
from quietburn.errors import ConfigError

MAPPING = """
[dialect]
name = "mine"
[recognise]
all = ["t"]
[columns]
ts = {{ from = "t" }}
request_id = {{ from = "id" }}
latency_ms = {{ from = "lat" }}
{columns}
[assumed]
{assumed}
"""
HUGE = "9" * 400

WRONG = [
    # the line of the mapping file, the key that the message names
    ('status = { from = "st", null = "abc" }', "columns.status.null"),
    ('status = { from = "st", null = -5 }', "columns.status.null"),
    ("status = { value = true }", "columns.status.value"),
    ("status = { value = 200.5 }", "columns.status.value"),
    ("status = { value = nan }", "columns.status.value"),
    ('status = { from = "st", translate = { ok = 200, bad = "broken" } }', "columns.status.translate.bad"),
    ("deadline_ms = { value = 0 }", "columns.deadline_ms.value"),
    ("deadline_ms = { value = -5 }", "columns.deadline_ms.value"),
    ("deadline_ms = { value = inf }", "columns.deadline_ms.value"),
    ("deadline_ms = { value = 1e308 }", "columns.deadline_ms.value"),
    (f"deadline_ms = {{ value = {HUGE} }}", "columns.deadline_ms.value"),
    (f"deadline_ms = {{ value = 0x{'f' * 9000} }}", "columns.deadline_ms.value"),
    ("prompt_tokens = { value = 1e308 }", "columns.prompt_tokens.value"),
    ("cpu_pct = { value = 100.5 }", "columns.cpu_pct.value"),
    ("deadline_slack_ms = { value = -inf }", "columns.deadline_slack_ms.value"),
    ("stream = { value = 1 }", "columns.stream.value"),
    ('stream = { from = "s", translate = { yes = "true" } }', "columns.stream.translate.yes"),
    ("model = { value = 7 }", "columns.model.value"),
    ('started_at = { from = "b", translate = { x = 1788833640 } }', "columns.started_at.translate.x"),
    ('prefix_text = { from = "p", null = 5 }', "columns.prefix_text.null"),
]
WRONG_ASSUMED = ["-5", "0", "nan", "inf", "1e308", '"8000"', "true", HUGE]


def written(folder: Path, columns: str = "", assumed: str = "") -> Path:
    path = folder / "mine.toml"
    path.write_text(MAPPING.format(columns=columns, assumed=assumed), encoding="utf-8")
    return path


def assert_refused(folder: Path, key: str) -> None:
    (folder / "ledger.jsonl").write_bytes(jsonl([{"t": T0, "id": "r1", "lat": 5, "st": 200}]))
    done = run(folder, "analyze", "ledger.jsonl", "--map", "mine.toml")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"quietburn: mapping mine.toml: {key}: ")
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 300


@pytest.mark.parametrize(("columns", "key"), WRONG, ids=[key + f"-{place}" for place, (_, key) in enumerate(WRONG)])
def test_a_constant_that_does_not_fit_its_column_is_one_line(columns: str, key: str, tmp_path: Path) -> None:
    written(tmp_path, columns)
    assert_refused(tmp_path, key)


@pytest.mark.parametrize("value", WRONG_ASSUMED, ids=range(len(WRONG_ASSUMED)))
def test_an_assumed_value_that_does_not_fit_is_one_line(value: str, tmp_path: Path) -> None:
    written(tmp_path, assumed=f"deadline_ms = {value}")
    assert_refused(tmp_path, "assumed.deadline_ms")


def test_every_constant_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "status = { value = -1 }\nstream = { value = 2 }")
    with pytest.raises(ConfigError, match=r"columns\.status\.value: -1 .*columns\.stream\.value: 2 "):
        load_mapping(path)


def test_of_many_constants_that_do_not_fit_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    words = ", ".join(f"w{number} = -1" for number in range(25))
    with pytest.raises(ConfigError, match=r"w0: -1 .*and 15 more$") as refused:
        load_mapping(written(tmp_path, f'status = {{ from = "st", translate = {{ {words} }} }}'))
    assert str(refused.value).count("is not valid for column") == 10


def test_constants_that_fit_are_taken(tmp_path: Path) -> None:
    columns = 'status = { from = "st", null = 0, translate = { ok = 200 } }\nstream = { value = false }\nmodel = { value = "m" }'
    mapping = load_mapping(written(tmp_path, columns, "deadline_ms = 8000"))
    assert mapping.assumed == {"deadline_ms": 8000.0}


def test_the_shipped_dialects_hold_only_constants_that_fit() -> None:
    assert len(shipped_mappings()) > 10  # each was checked when it was read


NO_NUMBERS = (Kind.TEXT, Kind.TIME, Kind.FLAG)
NUMERIC = [column.name for column in COLUMNS if column.given and column.kind not in NO_NUMBERS and column.name != "latency_ms"]


@settings(max_examples=40)
@given(st.sampled_from(NUMERIC), st.floats() | st.integers() | st.booleans())
def test_a_number_that_is_taken_is_finite_and_of_its_kind(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: float
) -> None:
    told = repr(value).lower()
    folder = tmp_path_factory.mktemp("mapping")
    try:
        load_mapping(written(folder, f"{name} = {{ value = {told} }}"))
    except ConfigError as refused:
        assert f"columns.{name}.value" in str(refused)
        return
    assert not isinstance(value, bool)
    assert abs(value) <= 2.0**53
    assert value >= 0 or name == "deadline_slack_ms"

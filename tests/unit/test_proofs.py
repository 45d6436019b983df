"""What is called clean is clean: each proof on both sides, and times to the microsecond by every way."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ledgers import T0, jsonl, read

from quietburn.ledger.proofs import (
    AddsUp,
    NoPlaceholder,
    NotGreater,
    OneIsWhole,
    Proof,
    Scaled,
    TimesInOrder,
    TimesWithin,
    Within,
    microseconds,
)
from quietburn.ledger.rawcolumns import RAW_TYPES, RawKind

_KINDS = {"n": RawKind.NUMBER, "s": RawKind.STRING, "d": RawKind.DECIMAL}


def table(**columns: list[object]) -> pa.Table:
    """Return a raw table; `n_a` is the raw column of numbers of key `a`."""
    named = {}
    for name, values in columns.items():
        kind = _KINDS[name[0]]
        told = [Decimal(str(v)) if kind is RawKind.DECIMAL and v is not None else v for v in values]
        named[f"{kind}:{name[2:]}"] = pa.array(told, RAW_TYPES[kind])
    return pa.table(named)


COUNT = Within(Scaled("a"), 0, 100, integral=True)
NAN, INF = float("nan"), float("inf")
CASES: list[tuple[str, Proof, pa.Table, bool]] = [
    ("numbers within, ends included", COUNT, table(n_a=[0.0, 100.0, None]), True),
    ("no number at all", COUNT, table(n_a=[None, None]), True),
    ("one below", COUNT, table(n_a=[0.0, -1.0]), False),
    ("one above", COUNT, table(n_a=[0.0, 101.0]), False),
    ("one that is not integral", COUNT, table(n_a=[1.0, 1.5]), False),
    ("NaN", COUNT, table(n_a=[1.0, NAN]), False),
    ("infinity", Within(Scaled("a"), 0, INF), table(n_a=[1.0, NAN]), False),
    ("NaN beside a missing one", COUNT, table(n_a=[None, NAN]), False),
    ("a limit counts in the canonical unit", Within(Scaled("a", 1000.0), 0, 5000), table(n_a=[5.0]), True),
    ("a limit counts in the canonical unit, over", Within(Scaled("a", 1000.0), 0, 5000), table(n_a=[5.001]), False),
    ("the lower end where it is excluded", Within(Scaled("a"), 0, 9, above=True), table(n_a=[0.0, 1.0]), False),
    ("over the lower end", Within(Scaled("a"), 0, 9, above=True), table(n_a=[0.1]), True),
    ("times within", TimesWithin("t", 10, 20), table(d_t=[10, "20.000000000", None]), True),
    ("a time after", TimesWithin("t", 10, 20), table(d_t=["20.000000001"]), False),
    ("a time before", TimesWithin("t", 10, 20), table(d_t=["9.999999999"]), False),
    ("no time", TimesWithin("t", 10, 20), table(d_t=[None]), True),
    ("one whole key of two", OneIsWhole(("n:a", "s:b")), table(n_a=[1.0, None], s_b=["x", "y"]), True),
    ("two keys that make each other whole are not one", OneIsWhole(("n:a", "s:b")), table(n_a=[1.0, None], s_b=[None, "y"]),
     False),
    ("an empty text is no value", OneIsWhole(("s:b",)), table(s_b=["x", ""]), False),
    ("no key", OneIsWhole(()), table(n_a=[1.0]), False),
    ("short texts", NoPlaceholder("b"), table(s_b=["ok", None]), True),
    ("long texts", NoPlaceholder("b"), table(s_b=["nothing"]), True),
    ("a dash", NoPlaceholder("b"), table(s_b=["user", "-"]), False),
    ("an empty text", NoPlaceholder("b"), table(s_b=["user", ""]), False),
    ("no text", NoPlaceholder("b"), table(s_b=[None]), True),
    ("a part equal to its whole", NotGreater(Scaled("a"), Scaled("b")), table(n_a=[5.0, None, 7.0], n_b=[5.0, 1.0, None]), True),
    ("a part over its whole", NotGreater(Scaled("a"), Scaled("b")), table(n_a=[5.0], n_b=[4.0]), False),
    ("ends in order", TimesInOrder("a", "b"), table(d_a=[1, None, 3], d_b=[1, 0, None]), True),
    ("an end before its start", TimesInOrder("a", "b"), table(d_a=[2], d_b=["1.999999999"]), False),
    ("a sum", AddsUp(Scaled("a"), Scaled("b"), Scaled("c")), table(n_a=[3.0, 9.0], n_b=[1.0, None], n_c=[2.0, 2.0]), True),
    ("a sum that is off", AddsUp(Scaled("a"), Scaled("b"), Scaled("c")), table(n_a=[4.0], n_b=[1.0], n_c=[2.0]), False),
]  # fmt: skip


@pytest.mark.parametrize(("proof", "raw", "holds"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_proof_holds_only_where_nothing_can_be_refused(proof: Proof, raw: pa.Table, holds: bool) -> None:  # noqa: FBT001
    assert proof.holds(raw) is holds


@pytest.mark.parametrize(
    ("fraction", "us"),
    [("0000004", 0), ("0000005", 1), ("0000015", 2), ("1234565", 123_457), ("123456499", 123_456), ("9999995", 1_000_000)],
)
def test_times_are_rounded_half_up_to_the_microsecond_by_every_way(fraction: str, us: int, tmp_path: Path) -> None:
    wanted = T0 * 1_000_000 + us
    line = b'{"ts": %d.%s, "status": 200}' % (T0, fraction.encode())
    made = microseconds(pa.chunked_array([pa.array([None, Decimal(f"{T0}.{fraction}")], RAW_TYPES[RawKind.DECIMAL])]))
    assert made.to_pylist() == [None, wanted]
    # Alone it is proven clean; beside a line whose status is a text it is checked; with spaces before it is read carefully.
    ledgers = {
        "proven": [line], "checked": [line, b'{"ts": %d, "status": "x"}' % T0], "careful": [b"  " + line],
        "in milliseconds": [b'{"ts": %d%s, "status": 200}' % (T0, f"{fraction[:3]}.{fraction[3:]}".encode())],
    }
    for name, lines in ledgers.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        assert read(path).events[1]["ts_us"] == wanted, name


def test_one_line_in_doubt_costs_the_others_nothing(tmp_path: Path) -> None:
    events = [{"ts": T0 + number, "route": "complete", "status": 200, "traffic": "user"} for number in range(50)]
    doubtful = [*events[:20], events[20] | {"status": 200.5}, events[21] | {"traffic": "-"}, *events[22:]]
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(jsonl(doubtful))
    reading = read(path)
    assert reading.invalid == [(21, "status", "not_integral")]
    assert "status" not in reading.events[21]
    assert "traffic" not in reading.events[22]
    assert sum(event.get("status") == 200 and event.get("traffic") == "user" for event in reading.events.values()) == 48

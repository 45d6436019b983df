"""What a flag asks of a subject at least: nobody's windows are worked out in vain, and nobody's are left out wrongly."""

from pathlib import Path

import pytest
from tests.ledgers import T0, report_of
from tests.rules.helpers import RULE_IDS, defaults, rule

from quietburn.analysis.run import Request
from quietburn.engine.floors import floors
from quietburn.ruleset.files import bind

LATE = rule("late-but-200")  # columns late and two_xx, windows of five minutes and an hour


@pytest.mark.parametrize(("flag", "asked"), [
    ("late_5m >= 3", {"late": 3.0}),
    ("late_5m > CAST(2.0 AS DOUBLE)", {"late": 2.0}),
    ("late_5m >= 3 AND late_1h >= 5 AND late_5m >= 0.5 * two_xx_5m", {"late": 5.0}),
    ("late_5m >= 3 AND (two_xx_5m >= 9 OR late_1h >= 7)", {"late": 3.0}),
    ("late_5m >= 3 AND two_xx_5m <= 8", {"late": 3.0}),
    # No condition of these must hold by itself.
    ("late_5m >= 3 OR two_xx_5m >= 9", {}),
    ("CASE WHEN TRUE THEN late_5m >= 3 AND two_xx_5m >= 9 ELSE late_5m >= 4 AND two_xx_5m >= 2 END", {}),
    ("NOT late_5m >= 3", {}),
    ("(late_5m >= 3 AND two_xx_5m >= 9)", {}),
    ("3 <= late_5m", {}),
    ("late_5m + two_xx_5m >= 9", {}),
    ("late_5m >= -1", {}),
])  # fmt: skip
def test_a_floor_is_what_must_hold_by_itself(flag: str, asked: dict[str, float]) -> None:
    assert floors(flag, LATE) == asked


def test_most_shipped_rules_name_a_floor_in_every_grade() -> None:
    without = [
        rule_id for rule_id in RULE_IDS
        if not all(floors(bind(grade.flag, defaults(rule(rule_id))), rule(rule_id)) for grade in rule(rule_id).grades)
    ]
    assert len(without) <= len(RULE_IDS) // 10, without


@pytest.mark.parametrize("late", [4, 5])
def test_a_subject_that_just_reaches_its_floor_is_flagged_among_many_that_do_not(late: int, tmp_path: Path) -> None:
    def too_late(second: float, route: str) -> dict[str, object]:
        return {"ts": T0 + second, "route": route, "status": 200, "latency_ms": 3000, "deadline_ms": 1000, "answer_chars": 9}

    others = [too_late(n % 240 + n / 1000, f"r{n % 300}") for n in range(900)]  # three late answers each
    bad = [too_late(60 + n, "bad") for n in range(late)]
    report = report_of(tmp_path, [*others, *bad], request=Request(only=("late-but-200",), settings=("late-but-200.min_late=5",)))
    paged = [finding.subject["route"] for finding in report.findings if finding.severity == "page"]
    assert paged == (["bad"] if late == 5 else [])

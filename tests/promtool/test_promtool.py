"""What promtool says is read whole: a difference that isn't seen would be a proof that isn't one."""

import pytest

from quietburn.alerts.promtool import run_tests
from quietburn.alerts.templates import rendered

DAY = 24 * 60
RULES = 'groups:\n  - name: g\n    rules:\n      - record: level:metric:up\n        expr: vector(1)\n'


@pytest.mark.usefixtures("real_promtool")
@pytest.mark.parametrize("minutes", [(59,), (DAY - 1,), (DAY + 379,), (7 * DAY,), (8 * DAY + 61,), (3, DAY + 379)])
def test_a_difference_is_read_with_its_minute_however_late_it_is(minutes: tuple[int, ...]) -> None:
    checks = [{"expr": "vector(1)", "minute": minute, "labels": []} for minute in minutes]
    test = {"name": "t", "interval": "15s", "series": [], "checks": checks}
    files = {"rules.yaml": RULES, "test.yaml": rendered("alerts_test.yaml.j2", header=[], rule_file="rules.yaml", tests=[test])}

    assert [difference.minute for difference in run_tests(files, "test.yaml")] == list(minutes)

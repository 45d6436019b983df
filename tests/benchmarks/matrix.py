"""Rules x planted faults: `python -m tests.benchmarks.matrix [FAULT ...]`.

A row for each fault that is planted into the healthy day, a column for each rule, the worst
severity in each cell: P a page, T a ticket, i an info, a dot nothing.
"""

import sys
import tempfile
from pathlib import Path

from fixtures.days.faults import FAULTS

from quietburn.ruleset.files import shipped_rules
from quietburn.ruleset.severity import Severity
from tests.days.planted import planted_day

_MARKS = {Severity.PAGE: "P", Severity.TICKET: "T", Severity.INFO: "i"}


def main(faults: list[str]) -> None:
    """Plant one fault after the other and print what each rule makes of it."""
    rules = sorted(rule.id for rule in shipped_rules())
    for number, rule_id in enumerate(rules, 1):
        print(f"{number:>2} {rule_id}")
    print(f"\n{'planted':<25}" + " ".join(f"{number:>2}" for number in range(1, len(rules) + 1)))
    with tempfile.TemporaryDirectory(prefix="quietburn-matrix-") as folder:
        for fault in ("", *(faults or sorted(FAULTS))):
            worst = planted_day(fault or None, Path(folder)).worst()
            marks = (_MARKS[worst[rule_id]] if rule_id in worst else "." for rule_id in rules)
            print(f"{fault or 'nothing':<25}" + " ".join(f"{mark:>2}" for mark in marks), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

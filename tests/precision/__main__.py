"""Analyze the simulator's nights and write how precise the rules are: `python -m tests.precision SIMULATOR --out FILE`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.precision.matching import case
from tests.precision.nights import Simulator
from tests.precision.page import page
from tests.precision.running import kept_outcomes, outcomes


def main() -> None:
    """Run what is asked and write the page."""
    asked = _arguments()
    simulator = Simulator(asked.simulator)
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    variants = asked.variants.split(",") if asked.variants else None
    nights = [*simulator.faults(asked.fault_seed), *simulator.healthy(seeds, variants)]
    asked.work.mkdir(parents=True, exist_ok=True)
    cases = []
    found = kept_outcomes(nights, asked.work) if asked.kept else outcomes(asked.simulator, nights, asked.work, asked.jobs)
    for number, outcome in enumerate(found, 1):
        each = case(outcome, simulator.expected)
        cases.append(each)
        raised = sorted({f"{f.rule} {f.severity} {each.verdict(f)}" for f in outcome.raised})
        sys.stderr.write(f"{number}/{len(nights)} {outcome.night.tag}: {', '.join(raised) or 'nothing'}\n")
    asked.out.write_text(page(cases, len(nights)), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.precision", description=__doc__)
    parser.add_argument("simulator", type=Path, help="folder with the simulator's gwsim.py and scenarios.py")
    parser.add_argument("--out", type=Path, required=True, help="the page to write")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "quietburn-precision",
                        help="folder that keeps ledgers and outcomes, so that an interrupted run goes on")  # fmt: skip
    parser.add_argument("--seeds", default="1,2,3,4", help="seeds of the healthy nights")
    parser.add_argument("--variants", help="how the healthy nights are logged (default: in every way)")
    parser.add_argument("--fault-seed", type=int, default=101)
    parser.add_argument("--kept", action="store_true", help="write the page from what an interrupted run has kept")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run at a time")
    return parser.parse_args()


if __name__ == "__main__":
    main()

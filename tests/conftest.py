"""Which stage a test belongs to, and how tests are spread over processes (`-n`).

Those that share something costly run in one process, which makes it once.
"""

from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class BySharing(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps together what shares one run of the labs, or the ledgers that a file's tests read and keep."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/drills/"):
            return "tests/drills"
        return nodeid if file.startswith("tests/cli/") else file  # a test there starts the program for itself


@pytest.hookimpl(optionalhook=True)  # asked only where xdist is on
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySharing:
    """Schedule so under any `-n`; xdist's own groups (`--dist=loadgroup`) do nothing with pytest 9.2."""
    return BySharing(config, log)


# Stages of CI by folder of tests; `core` is the rest. A stage needs real programs or whole nights.
STAGES = {"promtool": "proof", "drills": "lab", "gateways": "lab", "days": "night"}
QUICK = ("unit", "rules")
# Tests in the quick folders that take seconds each.
SLOW = (
    "test_authoring.py", "test_bad_among_many.py", "test_bad_items.py", "test_dialects.py", "test_edges.py",
    "test_event_identity.py", "test_failing_rules.py", "test_fault_costs.py", "test_linear_time.py",
    "test_map_proposes_nothing_wrong.py", "test_reading.py", "test_rules.py", "test_wrapped.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its stage, and those of the quick set."""
    tests = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(tests).parts[0]
        item.add_marker(STAGES.get(folder, "core"))
        if folder in QUICK and item.path.name not in SLOW:
            item.add_marker("quick")

"""How tests are spread over processes (`-n`): those that share something costly run in one, which makes it once."""

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

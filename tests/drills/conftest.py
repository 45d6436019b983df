"""One run of every lab, shared by the tests of a session."""

from pathlib import Path

import pytest
from fixtures.drills.labs import LABS, run
from fixtures.drills.outcome import Outcome


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What each lab measured, by its name; its ledgers stay in place for the session."""
    folder: Path = tmp_path_factory.mktemp("drills")
    return {lab.name: run(lab, folder / lab.name) for lab in LABS}

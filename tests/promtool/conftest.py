"""What the proofs share: the real promtool, and ledgers read once for all tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.promtool.proofs import Judged, Opened, open_ledger
from tests.promtool.real import require_promtool


@pytest.fixture(scope="session")
def real_promtool() -> str:
    """Fails without promtool where CI=true, skips elsewhere."""
    return require_promtool()


@pytest.fixture(scope="session")
def judged(real_promtool: str) -> Iterator[Judged]:  # noqa: ARG001 - nothing is judged without it
    """Opens a rule's ledger, each one once; they close together at the end."""
    with ExitStack() as stack:
        kept: dict[tuple[str, Path], Opened] = {}

        def opened(rule_id: str, ledger: Path) -> Opened:
            if (rule_id, ledger) not in kept:
                kept[rule_id, ledger] = stack.enter_context(open_ledger(rule_id, ledger))
            return kept[rule_id, ledger]

        yield opened

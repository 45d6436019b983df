"""Ledgers of the rules, read once for all numbers that are tried on them."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from tests.rules.helpers import Opened, ledger_path, only

from quietburn.analysis.run import Analysis, analyzing


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    """Opens a rule's ledger, each one once; they close together at the end."""
    with ExitStack() as stack:
        kept: dict[tuple[str, str], Analysis] = {}

        def open_once(rule_id: str, ledger: str) -> Analysis:
            if (rule_id, ledger) not in kept:
                request = replace(only(rule_id), threads=1)
                kept[rule_id, ledger] = stack.enter_context(analyzing([str(ledger_path(rule_id, ledger))], request))
            return kept[rule_id, ledger]

        yield open_once

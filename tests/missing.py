"""A clear word where this machine lacks what a test needs."""

import os
from typing import NoReturn

import pytest


def unavailable(words: str) -> NoReturn:
    """Skip the test with the reason; under CI=true fail, since there every real part must be at hand."""
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)

"""The real promtool, or a clear word about its absence."""

import shutil

from tests.missing import unavailable


def require_promtool() -> str:
    """Return promtool's path. Where it is missing the test is skipped, but under CI=true it fails."""
    found = shutil.which("promtool")
    if found is None:
        unavailable("promtool is not installed, so no alert can be proven here: apt-get install prometheus")
    return found

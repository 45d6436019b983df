"""A clear word about nginx's absence."""

from fixtures.gateways.nginx import INSTALL, find_nginx
from tests.missing import unavailable


def require_nginx() -> None:
    """Skip the test where nginx is missing, but fail under CI=true."""
    if find_nginx() is None:
        unavailable(INSTALL)

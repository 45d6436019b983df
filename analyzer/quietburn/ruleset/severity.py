"""Severities of findings and alerts."""

from enum import StrEnum


class Severity(StrEnum):
    """Page wakes somebody, ticket waits for the morning, info is only shown."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return 3 for a page, 2 for a ticket, 1 for an info."""
        return {"page": 3, "ticket": 2, "info": 1}[self.value]

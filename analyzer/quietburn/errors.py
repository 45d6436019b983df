"""Errors whose message is what the user sees, and the exit status each one ends in."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of every command; the one place where the numbers stand."""

    DONE = 0
    FINDINGS = 1
    UNUSABLE = 2
    UNDECIDED = 3
    INTERRUPTED = 130
    TERMINATED = 143


class QuietburnError(Exception):
    """A call, configuration or input that can't be used; one line that says what and how to mend it."""

    status = ExitStatus.UNUSABLE


class UsageError(QuietburnError):
    """A flag or argument that can't be used."""


class ConfigError(QuietburnError):
    """A configuration, mapping or rule file that can't be used; names the file and the key."""


class InputError(QuietburnError):
    """A ledger that can't be read or recognised; names the file."""

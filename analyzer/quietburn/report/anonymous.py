"""A report without names of callers: who called and on whose behalf as stable pseudonyms."""

from collections.abc import Iterable
from hashlib import blake2b

from quietburn.report.model import Number, Report

_NAMES = ("client", "tenant")  # columns whose values may name a person or a customer


def pseudonym(column: str, value: str) -> str:
    """Return the same pseudonym for the same name, in every report.

    It is a hash without a secret: whoever can guess a name can find it out again.
    """
    return f"{column}-{blake2b(value.encode(), digest_size=5, person=b'quietburn').hexdigest()}"


def anonymized(report: Report, tenants: Iterable[str] = ()) -> Report:
    """Return the report with pseudonyms for clients and tenants; `tenants` are those that the configuration names."""
    notices = list(report.notices)
    for tenant in sorted(tenants, key=len, reverse=True):
        said = f" where tenant is {tenant} ("
        notices = [notice.replace(said, f" where tenant is {pseudonym('tenant', tenant)} (") for notice in notices]
    incidents = [one.model_copy(update={"who": [_entry(entry) for entry in one.who]}) for one in report.incidents]
    findings = [one.model_copy(update={"top": [_entry(entry) for entry in one.top]}) for one in report.findings]
    return report.model_copy(update={"incidents": incidents, "findings": findings, "notices": notices})


def _entry(entry: dict[str, str | Number | None]) -> dict[str, str | Number | None]:
    return {key: pseudonym(key, value) if key in _NAMES and isinstance(value, str) else value for key, value in entry.items()}

"""An incident in words, as the text, Markdown and GitHub views put it."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from quietburn.report.model import IncidentReport, Report
from quietburn.report.words import counted, number

_NAMED = 3  # places or people of an incident that its line names


def when(incident: IncidentReport, report: Report) -> str:
    """Return the minutes of an incident (UTC), with the day where the report is longer than one."""
    start, end = incident.window.start, incident.window.end
    dated = f"{start[:10]} " if _is_longer_than_a_day(report) else ""
    last_day = f"{end[:10]} " if dated and start[:10] != end[:10] else ""
    return f"{dated}{start[11:16]}\u2013{last_day}{end[11:16]}"


def where(incident: IncidentReport) -> str:
    """Return what failed, by the narrowest name: a backend before its route."""
    return _first(dict.fromkeys(list(subject.values())[-1] for subject in incident.subjects if subject))


def cost(incident: IncidentReport) -> str:
    """Return what an incident cost, as far as it cost anything that is counted."""
    parts = [f"{counted(incident.requests_not_served, 'request')} not served"] if incident.requests_not_served else []
    parts += [f"{number(incident.tokens)} tokens"] if incident.tokens else []
    return _joined(*parts)


def what(incident: IncidentReport) -> str:
    """Return what happened, where, and what it cost, on one line that names no caller."""
    return _joined(incident.title, where(incident), cost(incident))


def line(incident: IncidentReport) -> str:
    """Return the same with who was behind it."""
    return _joined(what(incident), who(incident))


def how_many(report: Report) -> str:
    """Return how many incidents there are, the pages first; or that there is none."""
    if not report.incidents:
        return "no incident"
    counts = Counter(incident.severity for incident in report.incidents)
    graded = [counted(counts[severity], severity) for severity in ("page", "ticket") if counts[severity]]
    graded += [f"{counts['info']:,} info"] if counts["info"] else []
    return f"{counted(len(report.incidents), 'incident')} ({', '.join(graded)})"


def who(incident: IncidentReport) -> str:
    """Return the names of those behind an incident, most first."""
    return _first(str(value) for entry in incident.who for key, value in entry.items() if key not in ("share", "tokens"))


def _joined(*parts: str) -> str:
    return " \u00b7 ".join(part for part in parts if part)


def _first(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def _is_longer_than_a_day(report: Report) -> bool:
    first, last = report.ledger.first_ts, report.ledger.last_ts
    return bool(first and last) and datetime.fromisoformat(str(last)) - datetime.fromisoformat(str(first)) > timedelta(days=1)

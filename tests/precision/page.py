"""docs/precision.md: what the numbers are, what they are of, and what they don't say."""

from collections import Counter
from collections.abc import Iterable, Sequence

from quietburn.ruleset.files import shipped_rules
from tests.precision.matching import ALSO_BESIDE, RIGHT_WHEN_HEALTHY, SAID, Case, planted_cases
from tests.precision.nights import FAULT, HEALTHY, STRENGTHS
from tests.precision.tallies import Part, RuleTally, by_strength, detection, healthy_pages, most_share, quantile, tally
from tests.precision.words import minutes, of_random, part, percent, rate, table

_TARGETS = {"weak": 0.6, "moderate": 0.9, "strong": 1.0}
_PRECISION_TARGET = 0.9
_TICKET_NIGHTS_TARGET = 0.02

_HEAD = """# How precise the rules are

Made by `python -m tests.precision SIMULATOR --out docs/precision.md`; nobody edits it. The simulator is an independent
one, made by people who had not read the rules: a gateway with eight backends, queues, retries, probes, deploys and
callers who hang up. Its healthy nights last 10 to 12 hours and are logged in five ways (full, lean, without labels,
nginx, LiteLLM); a fault is planted an hour into a night of three, in three strengths.

A finding counts when it is a page or a ticket. It is *planted* when its rule names the fault and its window touches the
time of the fault or the half hour after it, *right beside it* when its rule describes a consequence of the fault at
that time, and *wrong* everywhere else; every finding on a healthy night is wrong. Findings are counted as events, never
point by point. Intervals are Wilson's at 95 %; upper bounds are exact, one-sided at 95 %.
"""

_LIMITS = """## What these numbers don't say

- The faults are one simulator's, at one seed; a rule with three planted faults has an interval that is nearly all of
  the range.
- The rules have been mended on these very nights. Nights that nobody has seen will be worse; the interval doesn't know
  that.
- Rates of errors and of callers who stop are its author's assumptions. Its prompt and answer lengths are those of
  Azure's traces of 2023.
- The variants of a healthy night are one night logged in several ways. They count as one: the one with most pages
  stands for all.
- Time until detection is the alert's condition by the ledger's minutes. Scrapes, the rule's evaluation and routing come
  on top.
- A rule without an alert looks back over the whole ledger: what it finds begins with its first evidence, which nobody
  could have told by then. That holds for the times by fault, too.
- A rule that no fault of the simulator is about has a precision here but no recall.
- A fault that lasts to the end of its night has no time until the alert resets.
- The random firer has the rule's own alerts, as many and as long, each at a random instant of a random night. The rule
  that always fires has one alert a night, as long as the night: its recall is 100 %, and it pages all week.
"""


def page(cases: Sequence[Case], planned: int) -> str:
    """Return the page; `planned` is how many nights there would be, of which `cases` were analyzed."""
    tallies = [each for rule in shipped_rules() if (each := tally(rule.id, cases)).precision.of or any(p.of for p in each.recall)]
    parts = [
        _HEAD, _of_what(cases, planned), _summary(cases), _by_rule(tallies), _by_time(tallies), _by_fault(cases),
        _titles(cases), _said(cases), _healthy(cases), _missed(cases), _wrong(cases), _LIMITS,
    ]  # fmt: skip
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _of_what(cases: Sequence[Case], planned: int) -> str:
    faults = sum(case.outcome.night.kind == FAULT for case in cases)
    healthy = Counter(case.outcome.night.variant for case in cases if case.outcome.night.kind == HEALTHY)
    logged = ", ".join(f"{count} {variant}" for variant, count in sorted(healthy.items())) or "none"
    rest = f" **{planned - len(cases)} of {planned} ledgers were not analyzed.**" if len(cases) < planned else ""
    return f"{faults} ledgers of nights with a fault, {healthy.total()} of healthy nights ({logged}).{rest}\n"


def _summary(cases: Sequence[Case]) -> str:
    planted = planted_cases(cases)
    found = [Part(sum(bool(case.planted()) for case in at), len(at)) for at in by_strength(planted)]
    of_faults = [case for case in cases if case.outcome.night.kind == FAULT]
    verdicts = [case.verdict(finding) for case in of_faults for finding in case.outcome.raised]
    precision = Part(sum(verdict != "wrong" for verdict in verdicts), len(verdicts))
    healthy = [case for case in cases if case.outcome.night.kind == HEALTHY]
    paged = [case for case in healthy if _worst(case) == "page"]
    ticketed = Part(sum(_worst(case) != "info" for case in healthy), len(healthy))
    wrongly = Part(sum(_worst(case) != "info" and not _explained(case) for case in healthy), len(healthy))
    nights = Part(_nights(paged), _nights(healthy))
    most = percent(most_share(nights)) if nights.of else "-"
    seen = f"{len(paged)} of {len(healthy)} ledgers, {nights.hits} of {nights.of} nights (at most {most})"
    rows = [
        ["No page on a healthy night", "0", seen, _met(not paged if healthy else None)],
        ["A page or ticket on few healthy nights", "at most 2 %", part(ticketed), _met(_within(ticketed))],
        ["The same, without those that are right (see below)", "-", part(wrongly), _met(_within(wrongly))],
        *([f"Recall, {name}", f"at least {percent(target)}", part(each), _met(_reached(each, target))]
          for (name, target), each in zip(_TARGETS.items(), found, strict=True)),
        ["Precision on nights with a fault", f"at least {percent(_PRECISION_TARGET)}", part(precision),
         _met(_reached(precision, _PRECISION_TARGET))],
    ]  # fmt: skip
    return "## In short\n\n" + table(["What", "Asked", "Measured", "Met"], rows)


def _nights(cases: Iterable[Case]) -> int:
    return len({(case.outcome.night.name, case.outcome.night.seed) for case in cases})


def _within(counted: Part) -> bool | None:
    return None if counted.share is None else counted.share <= _TICKET_NIGHTS_TARGET


def _explained(case: Case) -> bool:
    variant = case.outcome.night.variant
    return all((variant, finding.rule) in RIGHT_WHEN_HEALTHY for finding in case.outcome.raised)


def _reached(counted: Part, target: float) -> bool | None:
    return None if counted.share is None else counted.share >= target


def _met(met: bool | None) -> str:  # noqa: FBT001 - a cell of a table
    return "not measured" if met is None else "yes" if met else "**no**"


def _worst(case: Case) -> str:
    severities = {finding.severity for finding in case.outcome.findings}
    return "page" if "page" in severities else "ticket" if "ticket" in severities else "info"


def _by_rule(tallies: Iterable[RuleTally]) -> str:
    rows = [
        [f"`{each.rule}`", part(each.precision), *(part(p) for p in each.recall), of_random(each.random), percent(each.always)]
        for each in tallies
    ]
    recall = (f"Recall, {name}" for name in STRENGTHS)
    head = ["Rule", "Precision", *recall, "Random firer: precision; recall", "Always fires: precision"]
    return "## By rule: precision and recall\n\nRecall is of the faults that the rule itself names.\n\n" + table(head, rows)


def _by_time(tallies: Iterable[RuleTally]) -> str:
    alerting = {rule.id for rule in shipped_rules() if rule.alert.none is None}
    rows = [
        [f"`{each.rule}`", str(len(each.detected)), *(_delays(each) if each.rule in alerting else ("no alert", "", "")),
         rate(each.pages_week), rate(each.pages_week_most)]
        for each in tallies
    ]  # fmt: skip
    head = ["Rule", "Faults found", "Detected p50", "Detected p95", "Reset p95", "Pages a healthy week", "at most"]
    note = "Minutes from the fault's start to the alert, and from its end until the alert no longer holds.\n\n"
    return "## By rule: time, and healthy weeks\n\n" + note + table(head, rows)


def _delays(told: RuleTally) -> tuple[str, str, str]:
    return minutes(quantile(told.detected, 0.5)), minutes(quantile(told.detected, 0.95)), minutes(quantile(told.reset, 0.95))


def _by_fault(cases: Sequence[Case]) -> str:
    planted = planted_cases(cases)
    rows = []
    for fault in sorted({case.outcome.night.name for case in planted}):
        own = [case for case in planted if case.outcome.night.name == fault]
        delays = [delay for case in own if (delay := detection(case)) is not None]
        recall = (Part(sum(bool(c.planted()) for c in at), len(at)) for at in by_strength(own))
        rules = ", ".join(f"`{rule}`" for rule in sorted(own[0].named))
        rows.append([fault, rules, *(f"{p.hits} of {p.of}" for p in recall), minutes(quantile(delays, 0.5))])
    return "## By fault\n\n" + table(["Fault", "Rules that name it", *STRENGTHS, "Detected p50"], rows)


def _titles(cases: Sequence[Case]) -> str:
    rows = []
    for case in planted_cases(cases):
        night, told = case.outcome.night, case.told_as
        if night.strength == len(STRENGTHS) - 1:
            title, severity = (told.title, told.severity) if told else ("-", "-")
            rows.append([f"{night.name}, {night.place}", title, severity, _names(case)])
    note = "The incident that stands first among those at the time of the fault, and what its title names.\n\n"
    return "## Strong faults: what a person reads first\n\n" + note + table(["Fault", "Incident", "Severity", "Names"], rows)


def _names(case: Case) -> str:
    told = case.told_as
    if told is None:
        return "nothing"
    return "the fault" if told.rule in case.named else "a consequence" if told.rule in case.beside else "**another cause**"


def _said(cases: Sequence[Case]) -> str:
    rows = [
        [case.outcome.night.tag, _met(SAID[case.outcome.night.name](case.outcome))]
        for case in cases if case.outcome.night.name in SAID
    ]  # fmt: skip
    return "## Faults that no rule names, and that are to be said\n\n" + table(["Night", "Said"], rows)


def _healthy(cases: Sequence[Case]) -> str:
    rows = [
        [case.outcome.night.tag, f"`{rule}`", severity, str(count),
         RIGHT_WHEN_HEALTHY.get((case.outcome.night.variant, rule), "wrong")]
        for case in cases if case.outcome.night.kind == HEALTHY
        for (rule, severity), count in sorted(Counter((f.rule, f.severity) for f in case.outcome.raised).items())
    ]  # fmt: skip
    pages, seconds = healthy_pages(cases)
    note = f"{pages} pages in {seconds / 3600:,.0f} hours of healthy nights, by all rules.\n\n"
    listed = table(["Night", "Rule", "Severity", "Findings", "Verdict"], rows) if rows else "None.\n"
    return "## Healthy nights with a page or a ticket\n\n" + note + listed


def _missed(cases: Sequence[Case]) -> str:
    missed = [case.outcome.night.tag for case in planted_cases(cases) if not case.planted()]
    untold = [case.outcome.night.tag for case in cases if case.cannot_be_told]
    lines = [f"- {tag}" for tag in missed] or ["None."]
    lines += ["", "What the ledger can't tell, since every rule that names the fault is not evaluated there:", ""]
    return "\n".join(["## Faults not found", "", *lines, *([f"- {tag}" for tag in untold] or ["None."])]) + "\n"


def _wrong(cases: Sequence[Case]) -> str:
    wrong = Counter(
        (f.rule, f.severity, case.outcome.night.name)
        for case in cases if case.outcome.night.kind == FAULT
        for f in case.outcome.raised if case.verdict(f) == "wrong"
    )  # fmt: skip
    rows = [[f"`{rule}`", severity, fault, str(count)] for (rule, severity, fault), count in sorted(wrong.items())]
    listed = table(["Rule", "Severity", "Fault", "Findings"], rows) if rows else "None.\n"
    return "## Wrong findings on nights with a fault\n\n" + listed + _also()


def _also() -> str:
    each = sorted((fault, rule, why) for fault, rules in ALSO_BESIDE.items() for rule, why in rules.items())
    also = [f"- `{rule}` beside {fault}: {why}" for fault, rule, why in each]
    note = "\nTaken as right beside a fault, besides what the simulator's author lists:\n\n"
    return note + "\n".join(also) + "\n" if also else ""

"""The guard around everything that a rule file runs: SQL, observed values, sentences, alerts.

Whatever fails inside becomes a RuleFault; whoever runs several rules catches that and goes on
with the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from quietburn.ruleset.rule import Rule


class RuleFault(Exception):  # noqa: N818 - a fault of a rule file, as a line or a field has faults
    """A part of a rule failed. `problem` names the part, by its key in the rule file, and what went wrong."""

    def __init__(self, rule: Rule, part: str, words: str) -> None:
        super().__init__(f"rule {rule.id}: {part}: {words}")
        self.rule = rule.id
        self.problem = f"{part}: {words}"


@contextmanager
def running(
    rule: Rule, part: str, words: str = "fails on this ledger", *, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run a part of a rule. Raises RuleFault for whatever is raised inside; the innermost part is the one that is named.

    `passing` are exceptions that no rule causes. A cause is told by its kind only: its message may
    quote a prompt.
    """
    try:
        yield
    except RuleFault:
        raise
    except passing:
        raise
    except Exception as problem:  # whatever a rule file makes fail is a fault of that rule, never of the run
        raise RuleFault(rule, part, f"{words} ({type(problem).__name__})") from problem

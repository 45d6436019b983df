"""The sentences of a finding: Jinja over observed values, in a sandbox."""

from collections.abc import Mapping

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from quietburn.ruleset.guard import running
from quietburn.ruleset.rule import Rule

MAX_SENTENCE = 1200
_PLAIN_BELOW = 1e15  # larger numbers are written with an exponent


class Sentences:
    """Renders a rule's inference and action. Raises RuleFault naming the key."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        self._environment.filters.update(number=number, percent=percent)

    def inference(self, observed: Mapping[str, object]) -> str:
        """Return what the observation may mean."""
        return self._render("inference", self._rule.finding.inference, observed)

    def action(self, observed: Mapping[str, object]) -> str:
        """Return what to do first."""
        return self._render("action", self._rule.finding.action, observed)

    def corroborated(self, observed: Mapping[str, object]) -> bool:
        """Whether what is observed has the signals that make the rule's cause likely; so it is where the rule asks for none."""
        asked = self._rule.finding.corroborated
        if asked is None:
            return True
        with running(self._rule, "finding.corroborated", "can't be computed"):
            return bool(self._environment.compile_expression(asked, undefined_to_none=False)(**observed))

    def _render(self, key: str, template: str, observed: Mapping[str, object]) -> str:
        with running(self._rule, f"finding.{key}", "can't be rendered"):
            return self._environment.from_string(template).render(observed)[:MAX_SENTENCE]


def number(value: float | None, decimals: int = 0, unit: str = "") -> str:
    """Return a number as a sentence shows it, without needless zeros: `12.5 s`, `1,200 ms`, `an unknown number of ms`."""
    after = f" {unit}" if unit else ""
    return f"an unknown number{' of' * bool(unit)}{after}" if value is None else f"{_digits(value, decimals)}{after}"


def percent(value: float | None, decimals: int = 1) -> str:
    """Return a share as a percentage: `12.5 %`."""
    return "an unknown share" if value is None else f"{_digits(value * 100, decimals)} %"


def _digits(value: float, decimals: int) -> str:
    if abs(value) >= _PLAIN_BELOW:
        return f"{value:.3g}"
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text

"""The sentences of a finding: Jinja over observed values, in a sandbox."""

from collections.abc import Mapping

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from quietburn.errors import ConfigError
from quietburn.ruleset.model import Rule

MAX_SENTENCE = 1200


class Sentences:
    """Renders a rule's inference and action. Raises ConfigError naming the rule and key."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)

    def inference(self, observed: Mapping[str, object]) -> str:
        """Return what the observation may mean."""
        return self._render("inference", self._rule.finding.inference, observed)

    def action(self, observed: Mapping[str, object]) -> str:
        """Return what to do first."""
        return self._render("action", self._rule.finding.action, observed)

    def _render(self, key: str, template: str, observed: Mapping[str, object]) -> str:
        try:
            text = self._environment.from_string(template).render(observed)
        except TemplateError as problem:
            raise ConfigError(f"rule {self._rule.id}: finding.{key} can't be rendered: {problem}.") from None
        return text[:MAX_SENTENCE]

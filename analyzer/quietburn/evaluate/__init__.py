"""From events to outcomes: rates, rules, episodes, findings, incidents."""

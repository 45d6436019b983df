"""Metrics, alert rules, runbook, and the proof that an alert says what the classifier says."""

"""Metrics of a ledger, for a real Prometheus."""

"""Ledger files: dialects, reading, quarantine."""

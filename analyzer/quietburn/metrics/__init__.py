"""The metrics contract, and what a ledger makes of it: one definition for alerts, their proof and exporters."""

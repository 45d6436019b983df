"""Decisions on reports: the gate, the comparison of two ledgers, acceptance."""

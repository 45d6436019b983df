"""Intervals at 95 % for what a ledger shows, and when they can't be had."""

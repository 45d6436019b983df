"""One analysis, from ledgers to report."""

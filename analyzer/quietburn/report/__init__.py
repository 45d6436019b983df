"""The report and its views."""

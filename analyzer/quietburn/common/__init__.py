"""Shared by every package: the columns of an event, SQL text, messages, configuration, limits."""

"""From records to events: typed cells, casts, the table of events, the store."""

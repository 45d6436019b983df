"""From bytes to records: files, lines, what stands around them, and what is no JSON."""

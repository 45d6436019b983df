"""From bytes to records: files, lines, frames, and what is not JSON."""

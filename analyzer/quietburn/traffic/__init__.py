"""Relations between lines: repeats, retries, both ends of a call, two logs of the same traffic."""

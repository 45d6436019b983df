"""What lines have to do with one another: repeats, retries, both ends of a call, two logs of the same traffic."""

"""The command line: options, one call of the library each, rendering and exit status."""

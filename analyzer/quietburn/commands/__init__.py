"""Commands: flags in, one call each, rendering and exit status out."""

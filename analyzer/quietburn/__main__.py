"""Run the command as `python -m quietburn`."""

from quietburn.cli import main

main()

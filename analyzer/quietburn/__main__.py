"""Run the command as `python -m quietburn`."""

from quietburn.cli.main import main

main()

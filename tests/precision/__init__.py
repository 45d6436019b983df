"""How precise the rules are on a simulator's nights: `python -m tests.precision SIMULATOR --out docs/precision.md`."""

"""Where the shipped data lies: rules, dialect mappings, templates and the rules' sample ledgers."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def rules_dir() -> Path:
    """Return the folder of the shipped rules.

    Inside a wheel it lies in the package; in a checkout it stands at the top level.
    It is never looked up relative to the working directory.
    """
    shipped = _PACKAGE / "rules"
    return shipped if shipped.is_dir() else _PACKAGE.parents[1] / "rules"


ROUTES_FILE = "routes.toml"


def rule_files() -> list[Path]:
    """Return the files of the shipped rules, by name; beside them stands the table of routes."""
    return [path for path in sorted(rules_dir().glob("*.toml")) if path.name != ROUTES_FILE]


@cache
def samples_dir() -> Path:
    """Return the folder with each rule's `fires` and `quiet` ledgers, from which alerts are tested."""
    shipped = _PACKAGE / "sample_ledgers"
    return shipped if shipped.is_dir() else _PACKAGE.parents[1] / "fixtures" / "rules"


@cache
def demo_night() -> Path:
    """Return the ledger of `quietburn demo`."""
    shipped = _PACKAGE / "demo_night.jsonl"
    return shipped if shipped.is_file() else _PACKAGE.parents[1] / "fixtures" / "ledgers" / "demo_night.jsonl"

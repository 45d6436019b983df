"""The simulator's nights: which there are, and their ledgers on disk.

The simulator is a folder with `gwsim.py` (the world) and `scenarios.py` (healthy nights and faults).
It is no part of this project; it is imported from where it is.
"""

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

STRENGTHS = ("weak", "moderate", "strong")
HEALTHY, FAULT = "healthy", "fault"
_FAULT_VARIANT = "full"
_WITHOUT_STRENGTHS = frozenset({"none", "deadline_600"})  # these are there or not


class Night(NamedTuple):
    """One simulated night as one gateway logs it; `strength` and `place` are a fault's."""

    kind: str
    name: str
    seed: int
    strength: int | None
    place: str | None
    variant: str

    @property
    def tag(self) -> str:
        """Return the name of the night's files."""
        return "-".join(str(part) for part in self if part is not None)

    @property
    def world(self) -> "Night":
        """Return what one simulation gives: the night whatever the log looks like."""
        return self._replace(variant="")


class Simulator:
    """The simulator's modules, as far as they are asked here."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self._world: Any = importlib.import_module("gwsim")
        self._scenarios: Any = importlib.import_module("scenarios")

    def healthy(self, seeds: Iterable[int], variants: Iterable[str] | None = None) -> Iterator[Night]:
        """Yield every kind of healthy night, as each gateway would log it."""
        for name in self._scenarios.HEALTHY:
            for seed in seeds:
                for variant in variants or self._world.VARIANTS:
                    yield Night(HEALTHY, name, seed, None, None, variant)

    def faults(self, seed: int) -> Iterator[Night]:
        """Yield every planted fault, at each place and strength."""
        for name, (_, places, _, _) in self._scenarios.FAULTS.items():
            for place in places:
                for strength in range(1 if name in _WITHOUT_STRENGTHS else len(STRENGTHS)):
                    yield Night(FAULT, name, seed, strength, place, _FAULT_VARIANT)

    def expected(self, fault: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the rules that name a fault, and those that are right beside it."""
        _, _, named, beside = self._scenarios.FAULTS[fault]
        return frozenset(named), frozenset(beside)

    def write(self, nights: list[Night], folder: Path) -> None:
        """Write the ledgers of one world, and beside each what is true of it; those that are there stay."""
        missing = [night for night in nights if not truth_path(folder, night).exists()]
        if not missing:
            return
        rows, truth = self._simulate(missing[0])
        for night in missing:
            self._world.write(str(ledger_path(folder, night)), self._world.VARIANTS[night.variant](rows))
            told = {"truth": truth, "t0": self._world.T0, "n": len(rows)}
            truth_path(folder, night).write_text(json.dumps(told), encoding="utf-8")

    def _simulate(self, night: Night) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        if night.kind == HEALTHY:
            rows, truth = self._scenarios.healthy(night.name, night.seed)
        else:
            rows, truth = self._scenarios.FAULTS[night.name][0](night.seed, night.strength, night.place)
        return rows, truth


def ledger_path(folder: Path, night: Night) -> Path:
    """Return where a night's ledger is."""
    return folder / f"{night.tag}.jsonl"


def truth_path(folder: Path, night: Night) -> Path:
    """Return where it stands what is true of a night; it is written after the ledger."""
    return folder / f"{night.tag}.truth.json"

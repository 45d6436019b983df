"""Simulate nights and analyze them, and keep what came out, so that an interrupted run goes on."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import quietburn
from quietburn.analysis.run import Request, analyze
from tests.precision.nights import Night, Simulator, ledger_path, truth_path
from tests.precision.outcomes import Outcome, Span, outcome_of

_SOURCE = Path(quietburn.__file__).parent
_RULES = _SOURCE.parents[1] / "rules"


def outcomes(simulator: Path, nights: Iterable[Night], work: Path, jobs: int) -> Iterator[Outcome]:
    """Yield each night's outcome, in order; `work` keeps ledgers and outcomes, at most `jobs` processes run."""
    kept = work / f"outcomes-{_fingerprint()}"
    kept.mkdir(parents=True, exist_ok=True)
    worlds = [list(same) for _, same in groupby(nights, key=lambda night: night.world)]
    with ProcessPoolExecutor(jobs) as pool:
        for of_world in pool.map(_world, worlds, [simulator] * len(worlds), [work] * len(worlds), [kept] * len(worlds)):
            yield from of_world


def kept_outcomes(nights: Iterable[Night], work: Path) -> Iterator[Outcome]:
    """Yield the outcomes that earlier runs of this analyzer and these rules have kept."""
    kept = work / f"outcomes-{_fingerprint()}"
    yield from (outcome for night in nights if (outcome := _known(night, kept)))


def _world(nights: list[Night], simulator: Path, work: Path, kept: Path) -> list[Outcome]:
    """Return the outcomes of one world's nights."""
    return [_known(night, kept) or _analyzed(night, nights, simulator, work, kept) for night in nights]


def _known(night: Night, kept: Path) -> Outcome | None:
    path = _outcome_path(kept, night)
    return Outcome.model_validate_json(path.read_bytes()) if path.exists() else None


def _analyzed(night: Night, world: list[Night], simulator: Path, work: Path, kept: Path) -> Outcome:
    if not truth_path(work, night).exists():
        Simulator(simulator).write(world, work)
    told = json.loads(truth_path(work, night).read_bytes())
    truth = told["truth"]
    fault = Span(start=truth["start"], end=truth["end"]) if "start" in truth else None
    report = analyze([str(ledger_path(work, night))], Request(threads=1))
    outcome = outcome_of(night, report, fault, told["t0"])
    path = _outcome_path(kept, night)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(outcome.model_dump_json(), encoding="utf-8")
    unfinished.rename(path)
    return outcome


def _outcome_path(kept: Path, night: Night) -> Path:
    return kept / f"{night.tag}.json"


def _fingerprint() -> str:
    """Return what tells this analyzer and these rules from any others."""
    digest = sha256()
    for path in sorted([*_SOURCE.rglob("*.py"), *_RULES.rglob("*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

"""`quietburn map`: a mapping file for a ledger that no dialect fits, proposed from a sample of it and tried on it."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quietburn.errors import InputError

if TYPE_CHECKING:
    from quietburn.analysis.trial import Trial
    from quietburn.dialects.propose import Proposed

_MOSTLY = 0.5  # of the lines fit a dialect: then it is theirs
_FEW = 0.05
_TRIED = "quietburn-map"  # no shipped dialect's name


def map_command(
    ledger: Annotated[str, typer.Argument(help="A JSONL file, or - for standard input.")],
    name: Annotated[str, typer.Option(help="Name of the proposed dialect.")] = "mine",
) -> None:
    """Look at a sample of a ledger and propose a mapping file for --map, with the rules that it enables."""
    from quietburn.dialects.detect import first_fit
    from quietburn.dialects.mapping import check_name, shipped_mappings
    from quietburn.dialects.notledger import what_it_is_instead
    from quietburn.dialects.propose import as_toml, keys_seen, propose

    check_name(name)
    label, lines, sample = _sampled(ledger)
    known = shipped_mappings()
    fits = Counter(found for members in sample if (found := first_fit(members, known)))
    for dialect, count in fits.most_common(1):
        if count >= _MOSTLY * len(sample):
            typer.echo(
                f"# {count:,} of {len(sample):,} lines sampled across {_printable(label)} fit the dialect {dialect!r}, which is "
                f"read without --map\n# (quietburn dialects show {dialect}). Nothing is proposed."
            )
            return
    instead = what_it_is_instead(keys_seen(sample))
    if instead is not None:
        raise InputError(f"{label}: {instead}")
    proposed, trial = _judged(propose(sample, known), sample, lines)
    if not any(item.doubt is None for item in proposed):
        raise InputError(f"{label}: none of its keys looks like a ledger field. Write a mapping file by hand.")
    head = [f"# Proposed from {len(sample):,} lines sampled across {_printable(label)}.", *_gives(trial)]
    columns = {item.column for item in proposed if item.doubt is None}
    typer.echo("\n".join([*head, "", as_toml(name, proposed, sample), *_rules(columns)]))


def _sampled(ledger: str) -> tuple[str, list[bytes], list[dict[str, Any]]]:
    """Return a ledger's label, lines from across it as they stand there, and the records that they hold."""
    from quietburn.dialects.detect import parsed_sample, sampled
    from quietburn.records.framing.formats import wrapper_of
    from quietburn.records.framing.framed import sample_payloads
    from quietburn.records.inputs import find_ledgers

    (first, *others) = find_ledgers([ledger])
    if others:
        raise InputError(f"{ledger}: contains several ledgers. Name one of them, such as {first.label}.")
    with sampled(first) as opened:
        wrapper = wrapper_of(opened.lines)
        sample = parsed_sample(opened.lines if wrapper is None else sample_payloads(opened.lines, wrapper))
        if not sample:
            raise InputError(f"{first.label}: none of the sampled lines is a JSON object. Write one object per line.")
        return first.label, opened.lines, sample


def _judged(
    proposed: "list[Proposed]", sample: list[dict[str, Any]], lines: list[bytes]
) -> "tuple[list[Proposed], Trial]":
    """Return a proposal without what the sample, read by it, speaks against; and what it then gives."""
    trial = _tried(proposed, sample, lines)
    judged = [_after(item, trial) for item in proposed]
    if judged == proposed:
        return proposed, trial
    return judged, _tried(judged, sample, lines)


def _tried(proposed: "list[Proposed]", sample: list[dict[str, Any]], lines: list[bytes]) -> "Trial":
    from quietburn.analysis.trial import tried
    from quietburn.dialects.mapping import Mapping, with_unsettled
    from quietburn.dialects.propose import as_toml

    return tried(with_unsettled(Mapping.model_validate(tomllib.loads(as_toml(_TRIED, proposed, sample)))), lines)


def _after(item: "Proposed", trial: "Trial") -> "Proposed":
    """Return a column as the trial leaves it: with the unit that the lines tell, or with what speaks against it."""
    if item.doubt is not None:
        return item
    if item.lacks_unit:
        unit = trial.units.get((item.column, item.key))
        if unit is None:
            return replace(item, unit="s", doubt="neither its name nor the lines show its unit, so this one is a guess")
        return replace(item, unit=unit, why=f"{item.why}; the lines show its unit")
    return replace(item, doubt=_speaks_against(item.column, trial))


def _speaks_against(column: str, trial: "Trial") -> str | None:
    """Return what the trial shows that a column can't be."""
    if column in ("route", "path", "operation") and not trial.attempts:
        return "no line would be a generating call; name your routes under [routes]"
    if column in ("status", "error") and not trial.successes:
        return "no line would count as answered, but some as failed"
    if column == "started_at" and trial.ends_before_start > _FEW * trial.lines:
        return "it lies after the end"
    return None


def _gives(trial: "Trial") -> Iterator[str]:
    success = "no success rate: no status is known" if trial.success_rate is None else f"{trial.success_rate:.1%} answered 2xx"
    tokens = "no tokens" if trial.tokens is None else f"{trial.tokens:,.0f} tokens"
    span = f"from {trial.first} to {trial.last}" if trial.first else "no times"
    yield f"# Result on these lines: {trial.lines:,} lines, {trial.attempts:,} attempts, {success}, {tokens}, {span}."
    yield "# Check this against what you know about them. Comments list what was left out, and why."


def _printable(text: str) -> str:
    from quietburn.report.printable import printable

    return printable(text)


@dataclass(frozen=True)
class _Columns:
    """The columns that a mapping gives, as a rule asks for them."""

    stored: frozenset[str]

    def carries(self, field: str) -> bool:
        """Whether the mapping gives this column."""
        return field in self.stored


def _rules(columns: set[str]) -> Iterator[str]:
    """Yield which rules a mapping of these columns enables, and what the others miss."""
    from quietburn.analysis.run import Request, configured_rules
    from quietburn.common.columns import STORED_AS
    from quietburn.evaluate.rules import missing_fields

    stored = {STORED_AS.get(column, column) for column in columns}
    if {"ts", "started_at"} <= columns:
        stored.add("latency_ms")
    if columns & {"started_at"}:
        stored.add("ts_us")
    # A line without a route is a call for an answer; one mapped so has it too.
    given = _Columns(frozenset(stored | {"route"}))
    missing = {rule.id: missing_fields(rule, values, given) for rule, values in configured_rules(Request())}
    yield "# Rules that this enables: " + (", ".join(rule for rule, lacks in missing.items() if not lacks) or "none")
    yield from (f"# Not evaluated: {rule} (misses {', '.join(lacks)})" for rule, lacks in missing.items() if lacks)

"""`quietburn map`: a mapping file for a ledger that no dialect fits, proposed from a sample of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from quietburn.errors import InputError


def map_command(
    ledger: Annotated[str, typer.Argument(help="A JSONL file, or - for standard input.")],
    name: Annotated[str, typer.Option(help="Name of the proposed dialect.")] = "mine",
) -> None:
    """Look at a sample of a ledger and propose a mapping file for --map, with the rules that it enables."""
    from quietburn.ledger.detect import first_fit, parsed_sample, sampled
    from quietburn.ledger.inputs import find_ledgers
    from quietburn.ledger.mapping import check_name, shipped_mappings
    from quietburn.ledger.propose import as_toml, propose

    check_name(name)
    (first, *others) = find_ledgers([ledger])
    if others:
        raise InputError(f"{ledger}: holds several ledgers; name one of them, such as {first.label}.")
    known = shipped_mappings()
    with sampled(first) as opened:
        sample = parsed_sample(opened.lines)
    if not sample:
        raise InputError(f"{first.label}: none of the lines sampled across it is a JSON object; write one object a line.")
    fits = Counter(found for members in sample if (found := first_fit(members, known)))
    proposed = propose(sample, known)
    if not proposed:
        raise InputError(f"{first.label}: no key of it looks like a field of a ledger; write a mapping file by hand.")
    lines = [f"# Proposed from {len(sample):,} lines sampled across {_printable(first.label)}."]
    lines += [
        f"# {count:,} of them fit the dialect {dialect!r}, which is read without --map (quietburn dialects show {dialect})."
        for dialect, count in fits.most_common()
    ]
    typer.echo("\n".join([*lines, "", as_toml(name, proposed, sample), *_rules({item.column for item in proposed})]))


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
    from quietburn.analysis import Request, configured_rules
    from quietburn.classify import missing_fields
    from quietburn.ledger.events import STORED_AS

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

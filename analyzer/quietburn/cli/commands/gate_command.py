"""`quietburn gate`: the two rates of a ledger, and a verdict that ends the CI job."""

import sys
from contextlib import ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import exit_verdicts as verdicts
from quietburn.cli import options
from quietburn.cli.outputs import refuse_overlaps
from quietburn.engine.verdict_columns import CRITERIA
from quietburn.errors import UsageError

if TYPE_CHECKING:
    from quietburn.analysis.run import Request
    from quietburn.common.config import Config
    from quietburn.judge.gate import Asked, Required, Threshold
    from quietburn.report.verdict import GateReport


class Undecided(StrEnum):
    """What a check that its interval doesn't decide counts as."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"


def gate(
    ledgers: options.Ledgers = None,
    min_usable: Annotated[str | None, typer.Option(help="Minimum usable-answer rate, such as 95%.")] = None,
    max_gap: Annotated[str | None, typer.Option(help="Maximum false success: 2xx but not usable.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Ledger from before the change.")] = None,
    max_drop: Annotated[str | None, typer.Option(help="Maximum drop of the usable rate from the baseline.")] = None,
    max_invalid_rise: Annotated[str | None, typer.Option(help="Maximum rise of 4xx (1% with a baseline).")] = None,
    require: Annotated[str | None, typer.Option(help="Criteria that must be measured: on_time,complete,non_empty.")] = None,
    undecided: Annotated[Undecided | None, typer.Option(help="What undecided counts as (default: by its point).")] = None,
    point: Annotated[bool, typer.Option("--point", help="Compare point estimates, ignoring intervals.")] = False,
    acceptance: Annotated[bool, typer.Option("--acceptance", help="Judge a load test at a cap: waits, 429s, retries.")] = False,
    output_format: verdicts.Format = verdicts.VerdictFormat.TEXT,
    output: verdicts.Output = None,
    since: options.Since = None,
    until: options.Until = None,
    last_night: options.LastNight = False,
    tz: options.Zone = None,
    dialect: options.Dialect = None,
    map_file: options.MapFile = None,
    set_: options.Set = None,
    only: options.Only = None,
    skip: options.Skip = None,
    join: options.Join = None,
    config: options.ConfigFile = None,
    max_quarantined: options.MaxQuarantined = "5%",
    quiet: options.Quiet = False,
) -> None:
    """Judge a ledger: exit 0 when it passes, 1 when it fails, 3 when it can't be decided."""
    request = request_from(
        since=since, until=until, last_night=last_night, tz=tz, dialect=dialect, map_file=map_file, settings=set_,
        only=only, skip=skip, config=options.configured(config, whole=True), join=join,
    )
    flags = {"min_usable": min_usable, "max_gap": max_gap, "max_drop": max_drop, "max_invalid_rise": max_invalid_rise}
    asked = _asked(request.config, flags, require, max_quarantined, undecided, point=point, acceptance=acceptance)
    if baseline == "-" and "-" in (ledgers or []):
        raise UsageError("--baseline -: the ledger already is standard input. Write one of them to a file.")
    refuse_overlaps(
        {"--output": output}, [*(ledgers or []), *([baseline] if baseline else [])],
        {"--map": map_file, "--config": request.config.origin},
    )
    report = _run(ledgers or [], baseline, asked, request, quiet=quiet)
    verdicts.deliver(report, output_format, output)
    if output is not None and report.exit_status and not quiet:
        options.say(f"gate {report.verdict}; see {output}.")
    raise typer.Exit(report.exit_status)


def _asked(
    config: "Config", flags: dict[str, str | None], require: str | None, max_quarantined: str,
    undecided: Undecided | None, *, point: bool, acceptance: bool,
) -> "Asked":
    from quietburn.cli.percentages import parse_share
    from quietburn.judge.checks import Manner
    from quietburn.judge.gate import Asked, Threshold
    from quietburn.report.verdict import Verdict

    own = config.gate
    open_ = undecided.value if undecided else own.undecided
    limit = parse_share(max_quarantined, "--max-quarantined")
    return Asked(
        **{name: _threshold(config, name, text) for name, text in flags.items()},
        require=_required(config, require),
        max_quarantined=Threshold(limit, "default" if max_quarantined == "5%" else "--max-quarantined"),
        manner=Manner(Verdict(open_) if open_ else None, point or own.point),
        acceptance=acceptance or own.acceptance,
    )


def _threshold(config: "Config", name: str, text: str | None) -> "Threshold | None":
    from quietburn.cli.percentages import parse_share
    from quietburn.judge.gate import Threshold

    flag = f"--{name.replace('_', '-')}"
    if text is not None:
        return Threshold(parse_share(text, flag), flag)
    configured = getattr(config.gate, name)
    return None if configured is None else Threshold(configured, config.origin or "configuration")


def _required(config: "Config", text: str | None) -> "Required | None":
    from quietburn.common.messages import nearest
    from quietburn.judge.gate import Required

    if text is None:
        return Required(tuple(config.gate.require), config.origin or "configuration") if config.gate.require else None
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = f"there are: {', '.join(CRITERIA)}"
    for name in names:
        if name not in CRITERIA:
            raise UsageError(f"--require {name!r}: no such criterion{nearest(name, CRITERIA)}; {known}.")
    if not names:
        raise UsageError(f"--require: is empty; {known}.")
    return Required(tuple(dict.fromkeys(names)), "--require")


def _run(ledgers: list[str], baseline: str | None, asked: "Asked", request: "Request", *, quiet: bool) -> "GateReport":
    from dataclasses import replace

    from quietburn.analysis.run import analyzing
    from quietburn.cli.progress import progress_bar
    from quietburn.common.timerange import Span
    from quietburn.evaluate.blocks import acceptance_facts
    from quietburn.judge.compare import common_criteria, take_side
    from quietburn.judge.gate import Baseline, decide, refuse_empty, with_baseline

    asked = with_baseline(asked) if baseline else asked
    refuse_empty(asked, has_baseline=baseline is not None)
    command = verdicts.command_line(sys.argv[1:])
    with ExitStack() as open_, progress_bar([*ledgers, *([baseline] if baseline else [])], enabled=not quiet) as advance:
        found = open_.enter_context(analyzing(ledgers, request, advance))
        now = take_side(found.report, found.engine, found.settings)
        facts = acceptance_facts(found.engine) if asked.acceptance else None
        if baseline is None:
            return decide(asked, now, acceptance=facts, command=command)
        # The asked span is the ledger's; a baseline is another night, or another run.
        held = open_.enter_context(analyzing([baseline], replace(request, span=Span()), advance))
        common = common_criteria(held.report, found.report)
        before = take_side(held.report, held.engine, held.settings, common.asked)
        # Where both measure the same, the ledger's own verdicts are those to hold against the baseline.
        after = take_side(found.report, found.engine, found.settings, common.asked) if common.one else now
        return decide(asked, now, Baseline(before, after, common), facts, command)

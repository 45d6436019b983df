"""`quietburn alerts`: alert rules, their promtool tests and the runbook."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quietburn.analysis.request import request_from
from quietburn.cli import options
from quietburn.cli.outputs import refuse_overlaps
from quietburn.errors import ExitStatus, UsageError
from quietburn.records.inputs import label_of

if TYPE_CHECKING:
    from quietburn.alerts.bundle import Bundle, Chosen
    from quietburn.analysis.run import Request


class Target(StrEnum):
    """Form of the rule file."""

    PROMETHEUS = "prometheus"
    OPERATOR = "operator"


def alerts(
    ledgers: options.Ledgers = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("quietburn-alerts"),
    target: Annotated[Target, typer.Option(help="operator adds a PrometheusRule resource.")] = Target.PROMETHEUS,
    runbook_url: Annotated[str | None, typer.Option(help="Base URL of the published runbook pages.")] = None,
    dashboard_url: Annotated[str | None, typer.Option(help="URL of the dashboard that the alerts link to.")] = None,
    team: Annotated[str | None, typer.Option(help="Value of the label `team` on every alert.")] = None,
    objective: Annotated[str, typer.Option(help="Objective for the usable-answer rate.")] = "99%",
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if the folder is out of date.")] = False,
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Write without promtool; nothing is proven.")
    ] = False,
    tz: options.Zone = None,
    dialect: options.Dialect = None,
    map_file: options.MapFile = None,
    set_: options.Set = None,
    only: options.Only = None,
    skip: options.Skip = None,
    config: options.ConfigFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write alert rules, their promtool tests and the runbook, with numbers from a ledger if one is given."""
    from quietburn.alerts.bundle import BESIDE_THE_RUNBOOK, build_bundle
    from quietburn.alerts.groups import Options

    request = request_from(
        tz=tz, dialect=dialect, map_file=map_file, settings=set_, only=only, skip=skip,
        config=options.configured(config, quiet=quiet),
    )
    inputs = {"--map": map_file, "--config": request.config.origin}
    refuse_overlaps({"--out": out}, ledgers or [], inputs)
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: is not a folder. Name a folder.")
    refuse_overlaps(_named(out, BESIDE_THE_RUNBOOK), ledgers or [], inputs)
    chosen, origin, errored = _chosen(ledgers or [], request)
    made = Options(
        target=target.value, runbook_url=_url(runbook_url, "--runbook-url"), dashboard_url=_url(dashboard_url, "--dashboard-url"),
        team=team, objective=_objective(objective),
    )
    bundle = build_bundle(chosen, made, origin)
    errored |= {fault.rule: fault.problem for fault in bundle.failed}
    if check:
        _check(bundle, out, quiet=quiet)
        _exit_for(errored)
        return
    if not unproven:
        _prove(bundle)
    refuse_overlaps(_named(out, bundle.files), ledgers or [], inputs)
    _write(bundle, out)
    if not quiet:
        proof = "NOT proven: run `promtool test rules` on them" if unproven else "proven by promtool"
        sys.stderr.write(f"quietburn: {len(bundle.files)} files in {out}, {proof}.\n")
        for name in bundle.surplus(out) if not errored else ():  # the page of a rule that failed is wanted again
            sys.stderr.write(f"quietburn: {out / name} belongs to an alert that no longer exists; remove it.\n")
    _exit_for(errored)


def _exit_for(errored: dict[str, str]) -> None:
    """End in status 3 where rules failed: their alerts are left out."""
    for rule, problem in errored.items():
        sys.stderr.write(f"quietburn: rule {rule} failed, so its alert is left out: {problem}.\n")
    if errored:
        raise typer.Exit(ExitStatus.UNDECIDED)


def _named(out: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return files of the output folder by what a message calls them: the flag with the file's own path."""
    return {f"--out {label_of(str(out / name))}": out / name for name in names}


def _prove(bundle: "Bundle") -> None:
    from quietburn.alerts.bundle import prove_bundle
    from quietburn.alerts.promtool import NoPromtoolError

    try:
        prove_bundle(bundle)
    except NoPromtoolError as problem:
        raise UsageError(f"{problem} Nothing was written. Use --unproven to write without proof.") from None


def _chosen(ledgers: list[str], request: "Request") -> tuple["Chosen", list[str], dict[str, str]]:
    """Return the rules with their numbers, where these come from for the header, and why rules failed on the ledger."""
    from quietburn.analysis.run import analyzing, configured_rules

    if not ledgers:
        origin = "No ledger was given: the numbers are rule defaults and configured values."
        return configured_rules(request), [origin], {}
    with analyzing(ledgers, request) as analysis:
        ledger = analysis.report.ledger
        names = ", ".join(file.path for file in ledger.files)
        span = f"{ledger.first_ts} to {ledger.last_ts}" if ledger.first_ts else "no times"
        errored = {entry.rule: entry.problem for entry in analysis.report.errored}
        chosen = [(rule, values) for rule, values in analysis.rules if rule.id not in errored]
        return chosen, [f"Numbers that depend on the ledger come from it: {names} ({span})."], errored


def _url(address: str | None, flag: str) -> str | None:
    if address is not None and not address.startswith(("https://", "http://")):
        raise UsageError(f"{flag} {address!r}: write an absolute URL that begins with https://.")
    return address


def _objective(text: str) -> float:
    from quietburn.cli.percentages import parse_share

    share = parse_share(text, "--objective")
    if not 0 < share < 1:
        raise UsageError(f"--objective {text!r}: write a share between 0 and 100 %, such as 99%.")
    return share


def _check(bundle: "Bundle", out: Path, *, quiet: bool) -> None:
    stale, surplus = bundle.stale(out), bundle.surplus(out)
    if not quiet and stale:
        sys.stderr.write(f"quietburn: out of date in {out}: {', '.join(stale)}. Run the command without --check.\n")
    if not quiet and surplus:
        sys.stderr.write(f"quietburn: no longer belongs to any alert in {out}: {', '.join(surplus)}. Remove them.\n")
    if stale or surplus:
        raise typer.Exit(ExitStatus.FINDINGS)


def _write(bundle: "Bundle", out: Path) -> None:
    from quietburn.alerts.bundle import ALERTS, OPERATOR, TESTS
    from quietburn.cli.written import replace_set
    from quietburn.records.inputs import os_words

    try:
        replace_set(out, bundle.files, [name for name in (ALERTS, TESTS, OPERATOR) if name in bundle.files])
    except OSError as problem:
        raise UsageError(f"--out {out}: can't be written ({os_words(problem)}).") from None

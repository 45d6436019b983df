"""Whether a run at a chosen cap is accepted (seed 003): queue waits, the upstream's 429s, retries."""

from collections.abc import Iterator

from quietburn.evaluate.blocks import AcceptanceFacts
from quietburn.judge.checks import plain, unmeasured
from quietburn.report.verdict import CheckReport
from quietburn.report.words import percent

ADVICE = "Acceptance failed: halve the cap before you change anything else."
FEWEST_WAITS, FEWEST_MINUTES = 300, 30.0  # with 299 waits the largest is over the p99 in 95 of 100 runs
MOST_UPSTREAM_429 = 0.01


def acceptance_checks(facts: AcceptanceFacts) -> Iterator[CheckReport]:
    """Yield whether the run's waits, its 429s of the upstream and its retries accept the cap."""
    yield _waits(facts)
    yield _upstream_429(facts)
    yield _retry_floor(facts)


def _waits(facts: AcceptanceFacts) -> CheckReport:
    name = "acceptance_queue_wait"
    if facts.waits < FEWEST_WAITS or facts.minutes < FEWEST_MINUTES or facts.wait_share_p99 is None:
        return unmeasured(
            name,
            f"the p99 queue wait needs at least {FEWEST_WAITS} waits with a deadline over at least {FEWEST_MINUTES:g} "
            f"minutes; there are {facts.waits:,} over {facts.minutes:,.0f} (log queue_age_ms and deadline_ms)",
        )
    says = (
        f"p99 of {facts.waits:,} queue waits is {facts.wait_p99_ms:,.0f} ms, {percent(facts.wait_share_p99)} of the deadline; "
        "it must be under 100 %"
    )
    return plain(name, facts.wait_share_p99, 1.0, says, good=facts.wait_share_p99 < 1.0)


def _upstream_429(facts: AcceptanceFacts) -> CheckReport:
    name = "acceptance_upstream_429"
    if not facts.sent:
        return unmeasured(name, "no attempt went upstream", MOST_UPSTREAM_429)
    share = facts.upstream_429 / facts.sent
    says = (
        f"the upstream answered {facts.upstream_429:,} of {facts.sent:,} attempts with 429 ({percent(share)}); "
        f"it must stay under {percent(MOST_UPSTREAM_429)}"
    )
    return plain(name, share, MOST_UPSTREAM_429, says, good=share < MOST_UPSTREAM_429)


def _retry_floor(facts: AcceptanceFacts) -> CheckReport:
    name = "acceptance_retry_floor"
    if not facts.retries_told:
        return unmeasured(name, "attempts were refused, but retries can't be identified: log request_id", 0.0)
    if facts.refusals and not facts.hinted:
        says = f"{facts.refusals:,} refused attempts were retried, but none has a Retry-After: log retry_after_s"
        return unmeasured(name, says, 0.0)
    says = f"{facts.early_retries:,} of {facts.hinted:,} retries came before their Retry-After; none may"
    return plain(name, float(facts.early_retries), 0.0, says, good=not facts.early_retries)

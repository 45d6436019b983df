"""Where each parameter of the older rules turns, worked out by hand from the ledgers of fixtures/rules/cases.

A new rule's edges stand in its case.
"""

from fractions import Fraction

from fixtures.rules.edges import INFO, PAGE, QUIET, TICKET, Edge
from fixtures.rules.edges import at_least as _at_least
from fixtures.rules.edges import at_most as _at_most
from fixtures.rules.edges import more_than as _more_than
from fixtures.rules.edges import under as _under

__all__ = ["EDGES", "QUIET", "Edge"]

EDGES: dict[str, tuple[Edge, ...]] = {
    "cache-busting-prefix": (
        # by-a-hair: thirty requests in minute 10, five of them noisy. One waits 300 ms, the others 200; CPU 24 %.
        _at_least("min_requests", "by-a-hair", "30", PAGE),
        _at_most("wait_ms", "by-a-hair", "200", PAGE),
        _at_most("waiting_share", "by-a-hair", "1/30", PAGE),
        _under("max_cpu_pct", "by-a-hair", "24", PAGE),
        _at_least("min_noisy", "by-a-hair", "5", PAGE),
        _at_least("noisy_share", "by-a-hair", "5/30", PAGE),
        # never-cached: the windows of 15 to 17 hold five minutes of five requests and two of the load test's.
        # All wait 5 ms, so that all of them wait once 4 ms are a wait.
        _at_least("min_requests", "never-cached", "35", TICKET),
        Edge("waiting_share", "never-cached", Fraction(1), QUIET, TICKET, TICKET, settings={"wait_ms": 4}),
        _under("max_cpu_pct", "never-cached", "12", TICKET),
        # 60 of 1,000 prompt tokens are cached. Of 20 fingerprints 16 are new, and the first of four that are alike.
        _under("cached_share", "cached-6-percent", "6/100", TICKET, ledger="quiet"),
        _at_least("new_share", "85-percent-new", "17/20", TICKET, ledger="quiet"),
        # long-prompts: five requests a minute in five minutes, 4,000 prompt tokens for 50 of completion, 5 ms each.
        _at_least("min_requests", "long-prompts", "25", INFO),
        Edge("waiting_share", "long-prompts", Fraction(1), QUIET, INFO, INFO, settings={"wait_ms": 4}),
        _under("max_cpu_pct", "long-prompts", "12", INFO),
        _at_least("prompt_ratio", "long-prompts", "4000/50", INFO),
        _at_least("new_share", "85-percent-new-and-no-cache-told", "17/20", INFO, ledger="quiet"),
    ),
    "capacity-shrank": (
        # at-the-cap: eight run at once, nobody's wait is long.
        _at_least("inflight_cap", "at-the-cap", "8", TICKET),
        # worker-lost: eleven minutes of 20 and eleven of 8 answers; every one waited 3,000 ms.
        _more_than("wait_ms", "worker-lost", "3000", TICKET),
        _at_least("min_minutes", "worker-lost", "11", TICKET),
        _under("least_of_before", "worker-lost", "8/20", TICKET),
        # slower-tokens: 200 and 100 tokens a second, with prompts of 500 and 600.
        _under("least_pace", "slower-tokens", "1/2", TICKET),
        _at_most("longer_prompts", "slower-tokens", "6/5", TICKET),
        # Three of 18 wait in each earlier minute, one of 6 in each later one; 18 and 6 answers a minute.
        _more_than("waiting_share", "one-in-six-waits", "1/6", TICKET, ledger="quiet"),
    ),
    "clock-skew": (
        # Each second attempt starts at 100.6 s by its own clock, 90.1 s after the first one ended.
        _more_than("min_skew_s", "ninety-seconds-ahead", "90.1", TICKET),
    ),
    "cpu-without-traffic": (
        # by-a-hair: 50 calls of 14 tokens in minute 10; two wait 400 ms, the others 5; CPU 80 %.
        _at_least("cpu_pct", "by-a-hair", "80", TICKET),
        _at_most("max_attempts", "by-a-hair", "50", TICKET),
        _at_most("wait_ms", "by-a-hair", "5", TICKET),
        _at_most("waiting_share", "by-a-hair", "2/50", TICKET),
        _under("max_completion", "by-a-hair", "700", TICKET),
    ),
    "empty-but-billed": (
        # one-in-68: four empty answers of 272 in one minute. Four are too few for a ticket.
        _at_least("min_empty", "one-in-68", "4", PAGE, INFO),
        _at_least("empty_share", "one-in-68", "4/272", PAGE, INFO),
        # Five in 49 minutes, never three in fifteen; five of 600 in one minute.
        _at_least("min_empty_hour", "every-twelve-minutes", "5", TICKET, INFO),
        _at_least("hour_share", "under-one-percent", "5/600", TICKET, INFO),
    ),
    "eval-shares-serving-path": (
        # nightly: two noisy ones a minute in 10 to 13; two users a minute in 8 to 15. One hour holds all of them.
        _at_least("min_noisy", "nightly", "8", TICKET),
        _at_least("min_users", "nightly", "16", TICKET),
        # Three noisy and 33 clean ones in one minute.
        _at_least("noisy_share", "one-in-twelve", "3/36", TICKET, ledger="quiet"),
    ),
    "failover-never-called": (
        # listed-never-seen: four late of seven answers in minute 10.
        _at_least("min_answers", "listed-never-seen", "7", PAGE),
        _more_than("late_share", "listed-never-seen", "4/7", PAGE),
        # seen-an-hour-ago: two late answers a minute in 70 to 74, so at most ten in a window.
        _at_least("min_answers", "seen-an-hour-ago", "10", TICKET),
        # The other's last minute ends at 11. The first window with five late answers ends at 73, so it begins
        # after 68; the hours are counted up to the end of the window and leave out its last minute: 11 + 63 > 73.
        _at_most("seen_within_h", "seen-an-hour-ago", "63/60", TICKET),
    ),
    "failover-starved": (
        # Ten answers tell how long gpu-b takes.
        _at_least("min_answers", "starved", "10", TICKET),
    ),
    "failover-too-late": (
        # One a minute in 10 to 13: four in fifteen minutes and in an hour. Three in 41 minutes.
        _at_least("min_late", "after-the-deadline", "4", PAGE, INFO),
        _at_least("min_late", "every-twenty-minutes", "3", TICKET, INFO),
        # The first attempt took 1,300 of 2,000 ms.
        _more_than("used_share", "every-twenty-minutes", "1300/2000", TICKET),
    ),
    "healthy-but-silent": (
        # Five failures beside three probes.
        _at_least("min_attempts", "labelled-probes", "5", PAGE),
    ),
    "hopeless-admission": (
        # The one with least time had 200 ms.
        _under("min_slack_ms", "too-late", "200", TICKET),
    ),
    "late-but-200": (
        # retried: six late ones, and nobody else. burst: 16 of 27 at 24 and 25; no hour is as bad.
        _at_least("min_late", "retried", "6", PAGE, TICKET),
        _at_least("late_share", "burst", "16/27", PAGE),
        # seven-percent: 7 late among the hour's 250, 2.8 %, which is no ticket.
        _at_least("hour_share", "seven-percent", "7/250", PAGE),
        # trickle: four in an hour at most; at 78 three of 22.
        _at_least("min_late_hour", "trickle", "4", TICKET),
        _at_least("late_share", "trickle", "3/22", TICKET),
    ),
    "noise-reject-retried": (
        # Sent at 5 s and at 45 s.
        _at_most("within_s", "no-id", "40", TICKET),
    ),
    "over-envelope": (
        # At most twelve ran when one was admitted.
        _at_least("inflight_cap", "over", "12", TICKET),
    ),
    "oversized-prompt": (
        _more_than("max_prompt_tokens", "by-one-token", "1501", TICKET),
    ),
    "past-the-knee": (
        # sweep: three minutes a level; from 8 to 32 (8 x (1 + 3)) it is 1,000 and 3,300 ms.
        # From 1 on it is twice as many tokens, so that nothing else can be the knee.
        _at_least("min_minutes", "sweep", "3", TICKET),
        _at_least("more_inflight", "sweep", "3", TICKET),
        _at_least("latency_factor", "sweep", "3300/1000", TICKET),
        # 3.3 times the latency for four times as many.
        _at_least("latency_share", "sweep", "33/40", TICKET),
        _at_least("min_answers", "sweep", "10", TICKET),
        # some-fail: one of eleven.
        _at_most("most_failed", "some-fail", "1/11", TICKET),
        # 400 and 450 tokens a second.
        _under("less_gain", "twelve-percent-more", "50/400", TICKET, ledger="quiet"),
    ),
    "probe-spend-share": (
        # lab-probes: 60 probes of 72 tokens in the hour, 4,320: 5 % of 86,400, and 8.64 % of 50,000.
        _more_than("hourly_token_cap", "lab-probes", "86400", PAGE, ledger="adapter-fires"),
        _more_than("share_of_cap", "lab-probes", "4320/50000", PAGE, ledger="adapter-fires"),
        # probes-all-night: 60 probes of 525 tokens. share-4.6-percent: 26 of 500 tokens, and 30 users of 9,000.
        _more_than("min_tokens", "probes-all-night", "31500", PAGE, TICKET),
        _more_than("share_of_tokens", "share-4.6-percent", "13000/283000", PAGE, ledger="quiet"),
        # an-idle-night: 20 probes beside an evening's 1,320,000 tokens.
        _more_than("share_of_six_hours", "an-idle-night", "10500/1330500", PAGE, ledger="quiet"),
        # two-in-a-hundred: 48 probes, and 30 users of 41,160 tokens.
        _more_than("ticket_tokens", "two-in-a-hundred", "25200", TICKET),
        _more_than("ticket_share", "two-in-a-hundred", "25200/1260000", TICKET),
    ),
    "queue-cause-unclear": (
        # no-outcomes: nine of twelve waited 3,000 ms. busy-without-output: as many, at 92 % CPU.
        _at_least("min_requests", "no-outcomes", "12", TICKET),
        _more_than("wait_ms", "no-outcomes", "3000", TICKET),
        _more_than("waiting_share", "no-outcomes", "9/12", TICKET),
        _at_least("min_unanswered", "busy-without-output", "9", TICKET),
        _at_least("busy_cpu_pct", "busy-without-output", "92", TICKET),
        # no-outcomes: 50 % CPU.
        _at_least("idle_cpu_pct", "no-outcomes", "50", TICKET),
    ),
    "queue-over-budget": (
        # by-a-hair: 6 of 400 waited 500 of 1,000 ms.
        _at_least("min_over", "by-a-hair", "6", TICKET),
        _more_than("over_share", "by-a-hair", "6/400", TICKET),
        _more_than("budget_share", "by-a-hair", "500/1000", TICKET),
    ),
    "queue-wait-past-deadline": (
        # by-a-hair: 4 of 272 waited too long.
        _at_least("min_past", "by-a-hair", "4", PAGE),
        _more_than("past_share", "by-a-hair", "4/272", PAGE),
    ),
    "readiness-gap": (
        # Twenty minutes of a check every ten seconds. Five whole minutes are without: 30 periods.
        _at_least("min_checks", "it-hangs", "120", TICKET),
        _at_least("periods", "it-hangs", "30", TICKET),
    ),
    "retry-below-floor": (
        # 9.9 s waited where ten were named.
        _more_than("tolerance_ms", "tenth-of-a-second", "100", TICKET),
        # Started 30 ms before the refusal ended; with less tolerance it can't have known of it.
        Edge("tolerance_ms", "at-the-same-time", Fraction(30), QUIET, TICKET, TICKET, ledger="quiet", step=0.001),
    ),
    "retry-cap-exceeded": (
        # Four attempts are three retries, and three are not more than three.
        _more_than("max_retries", "four-attempts", "3", TICKET),
        # storm: five minutes of 16 retries and 8 first attempts.
        _at_least("min_retries", "storm", "80", TICKET),
        _at_least("amplification", "storm", "24/8", TICKET),
    ),
    "retry-herd": (
        # six-at-once: 40 ms apart, so five of them within 160. The ledger's times count in microseconds.
        _at_least("min_retries", "six-at-once", "6", PAGE),
        Edge("spread_ms", "six-at-once", Fraction(160), QUIET, PAGE, PAGE, step=0.001),
        # Tried elsewhere 100 ms after the failure: a failover while that is one instant.
        Edge("spread_ms", "at-once-to-another-backend", Fraction(100), PAGE, QUIET, QUIET, ledger="quiet", step=0.001),
        # on-a-busy-gateway: thirteen from 20.25 s on. Around, from 15.375 to 25.375 s, are nineteen steady ones (15.75 to
        # 24.75) and the twelve: 31 in ten seconds, 0.775 in 250 ms, and 13 / 0.775 = 520 / 31.
        Edge("times_usual", "on-a-busy-gateway", Fraction(520, 31), PAGE, PAGE, QUIET),
        # six-at-once: five after the first where the ten seconds would put one, 0.025 in 250 ms, of which a night of twelve
        # hours has 172,800: (e x 0.025 / 5)^5 x 0.025 x 172,800, and nine digits less for the engine's own rounding.
        Edge("by_chance", "six-at-once", Fraction(2.0035776458812068e-06), QUIET, QUIET, PAGE),
    ),
    "saturation": (
        # fifteen-requests: four of fifteen waited 3,000 ms, and were served.
        _at_least("min_requests", "fifteen-requests", "15", PAGE),
        _more_than("wait_ms", "fifteen-requests", "3000", PAGE),
        _more_than("waiting_share", "fifteen-requests", "4/15", PAGE),
    ),
    "server-cache-miss": (
        # cache-off: twelve misses of prompts of 2,000 tokens, and four hits before the last of them.
        _at_least("min_misses", "cache-off", "12", TICKET),
        _at_least("miss_share", "cache-off", "12/16", TICKET),
        _at_least("min_prompt_tokens", "cache-off", "2000", TICKET),
        _at_most("within_min", "every-seventeen-minutes", "17", TICKET, ledger="quiet"),
    ),
    "short-starved-by-long": (
        # Eight a minute for three minutes beside a long one, waiting 600 ms; 50 ms without.
        _at_least("min_short", "behind-the-long", "24", TICKET),
        _more_than("wait_ms", "behind-the-long", "600", TICKET),
        _more_than("times_longer", "behind-the-long", "600/50", TICKET),
        _at_least("min_waiting", "behind-the-long", "24", TICKET),
        # 9,000 tokens, and a median of 500.
        _at_least("times_median", "behind-the-long", "18", TICKET),
        # eighteen-without: six a minute without; beside a long one twelve wait 400 ms and twelve 800.
        _at_least("min_short", "eighteen-without", "18", TICKET, ledger="quiet"),
        Edge("wait_ms", "eighteen-without", Fraction(600), TICKET, QUIET, QUIET, ledger="quiet", settings={"min_short": 18}),
    ),
    "slack-drained": (
        # by-a-hair: 6 of 10 had 900 ms left.
        _at_least("min_low", "by-a-hair", "6", PAGE),
        _more_than("low_share", "by-a-hair", "6/10", PAGE),
        _under("slack_ms", "by-a-hair", "900", PAGE),
    ),
    "slow-ready": (
        # by-a-hair: 4 of 15 took 600 ms.
        _at_least("min_slow", "by-a-hair", "4", PAGE),
        _at_least("slow_share", "by-a-hair", "4/15", PAGE),
        _more_than("slow_ms", "by-a-hair", "600", PAGE),
    ),
    "slow-refusal": (
        # by-a-hair: 6 of 80 took 800 of 2,000 ms.
        _at_least("min_slow", "by-a-hair", "6", TICKET),
        _at_least("slow_share", "by-a-hair", "6/80", TICKET),
        _more_than("deadline_part", "by-a-hair", "800/2000", TICKET),
    ),
    "stuck-worker": (
        # fifteen-requests: four of fifteen waited 3,000 ms, at 8 % CPU.
        _at_least("min_requests", "fifteen-requests", "15", PAGE),
        _more_than("wait_ms", "fifteen-requests", "3000", PAGE),
        _more_than("waiting_share", "fifteen-requests", "4/15", PAGE),
        _at_least("min_unanswered", "fifteen-requests", "4", PAGE),
        _under("busy_cpu_pct", "cpu-50", "50", PAGE),
        _under("idle_cpu_pct", "only-health-checks-tell", "20", PAGE),
    ),
    "success-hides-outage": (
        # seven-percent: seven in one minute. green-dashboard: 18 of 64 at the worst.
        _at_least("min_false", "seven-percent", "7", PAGE),
        _at_least("false_share", "green-dashboard", "18/64", PAGE),
    ),
    "tokens-unattributed": (
        # by-a-hair: 1,500 of 10,200.
        _at_least("min_tokens", "by-a-hair", "1500", TICKET),
        _more_than("unlabelled_share", "by-a-hair", "1500/10200", TICKET),
    ),
    "tokens-without-users": (
        # in-one-minute: probes spent 1,800 of 2,400.
        _at_least("min_tokens", "in-one-minute", "2400", PAGE),
        _at_least("probe_share", "in-one-minute", "1800/2400", PAGE),
        # 2,400 beside an evening's 400,000.
        _more_than("share_of_six_hours", "an-idle-night", "2400/402400", PAGE, ledger="quiet"),
    ),
    "truncated-as-success": (
        # As with empty answers: four of 272 in one minute, five in 49 minutes, five of 600.
        _at_least("min_truncated", "one-in-68", "4", PAGE, INFO),
        _at_least("truncated_share", "one-in-68", "4/272", PAGE, INFO),
        _at_least("min_truncated_hour", "every-twelve-minutes", "5", TICKET, INFO),
        _at_least("hour_share", "under-one-percent", "5/600", TICKET, INFO),
    ),
    "unlabelled-probe": (
        # Twelve calls ten seconds apart.
        _at_least("min_attempts", "every-ten-seconds", "12", TICKET),
        _at_least("min_periods", "every-ten-seconds", "12", TICKET),
        _at_least("min_period_s", "every-ten-seconds", "10", TICKET),
        _at_most("max_period_s", "every-ten-seconds", "10", TICKET),
        # with-breaks: 21 of 23 gaps are five seconds; folded by two pods or more each break costs two gaps or more.
        _at_least("steady_share", "with-breaks", "21/23", TICKET),
        # Gaps of 7.5, 10 and 12.5 s.
        _at_most("tolerance", "a-quarter-off", "25/100", TICKET, ledger="quiet"),
        # Gaps of 3, 9 and 8 s, where three pods of 20 s would be 6.67 s apart.
        _at_least("min_phase", "three-pods", "45/100", TICKET),
        # 12 to 15 tokens: 15 / 3.75 is 4, which begins the next band.
        _under("token_band", "answers-vary", "15/4", TICKET),
    ),
    "upstream-shed-rate": (
        # by-a-hair: 4 of 272.
        _at_least("min_shed", "by-a-hair", "4", TICKET),
        _at_least("shed_share", "by-a-hair", "4/272", TICKET),
    ),
    "usage-missing": (
        # by-a-hair: 6 of 80.
        _at_least("min_missing", "by-a-hair", "6", TICKET),
        _more_than("missing_share", "by-a-hair", "6/80", TICKET),
    ),
    "work-for-nobody": (
        # by-a-hair: 4 of 55 attempts, 400 tokens each; 300 of them after the deadline.
        _at_least("min_attempts", "by-a-hair", "4", TICKET),
        _at_least("min_tokens", "by-a-hair", "1200", TICKET),
        _at_least("tokens_share", "by-a-hair", "1200/22000", TICKET),
    ),
}

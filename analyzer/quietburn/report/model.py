"""The report: one model; every output format is a view of it, and no view computes."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 2
Number = float | int
Pair = tuple[float, float]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)  # a reader of the contract must bear added fields


class UnknownKey(_Frozen):
    """A key that the dialect doesn't know: how many lines hold it, and the first."""

    key: str
    lines: int
    file: str
    first_line: int


class FileReport(_Frozen):
    """What became of one file's lines; `events` is more than `used` where a line holds several.

    `bad_items` are events refused within used lines: no line is refused for them. `other_items` are
    items that are no requests, where a line holds several.
    """

    path: str
    dialect: str
    detected_because: str
    lines: int
    used: int
    events: int
    quarantined: int
    not_a_request: int
    not_a_request_kinds: dict[str, int]
    blank: int
    duplicates: int
    bad_items: int
    other_items: int


class SameTrafficReport(_Frozen):
    """Two logs that share calls: `shared` of the `calls` of the one with fewer, told by ids or by times.

    `left_out` is in no rate, wholly or as far as its calls stand in `judged`; null where both count.
    `other_status` and `other_end` count calls of one id on which the two contradict each other.
    """

    judged: str
    other: str
    left_out: Literal["whole", "shared calls"] | None
    shared: int
    calls: int
    by: str
    other_status: int
    other_end: int


class LedgerReport(_Frozen):
    """What became of all lines: lines = used + not_a_request + duplicates + quarantined + blank.

    Where records are not lines (a JSON array, pretty-printed objects), `lines` counts records, and
    `physical_lines` the lines that they stand on. `reshipped` counts the duplicates that differ in
    keys of which no column is made; `reshipped_keys` in how many of them each key differs, as far as
    the ledgers can be read again. `same_call` counts used lines that are the other end of a call that
    stands in another line: they are in no rate.
    """

    files: list[FileReport]
    lines: int
    physical_lines: int
    used: int
    events: int
    quarantined: int
    not_a_request: int
    not_a_request_kinds: dict[str, int]
    blank: int
    duplicates: int
    bad_items: int
    other_items: int
    reshipped: int
    reshipped_keys: dict[str, int]
    same_call: int
    same_traffic: list[SameTrafficReport]
    conflicting_ids: int
    invalid_values: int
    coerced: int
    unknown_keys: list[UnknownKey]  # the first 200
    unknown_keys_in_all: int
    first_ts: str | None
    last_ts: str | None


class CriterionReport(_Frozen):
    """The share of 2xx attempts that answer a criterion, and whether that is half of them or more."""

    measured: bool
    coverage: float | None


class TokensReport(_Frozen):
    """Tokens spent by calls of every kind; `wasted` is the part spent without a usable answer.

    Each sum stands with its coverage: the share of the calls behind it that say how many they took. `completion_only`
    and `prompt_only` are in no other sum: they come from lines that leave the other part and the total out.
    """

    all: Number | None
    coverage: float | None
    wasted: Number | None
    wasted_coverage: float | None
    probe: Number | None
    probe_coverage: float | None
    by_traffic: dict[str, Number]
    coverage_by_traffic: dict[str, float | None]
    completion_only: Number
    prompt_only: Number


class TrafficReport(_Frozen):
    """Attempts of one traffic class at the generate route."""

    traffic: str
    attempts: int
    successes: int


class IntervalReport(_Frozen):
    """An interval, how it was made, and its design effect where blocks were resampled.

    `level` is 0.95, or null where a few incidents made the share: then the interval is for this
    ledger's nights, and nights with an incident vary more.
    """

    low: float
    high: float
    level: float | None
    incidents: int
    method: str
    blocks: int
    design_effect: float | None


class AnswersReport(_Frozen):
    """2xx attempts that were logged alike (`stream` is null where no line says), and what can be told of them."""

    dialect: str
    stream: bool | None
    answered: int
    criteria: dict[str, CriterionReport]


class RatesReport(_Frozen):
    """The two rates side by side; what can't be measured is null.

    valid = requests - invalid - abandoned, judged = valid - unknown; success_rate is over attempts
    whose outcome is known, usable_rate and false_success_share over judged requests. Bounds hold a
    rate whatever the unknown ones were. `unproven` counts usable requests of which a criterion can't
    be told, `unproven_streamed` those of them that were streamed. `usable_rate_interval95` is null where `usable_interval` is
    none of 95 %. requests_with_2xx = the sum of verdicts_with_2xx.
    """

    attempts: int
    successes: int
    outcome_unknown: int
    success_rate: float | None
    success_rate_bounds: Pair | None
    requests: int
    valid: int
    judged: int
    judged_share: float | None
    usable: int
    unknown: int
    unproven: dict[str, int]
    unproven_streamed: dict[str, int]
    usable_rate: float | None
    usable_rate_of_all: float | None
    usable_rate_bounds: Pair | None
    usable_rate_interval95: Pair | None
    usable_interval: IntervalReport | None
    false_success_share: float | None
    verdicts: dict[str, int]
    verdicts_with_2xx: dict[str, int]
    requests_with_2xx: int
    abandoned_with_2xx: int
    errors_in_band: int
    not_an_answer: int
    request_success_rate: float | None
    amplification: float | None
    length_limited: int
    tokens: TokensReport
    by_traffic: list[TrafficReport]
    criteria: dict[str, CriterionReport]
    criteria_by_dialect: dict[str, dict[str, CriterionReport]]
    answers: list[AnswersReport]


class LeftOutReport(_Frozen):
    """Events in neither rate: of one kind, at one route or at paths that differ only in what looks like an id.

    `statuses` counts them by HTTP status ("none" where there was none); `tokens` is null where none says.
    """

    pattern: str
    kind: str
    events: int
    statuses: dict[str, int]
    tokens: Number | None
    file: str
    first_line: int


class FailureDomainReport(_Frozen):
    """Failed attempts of one kind, and what that kind wants."""

    domain: str
    attempts: int
    action: str


class WindowReport(_Frozen):
    """A span of time, UTC, half open."""

    start: str
    end: str


class EvidenceReport(_Frozen):
    """A line that counts against the subject; `item` is which of its events, where it holds several."""

    file: str
    line: int
    item: int | None = None


class FindingReport(_Frozen):
    """One contradiction: what was observed, what it may mean, what to do first.

    It is `likely` where the signals that corroborate its cause are there, or its rule asks for none.
    """

    rule: str
    title: str
    severity: str
    confidence: Literal["likely", "possible"]
    window: WindowReport
    alert_window: WindowReport
    subject: dict[str, str]
    observed: dict[str, Number | bool | None]
    top: list[dict[str, str | Number | None]]
    inference: str
    action: str
    count: int
    evidence: list[EvidenceReport]


class IncidentReport(_Frozen):
    """Findings that overlap in time and share a cause: what happened once.

    `findings` are places in the report's findings, from 0, the cause first; `rule` and `title` are the
    cause's, `severity` is the worst. What it cost and who was behind it is counted over all events that
    match, each once, not over the evidence shown; `tokens` is null where no event says how many.
    """

    rule: str
    title: str
    severity: str
    window: WindowReport
    subjects: list[dict[str, str]]
    requests_not_served: int
    tokens: Number | None
    who: list[dict[str, str | Number | None]]
    findings: list[int]


class NotEvaluatedReport(_Frozen):
    """A rule that could not be told, and the fields that are missing."""

    rule: str
    missing: list[str]


class UnlockReport(_Frozen):
    """Fields that, once logged, let so many rules be told, and which.

    `paste` is what the log's format lacks for them, by dialect of the run; `logged_already` names
    those that it has all keys for, though no line gives a value.
    """

    fields: list[str]
    rules: int
    rule_ids: list[str] = Field(default_factory=list)
    paste: dict[str, str] = Field(default_factory=dict)
    logged_already: list[str] = Field(default_factory=list)


class ErroredReport(_Frozen):
    """A rule that failed; it found neither something nor nothing."""

    rule: str
    problem: str


class QuarantineReport(_Frozen):
    """A refused line."""

    file: str
    line: int
    offset: int
    length: int
    code: str
    reason: str


class BadItemReport(_Frozen):
    """An item that was refused within a line that was used."""

    file: str
    line: int
    item: int
    code: str
    reason: str


class InvalidValueReport(_Frozen):
    """A field that became unknown."""

    file: str
    line: int
    field: str
    reason: str


class ThresholdReport(_Frozen):
    """A number that is not its rule's default, and where it comes from."""

    rule: str
    parameter: str
    value: float | None
    origin: str


class Report(_Frozen):
    """The report of `quietburn analyze`.

    `quarantine` has the first 200 refused lines (`--quarantine FILE` all of them), `quarantine_codes`
    how many were refused for each code; `invalid` the first 200 values that became unknown.
    """

    schema_version: Annotated[int, Field(json_schema_extra={"const": SCHEMA_VERSION})] = SCHEMA_VERSION
    ledger: LedgerReport
    rates: RatesReport
    left_out: list[LeftOutReport]
    failure_domains: list[FailureDomainReport]
    incidents: list[IncidentReport]
    findings: list[FindingReport]
    quiet: list[str]
    not_evaluated: list[NotEvaluatedReport]
    unlock: list[UnlockReport]
    errored: list[ErroredReport]
    quarantine: list[QuarantineReport]
    quarantine_codes: dict[str, int]
    bad_items: list[BadItemReport]
    invalid: list[InvalidValueReport]
    thresholds: list[ThresholdReport]
    notices: list[str]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text report, as HTML."""
        from quietburn.report.notebook import as_html

        return as_html(self)

    @property
    def counted_refused(self) -> int:
        """Return how many refused lines a limit counts: a last line that is still being written is no fault."""
        return sum(count for code, count in self.quarantine_codes.items() if code != "incomplete_last_line")

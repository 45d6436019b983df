"""What each derived column of `events` means: written once, beside the types in `derive.DERIVED`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """What a column says, in a sentence; `unit` is "" where there is none."""

    text: str
    unit: str = ""


MEANINGS = {
    "dialect": Meaning("name of the dialect that the line was read by"),
    "kind": Meaning("purpose of the call: generate, ready, embed, list, tool or other"),
    "event_id": Meaning("identifies the event within a run; two events of one line have different ids"),
    "file_id": Meaning("place of the file among the files read, from 0"),
    "line": Meaning("line number in its file, from 1"),
    "item": Meaning("position of the event in its line, if the line has several; otherwise NULL"),
    "request_key": Meaning(
        "identifies the request: all attempts of one logical request share it; NULL for an attempt without an id"
    ),
    "request_started_us": Meaning("start of the request's first attempt, since 1970 by the clock of the line's writer", "us"),
    "request_deadline_us": Meaning("deadline of the request, since 1970 in UTC; NULL if no deadline is known", "us"),
    "is_attempt": Meaning("whether the call generates (its kind is generate), including probes"),
    "in_request": Meaning("whether it is an attempt but not a probe: only these belong to requests and are judged"),
    "is_2xx": Meaning("whether the status is 200 to 299 and no error was logged with it"),
    "complete": Meaning("whether the answer was complete; NULL if the log doesn't show it"),
    "non_empty": Meaning("whether the answer contained anything a caller can use; NULL if the log doesn't show it"),
    "on_time": Meaning("whether the attempt ended before its request's deadline; NULL if unknown"),
    "verdict": Meaning(
        "the request's verdict, the same on each of its attempts: usable, late, truncated, empty, refused, invalid, failed, "
        "abandoned or unknown; NULL outside requests"
    ),
    "decides": Meaning("whether this attempt gives its request the verdict; exactly one attempt of a request does"),
    "request_has_2xx": Meaning("whether any attempt of the request got a 2xx status"),
    "tokens": Meaning(
        "tokens that the attempt used: as billed, otherwise prompt plus completion; NULL if its counts can't be right",
        "tokens",
    ),
    "usage_fault": Meaning("why the token counts can't be right: zero_usage or total_contradicts_parts; otherwise NULL"),
    "prefix_is_new": Meaning("whether the fingerprint was not seen in the 15 minutes before; NULL without one"),
    "minute": Meaning("end of the minute in which the event ended: minutes since 1970 in UTC, as Prometheus evaluates", "min"),
    "nth": Meaning("position of the attempt within its request, from 1"),
    "of_request": Meaning("number of attempts of its request"),
    "request_start_known": Meaning("whether the start of the request's first attempt is known"),
    "start_known": Meaning("whether the attempt's start was given or follows from its latency"),
    "timed_out": Meaning("whether the attempt ended in a timeout, so that nobody knows whether the server did the work"),
    "outcome_known": Meaning("whether the log shows how the attempt ended"),
    "caller_left": Meaning("whether the caller closed the connection before the answer was complete"),
    "gave_up": Meaning("whether the caller left at its deadline, or just before: it was answered too late"),
    "is_late": Meaning("whether the attempt is known to have ended after its request's deadline, a caller that gave up included"),
    "time_left_us": Meaning(
        "time left until the deadline at the attempt's end, negative after it; NULL if unknown", "us",
    ),
    "not_an_answer": Meaning("whether a 2xx had a content type that no model answer has, such as an HTML page"),
    "was_answered": Meaning("whether the caller got an answer from the attempt, usable or not"),
    "went_unanswered": Meaning("whether the attempt should have been answered but wasn't"),
    "other_status": Meaning(
        "the status that the call's other end logged: a mesh's proxy before the callee, or another log; NULL where none did",
    ),
    "clock_ahead_us": Meaning("how far the clock of the line's writer is ahead of the others; 0 if unknown", "us"),
    "clock_error_us": Meaning(
        "possible error when comparing the attempt's corrected times with its request's; 0 if one clock wrote them all", "us",
    ),
    "clock_evidence_us": Meaning("how far the attempt's times contradict those of the one before; NULL if they don't", "us"),
    "clock_skew_us": Meaning("largest difference between two writers' clocks, the same for every event; 0 if unknown", "us"),
}

# Columns of `events` that no rule may read, as (type, meaning): queries from Python see them.
NOT_FOR_RULES = {
    "row_id": ("BIGINT", Meaning("the event's row in the store; rules use event_id")),
    "file": ("VARCHAR", Meaning("name of the file")),
    "pattern": ("VARCHAR", Meaning("the path with its ids replaced, used to group calls of one kind")),
    "own_deadline_ms": ("DOUBLE", Meaning("the deadline from the line itself, before configured ones", "ms")),
    "attempt_verdict": ("VARCHAR", Meaning("the verdict that the attempt would give its request if it were its only one")),
}

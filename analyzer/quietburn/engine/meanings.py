"""What each derived column of `events` means: written once, beside the types in `derive.DERIVED`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """What a column says, in a sentence; `unit` is "" where there is none."""

    text: str
    unit: str = ""


MEANINGS = {
    "dialect": Meaning("name of the dialect that the line was read by"),
    "kind": Meaning("what the call was for: generate, ready, embed, list, tool or other"),
    "event_id": Meaning("identifies the event within a run; two events of one line have two"),
    "file_id": Meaning("place of the file among the files read, from 0"),
    "line": Meaning("line number in its file, from 1"),
    "item": Meaning("which event of its line, where a line holds several; else NULL"),
    "request_key": Meaning(
        "identifies the request: all attempts of what one caller wanted once share it; NULL for an attempt without an id"
    ),
    "request_started_us": Meaning("start of the request's first attempt, since 1970 by the clock of the line's writer", "us"),
    "request_deadline_us": Meaning("when the caller's patience ends, since 1970 in UTC; NULL where no deadline is known", "us"),
    "is_attempt": Meaning("whether the call generates (its kind is generate); probes are among them"),
    "in_request": Meaning("whether it is an attempt and no probe: only these belong to requests and are judged"),
    "is_2xx": Meaning("whether the status is 200 to 299 and no error was logged beside it"),
    "complete": Meaning("whether the answer came whole; NULL where the log doesn't tell"),
    "non_empty": Meaning("whether the answer held anything a caller can use; NULL where the log doesn't tell"),
    "on_time": Meaning("whether the attempt ended before its request's deadline; NULL where that is not known"),
    "verdict": Meaning(
        "the request's verdict, the same on each of its attempts: usable, late, truncated, empty, refused, invalid, failed, "
        "abandoned or unknown; NULL outside of requests"
    ),
    "decides": Meaning("whether this attempt gives its request the verdict; exactly one attempt of a request does"),
    "request_has_2xx": Meaning("whether any attempt of the request got a 2xx status"),
    "tokens": Meaning(
        "tokens that the attempt used: as billed, else prompt and completion together; NULL where its counts can't be right",
        "tokens",
    ),
    "usage_fault": Meaning("why the token counts can't be right: zero_usage or total_contradicts_parts; else NULL"),
    "prefix_is_new": Meaning("whether the fingerprint was not seen in the 15 minutes before; NULL without one"),
    "minute": Meaning("end of the minute that holds the event's end: minutes since 1970 in UTC, as Prometheus evaluates", "min"),
    "nth": Meaning("place of the attempt within its request, from 1"),
    "of_request": Meaning("how many attempts its request has"),
    "request_start_known": Meaning("whether the start of the request's first attempt is known"),
    "start_known": Meaning("whether the attempt's start was given or follows from its latency"),
    "timed_out": Meaning("whether the attempt ended in a timeout, so that nobody knows whether the server did the work"),
    "outcome_known": Meaning("whether the log tells at all how the attempt ended"),
    "caller_left": Meaning("whether the caller closed the connection before the answer was complete"),
    "gave_up": Meaning("whether the caller left at its deadline, or just before: it was answered too late"),
    "is_late": Meaning("whether the attempt is known to have ended after its request's deadline, a caller that gave up included"),
    "time_left_us": Meaning(
        "what the deadline still allowed at the attempt's end, negative after it; NULL where not known", "us",
    ),
    "not_an_answer": Meaning("whether a 2xx carried a content type that no model's answer has, such as an HTML page"),
    "was_answered": Meaning("whether the attempt brought its caller an answer, usable or not"),
    "went_unanswered": Meaning("whether the attempt was owed an answer and got none"),
    "other_status": Meaning(
        "the status that the call's other end logged: a mesh's proxy before the callee, or another log; NULL where none did",
    ),
    "clock_ahead_us": Meaning("by how much the clock of the line's writer is ahead of the others; 0 where unknown", "us"),
    "clock_error_us": Meaning(
        "what comparing the attempt's corrected times with its request's may be wrong by; 0 where one clock wrote them all", "us",
    ),
    "clock_evidence_us": Meaning("by how much the attempt contradicts the one before it in time; NULL where it doesn't", "us"),
    "clock_skew_us": Meaning("the largest difference of two writers' clocks, the same for every event; 0 where unknown", "us"),
}

# Columns of `events` that no rule may read, as (type, meaning): queries from Python see them.
NOT_FOR_RULES = {
    "row_id": ("BIGINT", Meaning("the event's row in the store; rules use event_id")),
    "file": ("VARCHAR", Meaning("name of the file")),
    "pattern": ("VARCHAR", Meaning("the path with its ids replaced, by which calls of one kind are grouped")),
    "own_deadline_ms": ("DOUBLE", Meaning("the deadline that the line itself gives, before configured ones", "ms")),
    "attempt_verdict": ("VARCHAR", Meaning("the verdict that the attempt would give its request if it were its only one")),
}

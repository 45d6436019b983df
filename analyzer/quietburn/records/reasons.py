"""The reasons for refusing a line or a field: one enum of codes, with the words that users see."""

from dataclasses import dataclass
from enum import StrEnum


class LineFault(StrEnum):
    """Why a whole line went to quarantine."""

    NOT_JSON = "not_json"
    CUT_SHORT = "cut_short"
    TRAILING_TEXT = "trailing_text"
    NOT_AN_OBJECT = "not_an_object"
    NOT_UTF8 = "not_utf8"
    NOT_UNICODE = "not_unicode"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    CONFLICTING_KEY = "conflicting_key"
    NO_TIME = "no_time"
    TIME_UNREADABLE = "time_unreadable"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    TIME_AMBIGUOUS = "time_ambiguous"
    INCOMPLETE_LAST_LINE = "incomplete_last_line"
    WRAPPER_UNREADABLE = "wrapper_unreadable"
    MESSAGE_LEFT_OUT = "message_left_out"
    PART_WITHOUT_END = "part_without_end"


LINE_FAULT_TEXT = {
    LineFault.NOT_JSON: "not valid JSON",
    LineFault.CUT_SHORT: "not valid JSON: unexpected end of line",
    LineFault.TRAILING_TEXT: "not valid JSON: trailing text after the object",
    LineFault.NOT_AN_OBJECT: "valid JSON, but not an object",
    LineFault.NOT_UTF8: "not valid UTF-8",
    LineFault.NOT_UNICODE: "a string contains a lone surrogate",
    LineFault.TOO_LONG: "longer than 16 MiB",
    LineFault.TOO_DEEP: "nested more than 256 levels deep",
    LineFault.CONFLICTING_KEY: "a repeated key with different values",
    LineFault.NO_TIME: "no time",
    LineFault.TIME_UNREADABLE: "an unreadable time",
    LineFault.TIME_OUT_OF_RANGE: "a time outside 2015 to 2100",
    LineFault.TIME_AMBIGUOUS: "a local time that is ambiguous or doesn't exist (daylight saving)",
    LineFault.INCOMPLETE_LAST_LINE: "incomplete last line",
    LineFault.WRAPPER_UNREADABLE: "not framed like the other lines of the file",
    LineFault.MESSAGE_LEFT_OUT: "a message that journalctl omitted because of its length (export with --all)",
    LineFault.PART_WITHOUT_END: "a partial line whose end is missing",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A refused line, or one item of a line that packs several: where it stands and why, without its bytes."""

    line: int
    offset: int
    length: int
    code: LineFault
    item: int | None = None


class FieldFault(StrEnum):
    """Why one field of a line became NULL."""

    NOT_A_NUMBER = "not_a_number"
    NOT_FINITE = "not_finite"
    NEGATIVE = "negative"
    NOT_INTEGRAL = "not_integral"
    OUT_OF_RANGE = "out_of_range"
    NOT_A_FLAG = "not_a_flag"
    NOT_TEXT = "not_text"
    NOT_A_TIME = "not_a_time"
    MORE_THAN_WHOLE = "more_than_whole"
    TOTAL_CONTRADICTS_PARTS = "total_contradicts_parts"
    ENDS_BEFORE_START = "ends_before_start"


@dataclass(frozen=True)
class QuarantinedLine:
    """One refused line: where it stands and why, never its text."""

    file: str
    line: int
    offset: int
    length: int
    code: LineFault

    @property
    def reason(self) -> str:
        """Return the reason in words."""
        return LINE_FAULT_TEXT[self.code]


@dataclass(frozen=True)
class BadItem:
    """One item that was refused within a line that was used; items of a line are counted from 1."""

    file: str
    line: int
    item: int
    code: LineFault

    @property
    def reason(self) -> str:
        """Return the reason in words."""
        return LINE_FAULT_TEXT[self.code]


@dataclass(frozen=True)
class InvalidField:
    """One field that became NULL, and why."""

    file: str
    line: int
    field: str
    code: FieldFault

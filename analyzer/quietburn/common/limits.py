"""Limits shared by several modules: the span in which a number is taken for a time, and the length of a minute."""

FIRST_S, LAST_S = 1_420_070_400, 4_102_444_800  # 2015-01-01 to 2100-01-01, UTC
MINUTE_US = 60_000_000


def epoch_seconds(number: float) -> float | None:
    """Return a number as seconds since 1970; its size tells whether it counts seconds or thousandths, down to nanoseconds.

    None where it is no time between 2015 and 2100 in any of these units.
    """
    scaled = (number / 1000**power for power in range(4))
    return next((seconds for seconds in scaled if FIRST_S <= seconds <= LAST_S), None)

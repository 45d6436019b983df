"""When an interval of one night may be called a 95 % one, on nights laid out by hand."""

import numpy as np

from quietburn.evaluate.blocks import RequestCounts
from quietburn.evaluate.rates import VERDICTS
from quietburn.evaluate.share_interval import Interval, method_words, share_interval
from quietburn.intervals.bad_spells import Spells, bad_spells
from quietburn.intervals.clusters import Blocks

_QUIET = [1, 0, 0, 2, 0, 1, 0, 0]  # of 20 requests each: 4 of 160 fail


def night(failed: list[int], at: list[int] | None = None, whole: int = 20) -> Blocks:
    bad = np.array(failed)
    places = np.arange(len(failed)) if at is None else np.array(at)
    return Blocks(whole - bad, np.zeros_like(bad), np.full(len(failed), whole), places)


def judged(blocks: Blocks) -> Interval:
    none = np.zeros(len(blocks), dtype=np.int64)
    verdicts = dict.fromkeys(VERDICTS, none) | {"usable": blocks.part, "failed": blocks.whole - blocks.part}
    found = share_interval(RequestCounts(verdicts, blocks.at, timed=True), "usable")
    assert found
    return found


def test_a_night_of_scattered_failures_has_no_incident_and_a_95_percent_interval_for_such_nights() -> None:
    found = judged(night(_QUIET * 12))
    assert (found.spells, found.level, found.stated) == (Spells(0, 0), 0.95, found.estimate)
    assert method_words(found).startswith("The 95 % interval covers nights without an incident, like this night;")


def test_a_night_with_one_incident_of_ten_minutes_has_an_interval_for_this_night_only() -> None:
    found = judged(night([*_QUIET * 6, 18, 19, *_QUIET * 6]))
    assert (found.spells, found.level, found.stated) == (Spells(1, 2), None, None)
    words = method_words(found)
    assert words.startswith("The interval covers only this night: 1 incident of up to 10 minutes drove it, and nights with an")
    assert "95 %" not in words


def test_failures_in_clusters_that_no_incident_explains_are_of_this_night_only() -> None:
    # Blocks of 50 requests with 0 and 6 failures in turn: the mean is 3, the variance 9, by chance it were 2.8.
    uneven, even = judged(night([0, 6] * 48, whole=50)), judged(night([2, 4] * 48, whole=50))
    assert (uneven.spells.count, uneven.level, uneven.stated) == (0, None, None)
    assert "failures came in clusters" in method_words(uneven)
    assert even.level == 0.95


def test_twenty_incidents_tell_how_often_they_come_and_nineteen_do_not() -> None:
    nineteen, twenty = (judged(night([*_QUIET, *[18, 0, 1, 0, 0, 0, 1, 0] * count])) for count in (19, 20))
    assert (nineteen.spells.count, nineteen.level) == (19, None)
    assert (twenty.spells.count, twenty.level) == (20, 0.95)
    assert "as frequent as here (20 incidents of up to 5 minutes)" in method_words(twenty)


def test_longer_incidents_make_a_longer_interval_than_as_many_failures_alone() -> None:
    together = judged(night([*_QUIET * 5, 18, 18, 18, 18, 18, 18, *_QUIET * 5]))
    apart = judged(night(([*_QUIET, *_QUIET, 18] * 6)[:86]))
    assert together.minutes == 30
    assert together.estimate.point - together.estimate.low > apart.estimate.point - apart.estimate.low


def test_an_incident_goes_on_through_one_quiet_block_and_ends_with_two() -> None:
    assert bad_spells(night([*_QUIET * 6, 18, 0, 18, *_QUIET * 6])) == Spells(1, 3)
    assert bad_spells(night([*_QUIET * 6, 18, 0, 0, 18, *_QUIET * 6])) == Spells(2, 1)


def test_blocks_without_a_request_part_incidents_as_time_does() -> None:
    at = [*range(48), 48, 100, *range(101, 149)]
    assert bad_spells(night([*_QUIET * 6, 18, 18, *_QUIET * 6], at)).count == 2


def test_a_slow_incident_that_no_block_shows_alone_is_found_over_half_an_hour() -> None:
    # 1 of 60 fails outside; 3 of 10 do for six blocks: 18 of 60 against one that is expected.
    quiet = [0, 0, 1, 0, 0, 0] * 8
    assert bad_spells(night([*quiet, 3, 3, 3, 3, 3, 3, *quiet], whole=10)).count == 1


def test_incidents_are_found_whatever_share_is_asked_and_none_in_nothing() -> None:
    usable = night([*_QUIET * 6, 18, 19, *_QUIET * 6])
    failed = Blocks(usable.whole - usable.part, usable.unknown, usable.whole, usable.at)
    assert bad_spells(usable) == bad_spells(failed)
    assert bad_spells(night([])) == Spells(0, 0)
    assert bad_spells(night([20, 20, 20])) == Spells(0, 0)


def test_blocks_are_put_together_by_time_from_the_first_on() -> None:
    found = night([1, 2, 3, 4], at=[10, 11, 12, 25]).together(2)
    assert (found.at.tolist(), found.whole.tolist(), found.part.tolist()) == ([0, 1, 7], [40, 20, 20], [37, 17, 16])

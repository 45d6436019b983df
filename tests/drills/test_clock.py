"""Virtual time: who runs when, and what happens when nobody can."""

import threading
import time
from functools import partial

import pytest
from fixtures.drills.clock import StalledError, VirtualClock


def later(clock: VirtualClock, seconds: float, seen: list[float]) -> float:
    """Note the moment so many seconds from now, and return the seconds."""
    clock.sleep(seconds)
    seen.append(clock.now())
    return seconds


def test_an_hour_passes_at_once_and_everybody_wakes_in_the_order_of_their_moments() -> None:
    woken: list[float] = []
    began = time.monotonic()
    with VirtualClock(100.0) as clock:
        for seconds in (3600.0, 2.0, 30.0):
            clock.spawn(partial(later, clock, seconds, woken))
    assert woken == [102.0, 130.0, 3700.0]
    assert time.monotonic() - began < 60


def test_those_who_are_due_at_one_moment_run_in_the_order_in_which_they_asked() -> None:
    ran: list[int] = []
    with VirtualClock(0.0) as clock:
        for number in range(20):
            clock.spawn(partial(ran.append, number), 5.0)
    assert ran == list(range(20))


def test_a_call_that_takes_too_long_is_left_and_still_comes_to_its_end() -> None:
    done: list[float] = []
    with VirtualClock(0.0) as clock:
        with pytest.raises(TimeoutError):
            clock.call(partial(later, clock, 10, done), 4)
        assert clock.now() == 4
        assert done == []
    assert done == [10]


def test_a_call_in_time_gives_its_result_and_a_failed_one_its_failure() -> None:
    def fail() -> None:
        clock.sleep(1)
        raise LookupError("not there")

    with VirtualClock(0.0) as clock:
        assert clock.call(partial(later, clock, 2, []), 3) == 2
        with pytest.raises(LookupError, match="not there"):
            clock.call(fail, 3)
        assert clock.now() == 3


@pytest.mark.parametrize("timeout", [5.0, None])
def test_a_signal_wakes_its_waiters_before_their_time_is_up(timeout: float | None) -> None:
    clock, woken = VirtualClock(0.0), []
    with clock:
        signal = clock.signal()
        clock.spawn(lambda: woken.append((signal.wait(timeout), clock.now())))
        clock.sleep(2)
        signal.set()
        assert signal.wait()
    assert woken == [(True, 2.0)]


def test_a_signal_that_does_not_come_is_waited_for_no_longer_than_asked() -> None:
    with VirtualClock(0.0) as clock:
        assert not clock.signal().wait(7)
        assert clock.now() == 7


def test_when_everybody_waits_for_another_they_are_all_told() -> None:
    clock = VirtualClock(0.0)
    with pytest.raises(StalledError, match="every thread waits"), clock:
        clock.signal().wait()


def test_what_a_thread_raised_is_raised_where_the_clock_ends_and_stops_the_others() -> None:
    def fail() -> None:
        raise LookupError("in a thread")

    clock, before = VirtualClock(0.0), threading.active_count()
    with pytest.raises(LookupError, match="in a thread"), clock:
        clock.spawn(fail)
        clock.spawn(lambda: clock.signal().wait(), 1.0)
    assert threading.active_count() == before


def test_a_block_that_is_given_up_leaves_no_thread_behind() -> None:
    clock, before = VirtualClock(0.0), threading.active_count()
    with pytest.raises(KeyboardInterrupt), clock:
        clock.spawn(lambda: clock.sleep(1e9))
        clock.spawn(lambda: clock.signal().wait())
        raise KeyboardInterrupt
    assert threading.active_count() == before

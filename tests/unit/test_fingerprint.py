"""Two prompts that differ only in a clock or an id have one fingerprint; what merely looks like one stays."""

import hashlib

import pytest

from quietburn.ledger.fingerprint import analyze_prefix, fingerprint

SEED_FP = "352e161abfda4895"


@pytest.mark.parametrize("scrubber", [1, 2])
@pytest.mark.parametrize("clock", ["2026-09-08T02:14:03Z", "2026-09-08T02:16:11Z", "2026-09-08T02:14:03.250Z"])
def test_the_seeds_prompt_has_the_seeds_fingerprint_whatever_the_clock(clock: str, scrubber: int) -> None:
    found = fingerprint(f"Session {clock}. Grade tests.", scrubber)
    assert (found.fp, found.stripped_clock) == (SEED_FP, True)
    assert found.stable_len == len("Session <TS>. Grade tests.")
    assert analyze_prefix(f"Session {clock}. Grade tests.") == (SEED_FP, True)


def test_a_fingerprint_is_the_first_16_digits_of_the_scrubbed_texts_sha_256() -> None:
    assert hashlib.sha256(b"Session <TS>. Grade tests.").hexdigest()[:16] == SEED_FP
    assert fingerprint("Be  brief.\n").fp == hashlib.sha256(b"Be brief.").hexdigest()[:16]


CLOCKS_AND_IDS = [
    ("UUID", "3f2b8c1e-9d4a-4b7e-8a6f-0c1d2e3f4a5b", "B0A1C2D3-E4F5-4061-9273-8495A6B7C8D9"),
    ("epoch seconds", "1788833640", "1788833771"),
    ("epoch seconds with a fraction", "1788833640.123", "1788833771.9"),
    ("epoch milliseconds", "1788833640123", "1788833771456"),
    ("epoch microseconds", "1788833640123456", "1788833771456789"),
    ("epoch nanoseconds", "1788833640123456789", "1788833771456789012"),
    ("RFC 2822", "Tue, 08 Sep 2026 02:14:03 +0000", "Wed, 09 Sep 2026 14:16:11 +0200"),
    ("RFC 2822 in GMT", "Tue, 08 Sep 2026 02:14:03 GMT", "Wed, 09 Sep 2026 14:16:11 GMT"),
    ("a spaced date", "2026-09-08 02:14:03", "2026-09-09 14:16:11"),
    ("a spaced date with a zone", "2026-09-08 02:14:03.5 UTC", "2026-09-09 14:16:11 UTC"),
    ("a spaced date with slashes", "2026/09/08 02:14", "2026/09/09 14:16"),
    ("an ISO time with an offset", "2026-09-08T02:14:03+02:00", "2026-09-09T14:16:11-0500"),
    ("a bare date", "2026-09-08", "2026-09-09"),
    ("a date in words", "8 September 2026", "19 October 2026"),
    ("an American date in words", "September 8, 2026", "October 19, 2026"),
    ("a hex id", "9f86d081884c7d65", "0a1b2c3d4e5f6071"),
    ("a long hex id", "e3b0c44298fc1c149afbf4c8996fb924", "1f3870be274f6c49b3e31a0c6728957f"),
    ("a request id", "req_8f3k2Lm9", "req_9A3k2Lm0"),
    ("a trace id", "trace-4bf92f3577", "trace-00f067aa0b"),
]


@pytest.mark.parametrize(("first", "second"), [c[1:] for c in CLOCKS_AND_IDS], ids=[c[0] for c in CLOCKS_AND_IDS])
def test_prompts_that_differ_in_a_clock_or_an_id_share_a_fingerprint_and_are_noisy(first: str, second: str) -> None:
    one, other = (analyze_prefix(f"You grade tests. Now: {text} Be brief.") for text in (first, second))
    assert one == other
    assert one[1] is True
    assert one[0] != analyze_prefix("You grade tests. Now: Be brief.")[0]


STABLE = [
    "You are a careful grader.\n\nRules:\n  - read the whole test\n  - be  brief\n",
    "Think about the last decade and the facade of the cafe.",
    "Answer in at most 1500 tokens, 12 lines, 4096 characters.",
    "Use Python 3.11.7, CUDA 12.4.1 and release 2026.9.",
    "The order takes 10 to 15 days and costs 1,234,567.89.",
    "Call +49 30 1234567 or room 0815.",
    "Chapter 1/2, ratio 16:9, at 02:14.",
    "defaced accede feedbacked deadbeef",
    "Requests run in jobs; trace them.",
    "Numbers: 12345678901234 and 999999999.",
    "",
]


@pytest.mark.parametrize("prompt", STABLE)
def test_a_prompt_without_clock_or_id_is_not_noisy(prompt: str) -> None:
    assert analyze_prefix(prompt)[1] is False
    for scrubber in (1, 2):
        found = fingerprint(prompt, scrubber)
        assert found.stripped_clock is False
        assert found.fp == hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("one", "other"),
    [("Use Python 3.11.7.", "Use Python 3.11.8."), ("At most 1500 tokens.", "At most 1600 tokens."), ("decade", "decades")],
)
def test_prompts_that_differ_in_what_they_say_have_two_fingerprints(one: str, other: str) -> None:
    assert analyze_prefix(one)[0] != analyze_prefix(other)[0]


def test_only_the_second_scrubber_takes_out_what_the_seed_misses() -> None:
    for _, first, second in CLOCKS_AND_IDS[:1]:
        assert fingerprint(first, 1).fp != fingerprint(second, 1).fp
        assert fingerprint(first, 2).fp == fingerprint(second, 2).fp


def test_a_prompt_with_half_a_surrogate_pair_still_has_a_fingerprint() -> None:
    assert len(fingerprint("a\ud800b", 2).fp) == 16

"""Fingerprints of instruction prefixes, and the scrubbers that take clocks and ids out first."""

import hashlib
import re
from dataclasses import dataclass

# Scrubber 1 reproduces the lab helper of seed 000: an ISO clock, and ids with a known prefix.
_SCRUBBER_1 = (
    (re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z?"), "<TS>"),
    (re.compile(r"\b(?:req|trace|run|job)[-_][A-Za-z0-9-]{6,}\b", re.IGNORECASE), "<ID>"),
)

# Six letters complete "Wednesday" and "September". The bound keeps a search linear in a prompt
# that repeats "Mon", which callers choose.
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"


def _words(pattern: str) -> re.Pattern[str]:
    """Compile a date in words; one space in the pattern stands for any run of them."""
    return re.compile(pattern.format(day=_DAY, month=_MONTH).replace(" ", r"\s+"), re.IGNORECASE)


# Scrubber 2 adds what the first misses. Order matters: longer forms before their parts.
_SCRUBBER_2 = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<ID>"),
    (re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"), "<TS>"),
    *_SCRUBBER_1,
    (re.compile(r"\d{4}[-/]\d{2}[-/]\d{2} \d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"),
     "<TS>"),
    (_words(r"(?:{day},? )?\d{{1,2}} {month} \d{{4}}(?:,? \d{{2}}:\d{{2}}(?::\d{{2}})?(?: ?(?:UTC|GMT|[+-]\d{{4}}))?)?"), "<TS>"),
    (_words(r"(?:{day},? )?{month} \d{{1,2}}(?:,? \d{{2}}:\d{{2}}:\d{{2}}(?: [A-Z]{{3,4}})?)?,? \d{{4}}"), "<TS>"),
    (re.compile(r"\b\d{4}[-/]\d{2}[-/]\d{2}\b"), "<TS>"),
    # Epoch seconds, milliseconds, microseconds or nanoseconds between 2001 and 2096.
    (re.compile(r"(?<![\w.])[1-3]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\w])"), "<TS>"),
    # Hex of at least 12 digits that holds both a digit and a letter (not a plain number, not a word).
    (re.compile(r"\b(?:0x)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b", re.I), "<ID>"),
)

SCRUBBERS = {1: _SCRUBBER_1, 2: _SCRUBBER_2}


@dataclass(frozen=True)
class Fingerprint:
    """Result for one prefix.

    `fp` is 16 hex digits of SHA-256 over the scrubbed text with white space folded (seed 000);
    `stable_len` its length in characters; `stripped_clock` whether anything was substituted.
    """

    fp: str
    stable_len: int
    stripped_clock: bool


def fingerprint(prefix: str, scrubber: int = 1) -> Fingerprint:
    """Return the fingerprint of an instruction prefix with clocks and ids taken out.

    `scrubber` is 1 (the seed's two patterns) or 2 (also UUIDs, epoch numbers, RFC 2822 and
    spaced dates, bare dates, hex ids). Folding white space alone is not a substitution, so a
    clean prompt with line breaks is not noisy.
    """
    substitutions = 0
    text = prefix
    for pattern, mark in SCRUBBERS[scrubber]:
        text, count = pattern.subn(mark, text)
        substitutions += count
    stable = " ".join(text.split())
    digest = hashlib.sha256(stable.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Fingerprint(digest, len(stable), substitutions > 0)


def analyze_prefix(prefix: str) -> tuple[str, bool]:
    """Return (fingerprint, noisy) as the ledger stores them: both scrubbers have a say.

    The second scrubber's fingerprint is used, so that two prefixes which differ only in a
    clock of any known form share it.
    """
    strong = fingerprint(prefix, 2)
    return strong.fp, strong.stripped_clock or fingerprint(prefix, 1).stripped_clock

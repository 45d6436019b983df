"""The real promtool: find it, run a test file, and read which evaluations differed."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quietburn.common import temporary
from quietburn.errors import QuietburnError

_FAILED = re.compile(
    r'^\s*expr: "(?P<expr>.*)", time: (?P<time>[^,]+),\n\s*exp: ?(?P<exp>.*)\n\s*got: ?(?P<got>.*)$', re.MULTILINE
)
# As Prometheus writes durations: whole years and weeks, then days and less.
_TIME = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_TIME_UNITS_S = (365 * 86_400, 7 * 86_400, 86_400, 3600, 60, 1)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_SET = re.compile(r'\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}')

LabelSet = frozenset[tuple[str, str]]


class PromtoolError(QuietburnError):
    """promtool is missing, or refused what it was given."""


class NoPromtoolError(PromtoolError):
    """promtool is not installed."""


@dataclass(frozen=True)
class Difference:
    """An evaluation whose series were not those expected."""

    expr: str
    minute: int
    got: frozenset[LabelSet]


def find_promtool() -> str:
    """Return promtool's path. Raises NoPromtoolError that says how to get it."""
    found = shutil.which("promtool")
    if found is None:
        raise NoPromtoolError(
            "promtool is not installed, and alerts can't be proven without it. It comes with Prometheus: "
            "`apt-get install prometheus` on Debian, `brew install prometheus` on macOS."
        )
    return found


def run_tests(files: dict[str, str], test_file: str) -> list[Difference]:
    """Run promtool on files in a private folder; return the evaluations that differ.

    Raises PromtoolError when promtool could not evaluate: that is no pass.
    """
    promtool = find_promtool()
    with temporary.folder() as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        done = subprocess.run(  # noqa: S603 - a found program on files of our own
            [promtool, "test", "rules", test_file], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode == 0:
        return []
    differences = list(_differences(done.stdout + done.stderr))
    if not differences:
        words = " ".join((done.stdout + done.stderr).split())[-300:]
        raise PromtoolError(f"promtool could not evaluate the generated tests: {words}")
    return differences


def check_rules(text: str) -> str | None:
    """Return what `promtool check rules` has against a rule file with every lint on, None if nothing."""
    promtool = find_promtool()
    with temporary.folder() as folder:
        path = folder / "alerts.yaml"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(  # noqa: S603 - a found program on a file of our own
            [promtool, "check", "rules", "--lint=all", "--lint-fatal", str(path)], capture_output=True, text=True, check=False
        )
    return None if done.returncode == 0 else " ".join((done.stdout + done.stderr).split())


def _differences(output: str) -> Iterator[Difference]:
    for match in _FAILED.finditer(output):
        yield Difference(_unescaped(match["expr"]), _minutes(match["time"]), frozenset(_label_sets(match["got"])))


def _minutes(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise PromtoolError(f"promtool reports an unreadable time: {text!r}")
    return sum(int(part or 0) * unit for part, unit in zip(match.groups(), _TIME_UNITS_S, strict=True)) // 60


def _label_sets(text: str) -> Iterable[LabelSet]:
    for match in _SET.finditer(text):
        yield frozenset((name, _unescaped(value)) for name, value in _LABEL.findall(match[1]) if name != "__name__")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)

"""Strings made inert: nothing acts, nothing vanishes, and what is harmless stays as it is."""

import json

import pytest

from quietburn.report.printable import inert_json, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, with (signs) [and] {brackets}", "plain text, with (signs) [and] {brackets}"),
        ("grüße 字 😀", "grüße 字 😀"),
        ("", ""),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\r\tc\x00", "a\\x0ab\\x0d\\x09c\\x00"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("a\u2028b\u2029c\u0085d", "a\\u2028b\\u2029c\\x85d"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("no\u00a0break", "no\\xa0break"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half \udcff", "half \\udcff"),
        ("::error::x", "\\x3a:error::x"),
        ("   ::error::x", "   \\x3a:error::x"),
        ("a ::error::x", "a ::error::x"),
        ("fe80::1", "fe80::1"),
        ("##[error]x", "\\x23#[error]x"),
        ("a ##vso[task]x", "a \\x23#vso[task]x"),
        ("## heading", "## heading"),
        ("###", "###"),
    ],
)
def test_what_could_act_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_json_keeps_its_meaning_when_commands_are_taken_out_of_it() -> None:
    value = {"##[a]": ["x ##vso[b]", "\\##[c]", "## d", "::error::e"]}
    text = inert_json(json.dumps(value))
    assert "##[" not in text
    assert "##vso[" not in text
    assert json.loads(text) == value

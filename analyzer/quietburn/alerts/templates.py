"""Jinja for files that speak Prometheus's own template language: other delimiters, our escapes."""

import json
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from quietburn.common.resources import rules_dir
from quietburn.report.printable import printable


def quoted(value: object) -> str:
    """Return a YAML string in double quotes: JSON's form, but one escape for each character beyond ASCII.

    JSON's pairs of surrogates are no characters in YAML.
    """
    text = json.dumps(str(value), ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else _yaml_escape(ord(char)) for char in text)


def _yaml_escape(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:  # half a pair: a byte that was no UTF-8
        code = 0xFFFD
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def indented(text: str, indent: str) -> str:
    """Return a text with every line indented."""
    return "\n".join(indent + line if line else line for line in text.split("\n"))


def comment(text: str) -> str:
    """Return a text that fits one comment line."""
    return printable(text)


def prometheus_literal(text: str) -> str:
    """Return a text that Prometheus's templates print as it is."""
    return text.replace("{{", '{{ "{{" }}')


@cache
def environment() -> Environment:
    """Return the environment; a missing variable fails instead of printing nothing."""
    made = Environment(
        loader=FileSystemLoader(rules_dir() / "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is YAML and Markdown; each value is escaped for it by a filter
        keep_trailing_newline=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    made.filters.update(quoted=quoted, indented=indented, comment=comment)
    return made


def rendered(template: str, **context: object) -> str:
    """Render a template to the end in memory."""
    return environment().get_template(template).render(**context)

"""Transforms of what callers and models wrote: how long it is, and its instructions; none of it is kept."""

from typing import Any

from quietburn.dialects.guarded import UNREADABLE, number_of
from quietburn.records.exact import NumberText, Pairs, decode

_REDACTED = "redacted-by-litellm"  # what LiteLLM writes over contents: its length tells nothing


def _content_chars(content: Any) -> Any:
    """Return the length of a message's content: a text, or a list of parts that hold texts; an object for anything else."""
    if content is None:
        return 0
    if isinstance(content, str):
        return None if content == _REDACTED else len(content)
    if isinstance(content, list) and not isinstance(content, Pairs):
        parts = [dict(part) for part in content if isinstance(part, Pairs | dict)]
        texts = [part.get("text", part.get("content")) for part in parts if part.get("type", "text") in _READABLE]
        return sum(len(text) for text in texts if isinstance(text, str))
    return UNREADABLE


_READABLE = ("text", "output_text", "refusal")


def choices_chars(choices: Any) -> Any:
    """Return how many characters of the first choice the caller can read; reasoning is none of them."""
    if choices is None or choices == []:
        return None
    if not isinstance(choices, list) or isinstance(choices, Pairs) or not isinstance(choices[0], Pairs | dict):
        return UNREADABLE
    choice = dict(choices[0])
    message = choice.get("message", choice.get("delta"))
    if isinstance(message, Pairs | dict):
        chars = _content_chars(dict(message).get("content"))
    else:
        chars = _content_chars(choice["text"]) if "text" in choice else None
    return chars if chars is None or chars == UNREADABLE else number_of(chars)


def messages_chars(messages: Any) -> Any:
    """Return how many characters of GenAI output messages the caller can read."""
    found = decode(messages) if isinstance(messages, str) else messages
    if found is None or found == [] or (isinstance(messages, str) and not isinstance(found, list)):
        return None  # contents may be left out or written over
    if not isinstance(found, list) or isinstance(found, Pairs) or not isinstance(found[0], Pairs | dict):
        return UNREADABLE
    message = dict(found[0])
    body = message.get("parts", message.get("content"))
    if body is None:
        return None
    chars = _content_chars(body)
    return chars if chars is None or chars == UNREADABLE else number_of(chars)


def text_chars(text: Any) -> Any:
    """Return the length of a text."""
    return number_of(len(text)) if isinstance(text, str) and not isinstance(text, NumberText) else UNREADABLE


def system_text(messages: Any) -> Any:
    """Return the instructions that a conversation begins with (they are fingerprinted, never kept)."""
    found = decode(messages) if isinstance(messages, str) else messages
    return instructions(found[0]) if isinstance(found, list) and not isinstance(found, Pairs) and found else None


def instructions(message: Any) -> Any:
    """Return the text of a conversation's first message where it instructs the model (it is fingerprinted, never kept)."""
    first = dict(message) if isinstance(message, Pairs | dict) else {}
    content = first.get("content")
    told = first.get("role") in ("system", "developer") and isinstance(content, str) and content != _REDACTED
    return content if told else None

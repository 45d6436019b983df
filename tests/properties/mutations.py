"""Mutations of records, of TOML text and of bytes; the same seed gives the same mutation."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

# Written into JSON as they stand: numbers that Python's writer would change, and texts that a header may hold.
_HOSTILE_JSON = (
    "null", "true", "false", "0", "-0", "-1", "1e308", "-1e308", "1e400", "9e9999999", "NaN", "-Infinity", "0.1",
    "9007199254740993", "18446744073709551616", "1" + "0" * 400, '""', '" "', '"-"', '"null"', '"none"', '"success"', '"NaN"',
    '"9e9999999"', '"-9e-9999999"', '"9e999999, 9e999999"', '"1, 2, 3"', '", : ,"', '"0.1 : 0.2"', '"1e400"', '"0x10"', '"1_000"',
    '"29m59s"', '"161.45s"', '"Wed, 21 Oct 2026 07:28:00 GMT"', '"2026-13-45T99:99:99Z"', '"\\u0000"', '"\\ud83d"',
    '"{{ 7 * 7 }}"', '"</script>"', '"\\u001b[31m"', '"\\u202e"', "{}", "[]", "[[]]", "[null]", '{"a": {"a": {"a": 1}}}',
    '{"value": 9e9999999, "unit": "s"}', '["a", 1, null, {"b": []}]',
)  # fmt: skip
_HOSTILE_TOML = (
    "true", "false", "0", "-0", "-5", "1e308", "-inf", "inf", "nan", "1" + "0" * 400, "0xFFFFFFFFFFFFFFFFFFFF", '""', '"abc"',
    '"null"', '"{{ 1 }}"', '"\'; SELECT 1 --"', '"a.b[0].c"', '"ms"', "[]", "[1, 2]", '["a", "a"]', "{}", "{ a = 1 }",
    "1979-05-27", "[" * 2000 + "]" * 2000,
)  # fmt: skip
_TOML_VALUE = re.compile(r'(?<== )(?:"[^"\n]*"|true|false|-?\d[\d.]*)|(?<=\[)"[^"\n]*"')
_MARK = "\N{SYMBOL FOR SUBSTITUTE}"


def _places(record: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and key of every value in a record, nested ones included."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield record, key
        yield from _places(value)


def mutated_record(dice: random.Random, record: Any) -> str:
    """Return a record as JSON text with one to three of its values replaced, renamed, removed or repeated."""
    record = json.loads(json.dumps(record))
    written = []
    for _ in range(dice.randint(1, 3)):
        places = list(_places(record))
        if not places:
            break
        container, key = dice.choice(places)
        what = dice.choice(["replace", "replace", "replace", "rename", "remove", "repeat"])
        if what == "replace":
            written.append(dice.choice(_HOSTILE_JSON))
            container[key] = f"{_MARK}{len(written) - 1}{_MARK}"
        elif what == "remove":
            del container[key]
        elif what == "repeat" and isinstance(container, list):
            container.extend([container[key]] * dice.choice([1, 50]))
        elif isinstance(container, dict):
            container[dice.choice(["", "a.b", "__proto__", key + " ", key.upper(), "k" * 3000])] = container.pop(key)
    return re.sub(f'"{_MARK}(\\d+){_MARK}"', lambda found: written[int(found[1])], json.dumps(record, ensure_ascii=False))


def mutated_ledger(dice: random.Random, lines: list[str]) -> bytes:
    """Return lines of a ledger of which up to a third are mutated, and sometimes one is damaged as text."""
    found = list(lines)
    for number in dice.sample(range(len(found)), max(1, len(found) // 3)):
        found[number] = mutated_record(dice, json.loads(found[number]))
    if dice.random() < 0.3:
        number = dice.randrange(len(found))
        place = dice.randrange(len(found[number]) + 1)
        piece = dice.choice(["", "}", "{", '"', "\\", ",", "\x00", "[" * 300])
        found[number] = found[number][:place] + piece + found[number][place + 1 :]
    return ("\n".join(found) + "\n").encode("utf-8", "surrogatepass")


def mutated_toml(dice: random.Random, text: str) -> str:
    """Return TOML text with one or two of its values replaced."""
    for _ in range(dice.randint(1, 2)):
        values = list(_TOML_VALUE.finditer(text))
        if values:
            found = dice.choice(values)
            text = text[: found.start()] + dice.choice(_HOSTILE_TOML) + text[found.end() :]
    return text


def mutated_bytes(dice: random.Random, content: bytes) -> bytes:
    """Return bytes some of which are overwritten, cut off or doubled."""
    found = bytearray(content)
    for _ in range(dice.randint(1, 8)):
        place = dice.randrange(len(found))
        length = dice.choice([1, 8, 512, 4096])
        what = dice.choice(["noise", "zero", "cut", "double"])
        if what == "noise":
            found[place : place + length] = dice.randbytes(min(length, len(found) - place))
        elif what == "zero":
            found[place : place + length] = bytes(min(length, len(found) - place))
        elif what == "cut" and len(found) > length + 1:
            del found[-length:]
        else:
            found[place:place] = found[place : place + length]
    return bytes(found)

"""TOML from anywhere is read, or is one line that names the file."""

from pathlib import Path

import pytest

from quietburn.common.config import load_config
from quietburn.common.tomlfile import MOST_BYTES, MOST_DEPTH, MOST_DOTS, read_toml
from quietburn.dialects.mapping import load_mapping
from quietburn.errors import ConfigError
from quietburn.ruleset.files import load_rule

UNUSABLE = {
    "5,000 digits": ("a = " + "1" * 5000, "an integer exceeds 64 bits"),
    "400 digits": ("a = " + "1" * 400, "a: an integer exceeds 64 bits"),
    "a long hexadecimal number": ("a = 0x" + "f" * 4000, "a: an integer exceeds 64 bits"),
    "one more than 64 bits": ("a = 9223372036854775808", "a: an integer exceeds 64 bits"),
    "a huge number far inside": ("[x]\ny = [[{z = 0xffffffffffffffffff}]]", "x.y.z: an integer exceeds 64 bits"),
    "2,000 nested arrays": ("a = " + "[" * 2000 + "]" * 2000, f"nested deeper than {MOST_DEPTH} levels"),
    "3,000 nested tables": ("a = " + "{a=" * 3000 + "1" + "}" * 3000, f"nested deeper than {MOST_DEPTH} levels"),
    "nested just too deep": ("a = " + "[" * 65 + "1" + "]" * 65, f"a: nested deeper than {MOST_DEPTH} levels"),
    "a key of 50,000 parts": ("a" + ".a" * 50_000 + " = 1", f"line 1 has more than {MOST_DOTS} dots"),
    "a header of 50,000 parts": ("\n[a" + ".a" * 50_000 + "]", f"line 2 has more than {MOST_DOTS} dots"),
    "a key of quoted parts": ('"="' + '."="' * 50_000 + " = 1", f"line 1 has more than {MOST_DOTS} dots"),
    "a file without end": ("# " + "x" * MOST_BYTES, "is larger than 512 KiB"),
}


@pytest.mark.parametrize(("text", "said"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_pythons_reader_chokes_on_is_one_line_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    for read, kind in ((load_config, "configuration"), (load_mapping, "mapping"), (load_rule, "rule")):
        with pytest.raises(ConfigError) as refused:
            read(path)
        assert str(refused.value).startswith(f"{kind} {path}: ")
        assert said in str(refused.value)
        assert len(str(refused.value)) < 500
        assert "\n" not in str(refused.value)


def test_what_lies_at_the_bounds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text("a = [9223372036854775807, -9223372036854775808]\nb = " + "[" * 63 + "]" * 63 + "\n")
    assert read_toml(path, "file")["a"] == [2**63 - 1, -(2**63)]


def test_of_many_unknown_keys_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "quietburn.toml"
    path.write_text("".join(f"k{n} = 1\n" for n in range(20_000)))
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    said = str(refused.value)
    assert said.startswith(f"configuration {path}: k0: unknown key; k1: unknown key")
    assert said.endswith("k9: unknown key; and 19,990 more.")
    path.write_text("x" * 100_000 + " = 1\n")
    with pytest.raises(ConfigError) as long:
        load_config(path)
    assert str(long.value) == f"configuration {path}: {'x' * 100}...: unknown key."


def test_a_device_that_gives_bytes_without_end_is_no_file_of_ours() -> None:
    with pytest.raises(ConfigError, match=r"configuration /dev/zero: "):
        load_config(Path("/dev/zero"))

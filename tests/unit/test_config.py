"""quietburn.toml: where it is found, and what is refused in it."""

from pathlib import Path

import pytest

from quietburn.common.config import Config, Deadlines, load_config
from quietburn.errors import ConfigError


def configured(folder: Path, text: str) -> Config:
    """Return the configuration that a file's text gives."""
    path = folder / "quietburn.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def test_without_a_file_everything_is_unset(tmp_path: Path) -> None:
    assert load_config(None, tmp_path) == Config()
    assert Config().deadlines == Deadlines()


def test_each_key_is_read(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        'deadline_ms = 8000\nhourly_token_cap = 50000\nmax_retries = 0\ninflight_cap = 8\ntz = "Europe/Berlin"\n'
        "length_is_complete = false\n[rules.saturation]\nwait_ms = 1500\n",
    )
    assert config.deadlines == Deadlines(default=8000)
    assert (config.hourly_token_cap, config.max_retries, config.inflight_cap, config.tz) == (50000, 0, 8, "Europe/Berlin")
    assert config.length_is_complete is False
    assert config.rules == {"saturation": {"wait_ms": 1500}}
    assert config.origin == str(tmp_path / "quietburn.toml")


def test_deadlines_may_differ_by_route_model_and_tenant(tmp_path: Path) -> None:
    config = configured(
        tmp_path, '[deadline_ms]\ndefault = 8000\n[deadline_ms.route]\ncomplete = 9000.5\n[deadline_ms.tenant]\n"a b" = 100\n'
    )
    assert config.deadlines == Deadlines(default=8000, route={"complete": 9000.5}, tenant={"a b": 100})


def test_the_nearest_file_upward_counts_and_quietburn_toml_before_pyproject(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (tmp_path / "quietburn.toml").write_text("max_retries = 1\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.quietburn]\nmax_retries = 2\n")
    (tmp_path / "a" / "b" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load_config(None, deep).max_retries == 2
    (tmp_path / "a" / "quietburn.toml").write_text("max_retries = 3\n")
    assert load_config(None, deep).max_retries == 3
    (deep / "quietburn.toml").mkdir()  # a folder of that name is no configuration
    assert load_config(None, deep).max_retries == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hourly_token_cpa = 1\n", r"hourly_token_cpa: unknown key \(did you mean 'hourly_token_cap'\?\)"),
        ("a = 1\nb = 2\n", "a: unknown key; b: unknown key"),
        ("deadline_ms = true\n", "deadline_ms.default: input should be a valid number"),
        ("deadline_ms = nan\n", "deadline_ms.default: input should be"),
        ("deadline_ms = 0\n", "deadline_ms.default: input should be greater than 0"),
        ("[deadline_ms.route]\ncomplete = 'x'\n", "deadline_ms.route.complete: input should be a valid number"),
        ("hourly_token_cap = '50000'\n", "hourly_token_cap: input should be a valid number"),
        ("max_retries = -1\n", "max_retries: input should be greater than or equal to 0"),
        ("length_is_complete = 'no'\n", "length_is_complete: input should be a valid boolean"),
        ("[rules]\nsaturation = 5\n", "rules.saturation: input should be a valid dictionary"),
        ("[rules.saturation]\nwait_ms = true\n", "rules.saturation.wait_ms: input should be a valid number"),
        ("tz = 5\n", "tz: input should be a valid string"),
        ("max_retries = 1\nmax_retries = 2\n", "not valid TOML: Cannot overwrite a value"),
    ],
)
def test_what_cannot_be_used_is_refused_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^configuration {tmp_path}/quietburn.toml: {said}"):
        configured(tmp_path, text)


def test_a_file_that_is_not_utf8_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "quietburn.toml"
    with pytest.raises(ConfigError, match=r"can't be read \(no such file or directory\)"):
        load_config(path)
    path.write_bytes(b"tz = '\xff'\n")
    with pytest.raises(ConfigError, match="not valid UTF-8"):
        load_config(path)


def test_a_named_pyproject_without_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.other]\nx = 1\n")
    with pytest.raises(ConfigError, match=r"has no \[tool.quietburn\] table"):
        load_config(path)
    path.write_text("[tool.quietburn]\n")
    assert load_config(path) == Config(origin=str(path))

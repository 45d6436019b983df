"""A call, a configuration or a mapping that can't be used is one line on standard error and exit 2."""

from pathlib import Path

import pytest
from tests.cli.program import Done, call, is_one_line, run, run_all, write

SEE_HELP = " See --help."
NO_RULE = " `quietburn rules list` lists all rules."

# What is wrong with the call: its arguments, and the whole line after `quietburn: `.
CALLS = {
    "no ledger": (
        ["analyze"], "no ledger given. Name at least one JSONL file, a folder of them, or - for standard input."
    ),
    "an empty name": (
        ["analyze", ""], "a ledger name is empty (an unset variable?). Name a JSONL file, a folder of them, or -."
    ),
    "unknown format": (
        ["analyze", "x.jsonl", "--format", "xml"],
        "Invalid value for '--format': 'xml' is not one of 'text', 'json', 'markdown', 'github'." + SEE_HELP
    ),
    "unknown severity": (
        ["analyze", "x.jsonl", "--fail-on", "loud"],
        "Invalid value for '--fail-on': 'loud' is not one of 'page', 'ticket', 'info', 'never'." + SEE_HELP,
    ),
    "since that is no time": (
        ["analyze", "x.jsonl", "--since", "yesterday"],
        "--since 'yesterday': write an ISO time (2026-09-08T02:00:00Z) or a duration (24h, 15m).",
    ),
    "until that is no time": (
        ["analyze", "x.jsonl", "--until", "24 hours"],
        "--until '24 hours': write an ISO time (2026-09-08T02:00:00Z) or a duration (24h, 15m).",
    ),
    "since that reaches too far": (["analyze", "x.jsonl", "--since", "40000d"], "--since '40000d': goes back too far."),
    "since at until": (
        ["analyze", "x.jsonl", "--since", "2026-09-08T02:00:00Z", "--until", "2026-09-08T04:00:00+02:00"],
        "--since is not before --until; the time range is empty.",
    ),
    "since after until": (
        ["analyze", "x.jsonl", "--since", "1h", "--until", "2h"], "--since is not before --until; the time range is empty."
    ),
    "last night and since": (
        ["analyze", "x.jsonl", "--last-night", "--since", "24h"],
        "--last-night can't be combined with --since and --until.",
    ),
    "unknown zone": (
        ["analyze", "x.jsonl", "--tz", "Mars/Olympus_Mons"],
        "tz 'Mars/Olympus_Mons': no such time zone; use a name like Europe/Berlin or UTC.",
    ),
    "mistyped zone": (
        ["analyze", "x.jsonl", "--tz", "europe/berlin"],
        "tz 'europe/berlin': no such time zone (did you mean 'Europe/Berlin'?).",
    ),
    "unknown dialect": (
        ["analyze", "x.jsonl", "--dialect", "admision"], "no dialect 'admision' (did you mean 'admission'?); use one of: "
    ),
    "set without a rule": (
        ["analyze", "x.jsonl", "--set", "wait_ms=5"],
        "--set 'wait_ms=5': write RULE.PARAMETER=NUMBER, such as saturation.wait_ms=1500.",
    ),
    "set of an unknown rule": (
        ["analyze", "x.jsonl", "--set", "saturatio.wait_ms=5"],
        "no rule 'saturatio' (did you mean 'saturation'?) to set 'wait_ms' of.",
    ),
    "set of an unknown parameter": (
        ["analyze", "x.jsonl", "--set", "saturation.wait_m=5"],
        "rule 'saturation' has no parameter 'wait_m' (did you mean 'wait_ms'?).",
    ),
    "set to no number": (["analyze", "x.jsonl", "--set", "saturation.wait_ms=abc"], "saturation.wait_ms: 'abc' is not a number."),
    "set to NaN": (["analyze", "x.jsonl", "--set", "saturation.wait_ms=nan"], "saturation.wait_ms: 'nan' is not a number."),
    "only an unknown rule": (
        ["analyze", "x.jsonl", "--only", "stuck-workers"], "no rule 'stuck-workers' (did you mean 'stuck-worker'?)." + NO_RULE
    ),
    "skip of an unknown rule": (["analyze", "x.jsonl", "--skip", "zzz"], "no rule 'zzz'." + NO_RULE),
    "too much quarantined": (
        ["analyze", "x.jsonl", "--max-quarantined", "101%"], "--max-quarantined '101%': write a share such as 5% or 0.05."
    ),
    "quarantined that is no share": (
        ["analyze", "x.jsonl", "--max-quarantined", "few"], "--max-quarantined 'few': write a share such as 5% or 0.05."
    ),
    "quarantined NaN": (
        ["analyze", "x.jsonl", "--max-quarantined", "nan"], "--max-quarantined 'nan': write a share such as 5% or 0.05."
    ),
    "quarantined below nothing": (
        ["analyze", "x.jsonl", "--max-quarantined", "-1"], "--max-quarantined '-1': write a share such as 5% or 0.05."
    ),
    "missing configuration": (
        ["analyze", "x.jsonl", "--config", "none.toml"],
        "configuration none.toml: can't be read (no such file or directory).",
    ),
    "missing mapping": (["analyze", "x.jsonl", "--map", "none.toml"], "mapping none.toml: can't be read "),
    "unknown option": (["analyze", "x.jsonl", "--nope"], "No such option: --nope"),
    "unknown command": (["analyse"], "No such command 'analyse'."),
    "rules show of an unknown rule": (
        ["rules", "show", "late-but-300"], "no rule 'late-but-300' (did you mean 'late-but-200'?)." + NO_RULE
    ),
    "rules show of nothing": (["rules", "show"], "Missing argument 'ID'." + SEE_HELP),
    "unknown scrubber": (["fingerprint", "--scrubber", "3"], "--scrubber 3: use one of 1, 2."),
}

CONFIGURATIONS = {
    "an unknown key": ("hourly_token_cpa = 5\n", "hourly_token_cpa: unknown key (did you mean 'hourly_token_cap'?)."),
    "an unknown key of a table": ("[deadline_ms]\nrout = 5\n", "deadline_ms.rout: unknown key (did you mean 'route'?)."),
    "text for a number": ('hourly_token_cap = "5"\n', "hourly_token_cap: input should be a valid number."),
    "a flag for a number": ("max_retries = true\n", "max_retries: input should be a valid integer."),
    "a number below nothing": ("deadline_ms = -1\n", "deadline_ms.default: input should be greater than 0."),
    "a number without end": ("hourly_token_cap = inf\n", "hourly_token_cap: input should be a finite number."),
    "half a retry": ("max_retries = 1.5\n", "max_retries: input should be a valid integer."),
    "a key of ours": ('origin = "elsewhere"\n', "origin: unknown key."),
    "no TOML": ("deadline_ms =\n", "not valid TOML: Invalid value (at line 1, column 14)."),
    "text for a rule's number": (
        '[rules.saturation]\nwait_ms = "5"\n', "rules.saturation.wait_ms: input should be a valid number."
    ),
}

MAPPINGS = {
    "an unknown column": (
        '[dialect]\nname = "mine"\n[columns]\nstatsu = { from = "code" }\n', "unknown column 'statsu' (did you mean 'status'?)"
    ),
    "an unknown key": (
        '[dialect]\nname = "mine"\n[columns]\nstatus = { form = "code" }\n',
        "columns.status.0.form: unknown key (did you mean 'from'?)",
    ),
    "no columns": ('[dialect]\nname = "mine"\n', "columns: is required"),
    "a unit where there is none": (
        '[dialect]\nname = "mine"\n[columns]\nstatus = { from = "code", unit = "s" }\n',
        "column 'status' has no convertible unit; remove `unit`",
    ),
    "no TOML": ("{}\n", "not valid TOML: "),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    folder = tmp_path_factory.mktemp("calls")
    write(folder / "x.jsonl", [call(1)])
    calls = {name: arguments for name, (arguments, _) in CALLS.items()}
    for name, (text, _) in CONFIGURATIONS.items():
        (folder / f"{name}.toml").write_text(text)
        calls[f"configuration: {name}"] = ["analyze", "x.jsonl", "--config", f"{name}.toml"]
    for name, (text, _) in MAPPINGS.items():
        (folder / f"{name} map.toml").write_text(text)
        calls[f"mapping: {name}"] = ["analyze", "x.jsonl", "--map", f"{name} map.toml"]
    return dict(zip(calls, run_all(folder, list(calls.values())), strict=True))


def refused(done: Done, said: str) -> None:
    """Assert exit 2, an empty standard output, and one line that says this."""
    assert (done.status, done.out) == (2, "")
    assert is_one_line(done.err)
    assert done.err.removeprefix("quietburn: ").startswith(said)
    assert "Traceback" not in done.err
    assert "internal error" not in done.err


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_cannot_be_used_says_so_in_one_line(name: str, outcomes: dict[str, Done]) -> None:
    refused(outcomes[name], CALLS[name][1])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_used_names_its_file_and_key(name: str, outcomes: dict[str, Done]) -> None:
    refused(outcomes[f"configuration: {name}"], f"configuration {name}.toml: {CONFIGURATIONS[name][1]}")


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_mapping_that_cannot_be_used_names_its_file_and_key(name: str, outcomes: dict[str, Done]) -> None:
    done = outcomes[f"mapping: {name}"]
    refused(done, f"mapping {name} map.toml: ")
    assert MAPPINGS[name][1] in done.err


def test_a_broken_configuration_that_is_found_upward_is_refused_too(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    write(inner / "x.jsonl", [call(1)])
    (tmp_path / "pyproject.toml").write_text("[tool.quietburn]\nmax_retry = 1\n")
    refused(
        run(inner, "analyze", "x.jsonl"),
        f"configuration {tmp_path.resolve() / 'pyproject.toml'}: max_retry: unknown key (did you mean 'max_retries'?).",
    )


@pytest.mark.parametrize("content", ["tool = 5\n", "[tool]\nquietburn = 5\n"])
def test_a_pyproject_that_holds_something_else_there_is_no_fault_of_ours(tmp_path: Path, content: str) -> None:
    write(tmp_path / "x.jsonl", [call(1)])
    (tmp_path / "pyproject.toml").write_text(content)
    done = run(tmp_path, "analyze", "x.jsonl")
    if content.startswith("[tool]"):
        refused(done, f"configuration {tmp_path.resolve() / 'pyproject.toml'}: tool.quietburn: should be a table")
    else:
        assert (done.status, done.err) == (0, "")


def test_every_parameter_of_every_rule_has_a_range_and_a_number_outside_of_it_is_refused() -> None:
    from quietburn.errors import UsageError
    from quietburn.ruleset.files import parse_settings, shipped_rules

    rules = shipped_rules()
    for one in rules:
        for name, parameter in one.parameters.items():
            least, most = parameter.range
            assert least >= 0
            assert parameter.default is None or least <= parameter.default <= most
            for number in (-1, -1e-9, most * 1.01, 1e308):
                with pytest.raises(UsageError) as refused_:
                    parse_settings([f"{one.id}.{name}={number!r}"], rules)
                assert str(refused_.value) == f"{one.id}.{name}: {number!r} is outside its range, {least:g} to {most:g}."


def test_a_number_outside_of_its_range_is_one_line_from_a_flag_and_from_the_configuration(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", [call(1)])
    said = "saturation.waiting_share: -1.0 is outside its range, 0 to 1."
    refused(run(tmp_path, "analyze", "x.jsonl", "--set", "saturation.waiting_share=-1.0"), said)
    (tmp_path / "quietburn.toml").write_text("[rules.saturation]\nwaiting_share = -1.0\n")
    place = f"configuration {tmp_path.resolve()}/quietburn.toml: [rules]: "
    refused(run(tmp_path, "gate", "x.jsonl", "--max-gap", "1%"), place + said)


def test_version_and_the_short_help_exist(tmp_path: Path) -> None:
    version = run(tmp_path, "--version")
    assert (version.status, version.err) == (0, "")
    assert version.out.startswith("quietburn ") and version.out.count("\n") == 1
    for arguments in ([], ["gate"], ["rules", "show"]):
        short, long = run(tmp_path, *arguments, "-h"), run(tmp_path, *arguments, "--help")
        assert short == long
        assert (short.status, short.err) == (0, "")

"""`quietburn dialects` and `quietburn map`, in the real program."""

import json
import tomllib
from pathlib import Path

from tests.cli.program import T0, run, run_all

UNKNOWN = {
    "when": T0, "outcome": {"http_status": 200, "latency_s": 0.25}, "usage": {"input_tokens": 10, "output_tokens": 5},
    "patience_s": 3, "sk-1234567890abcdef": "secret words",
}


def test_dialects_are_listed_and_shown(tmp_path: Path) -> None:
    listed, shown, wrong = run_all(
        tmp_path, [["dialects", "list", "--json"], ["dialects", "show", "nginx"], ["dialects", "show", "ngnix"]]
    )
    names = {entry["name"] for entry in json.loads(listed.out)}
    assert {"litellm", "litellm-spend", "envoy-ai-gateway", "envoy", "nginx", "otlp-genai", "gateway"} <= names
    assert "empty-but-billed: nginx logs no tokens and no answer" in shown.out
    assert "upstream_addr (the last item that says something" in shown.out
    assert (wrong.status, wrong.out) == (2, "")
    assert "did you mean 'nginx'?" in wrong.err


def test_a_proposed_mapping_reads_the_ledger_that_it_was_made_for(tmp_path: Path) -> None:
    lines = [UNKNOWN | {"when": T0 + second, "seen": None if second % 2 else "x"} for second in range(40)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    before, proposal = run_all(tmp_path, [["analyze", "own.jsonl"], ["map", "own.jsonl", "--name", "own"]])
    assert before.status == 2
    assert "--map" in before.err
    assert proposal.status == 0
    mapping = tomllib.loads(proposal.out)
    assert mapping["dialect"]["name"] == "own"
    assert mapping["columns"]["latency_ms"] == {"from": "/outcome/latency_s", "unit": "s"}
    assert mapping["columns"]["ts"] == {"from": "when"}
    assert "its values are times; assumed to be the end" in proposal.out
    assert mapping["columns"]["prompt_tokens"] == {"from": "/usage/input_tokens"}
    assert "#   seen  50%" in proposal.out
    assert "# Rules that this enables: " in proposal.out
    assert "# Result on these lines: 40 lines, 40 attempts, 100.0% answered 2xx, 600 tokens, from 20" in proposal.out
    assert "secret" not in proposal.out
    assert "sk-1234567890abcdef" not in proposal.out
    (tmp_path / "own.toml").write_text(proposal.out)
    after = run(tmp_path, "analyze", "own.jsonl", "--map", "own.toml", "--format", "json")
    assert after.status == 0
    assert after.report["ledger"]["events"] == 40
    assert after.report["ledger"]["files"][0]["dialect"] == "own"
    assert after.report["rates"]["success_rate"] == 1.0


def test_map_says_which_dialect_fits_already_and_refuses_what_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "known.jsonl").write_text(json.dumps({"ts": T0, "status": 200, "latency_ms": 5.0}) + "\n")
    (tmp_path / "words.jsonl").write_text("no ledger\n")
    (tmp_path / "odd.jsonl").write_text('{"1": 2}\n')
    known, words, odd, name = run_all(
        tmp_path, [["map", "known.jsonl"], ["map", "words.jsonl"], ["map", "odd.jsonl"], ["map", "known.jsonl", "--name", "No"]]
    )
    assert "# 1 of 1 lines sampled across known.jsonl fit the dialect 'gateway', which is read without --map" in known.out
    assert tomllib.loads(known.out) == {}
    for done, said in (
        (words, "words.jsonl: none of the sampled lines"), (odd, "odd.jsonl: none of its keys"), (name, "--name 'No'")
    ):
        assert (done.status, done.out) == (2, "")
        assert said in done.err
        assert "Traceback" not in done.err

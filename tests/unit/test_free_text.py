"""Free text that callers write about themselves is no label: classes stand in its place, in the report and in the store."""

import json
from pathlib import Path

import pytest
from tests.cli.program import run
from tests.ledgers import T0, jsonl, read

from quietburn.analysis.run import Request, analyze
from quietburn.common.config import Config, Traffic

CANARY = "xyzzysecret"


def written(folder: Path, **members: object) -> Path:
    path = folder / "ledger.jsonl"
    path.write_bytes(jsonl([{"ts": T0, "request_id": "r1", "route": "/v1/complete", "status": 200, "latency_ms": 5} | members]))
    return path


@pytest.mark.parametrize(
    ("label", "traffic"),
    [
        *((name, name) for name in ("user", "probe", "eval", "batch", "canary", "loadtest")),
        ("synthetic", "probe"), ("Probe", "probe"), (" user ", "user"), ("checkout", "other"), (CANARY, "other"), (7, "other"),
        ("-", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_a_label_is_a_known_class_or_other(label: object, traffic: str | None, tmp_path: Path) -> None:
    assert read(written(tmp_path, traffic=label)).events[1].get("traffic") == traffic


def test_a_configured_class_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, traffic="shadow")
    config = Config(traffic=Traffic(classes=["shadow"]))
    (by_class,) = analyze([str(path)], Request(config=config)).rates.by_traffic
    assert by_class.traffic == "shadow"
    (by_class,) = analyze([str(path)]).rates.by_traffic
    assert by_class.traffic == "other"


def test_a_class_is_configured_in_a_file(tmp_path: Path) -> None:
    written(tmp_path, traffic="shadow")
    (tmp_path / "quietburn.toml").write_text('[traffic]\nclasses = ["shadow"]\n')
    done = run(tmp_path, "analyze", "ledger.jsonl", "--format", "json")
    assert [part["traffic"] for part in done.report["rates"]["by_traffic"]] == ["shadow"]


@pytest.mark.parametrize(
    ("agent", "kept"),
    [
        ("OpenAI/Python 1.2", "OpenAI"), ("kube-probe/1.29", "kube-probe"), ("Consul Health Check", "Consul Health Check"),
        ("Mozilla/5.0 (X11)", "Mozilla"), (f"{CANARY}/1.0", "other"), (f"curl {CANARY}", "other"), (f"curl/8 ({CANARY})", "curl"),
        ("/", "other"), ("-", None),
    ],
)  # fmt: skip
def test_of_a_user_agent_only_a_known_product_is_kept(agent: str, kept: str | None, tmp_path: Path) -> None:
    assert read(written(tmp_path, user_agent=agent)).events[1].get("user_agent") == kept


@pytest.mark.parametrize("route", [f"/v1/complete#{CANARY}", f"/v1/complete?a=1#{CANARY}", f"/v1/complete/#{CANARY}?b"])
def test_a_fragment_names_no_route(route: str, tmp_path: Path) -> None:
    assert read(written(tmp_path, route=route)).events[1]["route"] == "complete"
    assert read(written(tmp_path, route=route.replace("complete", "models"))).events[1]["route"] == "/v1/models"


def test_free_text_is_in_no_output_and_not_in_the_store(tmp_path: Path) -> None:
    written(tmp_path, traffic=CANARY, user_agent=f"{CANARY} {CANARY}/1", route=f"/v1/complete#{CANARY}")
    for command in (["analyze"], ["analyze", "--format", "json"], ["analyze", "--db", "store.db"]):
        done = run(tmp_path, *command, "ledger.jsonl")
        assert done.status == 0
        assert CANARY not in done.out + done.err
    assert CANARY.encode() not in (tmp_path / "store.db").read_bytes()
    assert json.dumps(CANARY) in (tmp_path / "ledger.jsonl").read_text()

"""Replace free text by classes: what callers write about themselves may be anything, so it is never kept."""

from collections.abc import Iterable

from quietburn.common.sql import literal

TRAFFIC_CLASSES = ("user", "probe", "eval", "batch", "canary", "loadtest")
_COUNTED_AS = {"synthetic": "probe"}
OTHER = "other"

PROBE_AGENTS = ("kube-probe", "GoogleHC", "ELB-HealthChecker", "Amazon-Route53-Health-Check-Service", "Consul Health Check")
_AGENTS = (
    *PROBE_AGENTS,
    # checks from outside
    "Blackbox Exporter", "Prometheus", "Datadog Agent", "DatadogSynthetics", "UptimeRobot", "Envoy",
    # SDKs of models
    "OpenAI", "AsyncOpenAI", "AzureOpenAI", "AsyncAzureOpenAI", "Anthropic", "AsyncAnthropic", "litellm", "langchain",
    "LangChain",
    # clients
    "aiohttp", "Apache-HttpClient", "axios", "curl", "Go-http-client", "got", "HTTPie", "httpx", "insomnia", "Java",
    "Java-http-client", "Mozilla", "node", "node-fetch", "okhttp", "PostmanRuntime", "Python", "python-httpx", "Python-httpx",
    "python-requests", "Python-urllib", "reqwest", "Ruby", "undici", "Wget",
    # load tests
    "AIPerf", "Apache-JMeter", "Gatling", "genai-perf", "hey", "k6", "Locust", "wrk",
)  # fmt: skip


def traffic_class(label: str, further: Iterable[str]) -> str:
    """Return SQL for the class that a label names, in any case; `other` where it is none of ours or of `further`."""
    kept = {name.lower(): name for name in (*TRAFFIC_CLASSES, *further)}
    kept |= _COUNTED_AS
    cases = " ".join(f"WHEN {literal(written)} THEN {literal(name)}" for written, name in kept.items())
    return f"CASE lower(trim({label})) {cases} ELSE CASE WHEN {label} IS NOT NULL THEN {literal(OTHER)} END END"


def agent_class(agent: str) -> str:
    """Return SQL for the product that a user agent begins with, where it is a known one; else `other`."""
    product = f"trim(regexp_extract({agent}, '^[A-Za-z][A-Za-z0-9 ._-]*'))"
    known = ", ".join(literal(name) for name in _AGENTS)
    return f"CASE WHEN {product} IN ({known}) THEN {product} WHEN {agent} IS NOT NULL THEN {literal(OTHER)} END"

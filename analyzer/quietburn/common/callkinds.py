"""The kinds of calls."""

from enum import StrEnum


class CallKind(StrEnum):
    """What a call is for; the rates count what generates."""

    GENERATE = "generate"
    READY = "ready"  # health, readiness, liveness
    EMBED = "embed"  # embeddings, rerank, tokenize, moderation, audio and image models
    LIST = "list"  # models, metrics, version, docs
    TOOL = "tool"  # MCP and the like
    OTHER = "other"

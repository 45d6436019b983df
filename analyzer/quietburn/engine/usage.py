"""SQL for the tokens of an attempt, from its total and its parts.

A total that contradicts its parts settles nothing, and a zero beside an answer is an absence that
was written as a number. Definitions: what-counts (tokens).
"""

from quietburn.common.columns import BY_NAME

ZERO_USAGE, CONTRADICTION = "zero_usage", "total_contradicts_parts"
_LENGTH = "lower(finish_reason) IN ('length', 'max_tokens')"


def prompt_tokens(columns: frozenset[str]) -> str:
    """Return the prompt's tokens, cached ones among them where the ledger counts those apart; NULL where no ledger has any."""
    if not {"actual_tokens", "prompt_tokens", "completion_tokens", "cached_tokens"} <= columns:
        return "prompt_tokens" if "prompt_tokens" in columns else f"CAST(NULL AS {BY_NAME['prompt_tokens'].sql_type})"
    return f"CASE WHEN {counts_cached_apart()} THEN prompt_tokens + cached_tokens ELSE prompt_tokens END"


def counts_cached_apart() -> str:
    """Return the predicate, over what a line says: its prompt tokens leave the cached ones out, and its total has them."""
    return "COALESCE(cached_tokens > 0 AND actual_tokens = prompt_tokens + cached_tokens + completion_tokens, FALSE)"


# Over attempts, whose prompt has the cached tokens in it by then.
_NO_TOTAL = "COALESCE(actual_tokens, 0) = 0"
_ANSWERS = " OR ".join(f"COALESCE({sign}, FALSE)" for sign in ("answer_chars > 0", "tool_calls > 0", _LENGTH, "stream"))
_ZERO = f"""is_attempt AND is_2xx AND {_NO_TOTAL} AND (COALESCE(prompt_tokens, actual_tokens - COALESCE(completion_tokens, 0)) = 0
    OR (completion_tokens = 0 AND ({_ANSWERS})))"""
_PARTS = "COALESCE(prompt_tokens, 0) + COALESCE(completion_tokens, 0)"
_DIFFERS = f"""NOT ({_NO_TOTAL}) AND {_PARTS} > 0 AND actual_tokens <> {_PARTS}
    AND (prompt_tokens + completion_tokens IS NOT NULL OR actual_tokens < {_PARTS})"""


# What embeds generates nothing: its prompt is all that it takes.
_EMBEDDED = "CASE WHEN kind = 'embed' THEN prompt_tokens END"


def usage() -> str:
    """Return the columns `usage_fault` (why a line that speaks of its tokens leaves them unknown) and `tokens`."""
    fault = f"CASE WHEN {_ZERO} THEN '{ZERO_USAGE}' WHEN {_DIFFERS} THEN '{CONTRADICTION}' END"
    parts = f"COALESCE(prompt_tokens + completion_tokens, {_EMBEDDED}, actual_tokens)"
    total = f"CASE WHEN {_NO_TOTAL} THEN {parts} ELSE actual_tokens END"
    return f"{fault} AS usage_fault, CASE WHEN usage_fault IS NULL THEN {total} END AS tokens"

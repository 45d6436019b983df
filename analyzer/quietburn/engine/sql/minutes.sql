-- One row for each minute, route, model and backend with attempts; a request counts in the minute its deciding attempt ended.
-- `minute` is the end of the minute, in minutes since 1970.
SELECT minute, route, model, backend, count(*) AS attempts,
    CAST(sum(CASE WHEN status BETWEEN 200 AND 299 THEN 1 ELSE 0 END) AS BIGINT) AS successes,
    CAST(sum(CASE WHEN decides THEN 1 ELSE 0 END) AS BIGINT) AS requests,
    CAST(sum(CASE WHEN decides AND verdict = 'usable' THEN 1 ELSE 0 END) AS BIGINT) AS usable,
    CAST(sum(CASE WHEN decides AND verdict = 'unknown' THEN 1 ELSE 0 END) AS BIGINT) AS unknown,
    CAST(sum(CASE WHEN decides AND verdict IN ('late', 'truncated', 'empty') THEN 1 ELSE 0 END) AS BIGINT) AS false_successes,
    sum(tokens) AS tokens, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
    avg(latency_ms) AS mean_latency_ms, avg(queue_age_ms) AS mean_queue_age_ms, avg(cpu_pct) AS mean_cpu_pct
FROM events WHERE is_attempt AND minute IS NOT NULL
GROUP BY minute, route, model, backend
ORDER BY minute, route, model, backend

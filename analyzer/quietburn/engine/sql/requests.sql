-- One row a request: what one caller wanted once, over all its attempts.
SELECT request_key, min(request_started_us) AS started_us, max(request_deadline_us) AS deadline_us, max(ts_us) AS ended_us,
    max(CASE WHEN decides THEN verdict END) AS verdict, count(*) AS attempts,
    max(CASE WHEN decides THEN status END) AS status, max(CASE WHEN decides THEN latency_ms END) AS latency_ms,
    max(CASE WHEN decides THEN route END) AS route, max(CASE WHEN decides THEN model END) AS model,
    max(CASE WHEN decides THEN backend END) AS backend, max(CASE WHEN decides THEN client END) AS client,
    max(CASE WHEN decides THEN tenant END) AS tenant, max(CASE WHEN decides THEN traffic END) AS traffic,
    sum(tokens) AS tokens
FROM events WHERE in_request
GROUP BY request_key
ORDER BY started_us, request_key

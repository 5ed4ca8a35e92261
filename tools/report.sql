-- The largest aggregates of a report, for DuckDB: a measure of what Spark needs for them.
-- tools/measure_duckdb.py puts in the run's directory and the width of a bin.

-- step: records by fate
WITH leaders AS (
    SELECT topic, partition, arg_max(leader, (t_us, partition_epoch)) AS leader
    FROM '{run}/trace/partition_changes/*.parquet' WHERE leader >= 0 GROUP BY ALL
),
ranges AS (
    SELECT topic, partition, producer_index, first_record, record_count,
        (outcome = 'ok')::INT AS acked, (outcome = 'failed')::INT AS failed,
        (outcome = 'unknown')::INT AS unknown, 0 AS present
    FROM '{run}/trace/client_batches/*.parquet'
    UNION ALL
    SELECT topic, partition, producer_index, first_record, record_count, 0, 0, 0, 1
    FROM '{run}/report/tables/survivors.parquet/*.parquet' JOIN leaders USING (topic, partition)
    WHERE broker = leader AND status = 'ok' AND producer_index >= 0
),
edges AS (
    SELECT topic, partition, producer_index, place, sum(acked) AS acked, sum(failed) AS failed,
        sum(unknown) AS unknown, sum(present) AS present
    FROM (
        SELECT * REPLACE (acked * sign AS acked, failed * sign AS failed,
            unknown * sign AS unknown, present * sign AS present)
        FROM (
            SELECT *, first_record AS place, 1 AS sign FROM ranges
            UNION ALL SELECT *, first_record + record_count, -1 FROM ranges
        )
    ) GROUP BY ALL
),
stretches AS (
    SELECT topic, partition, lead(place) OVER upwards - place AS records,
        sum(acked) OVER upwards AS acked, sum(failed) OVER upwards AS failed,
        sum(unknown) OVER upwards AS unknown, sum(present) OVER upwards AS present
    FROM edges
    WINDOW upwards AS (PARTITION BY topic, partition, producer_index ORDER BY place)
)
SELECT topic, partition,
    sum(records) FILTER (acked > 0 OR failed > 0 OR unknown > 0) AS sent,
    sum(records) FILTER (acked > 0) AS acked,
    sum(records) FILTER (present > 0) AS survived,
    sum(records) FILTER (acked > 0 AND present = 0) AS lost_acked,
    sum(records * (present - 1)) FILTER (present > 1) AS duplicated
FROM stretches WHERE records > 0 GROUP BY ALL ORDER BY ALL;

-- step: latency to the acknowledgement, percentiles by bin
WITH took AS (
    SELECT t_us, unnest(latency_us) AS took_us
    FROM '{run}/trace/client_batches/*.parquet' WHERE outcome = 'ok'
),
counted AS (
    SELECT (t_us - took_us) // {width} AS bin,
        CASE WHEN took_us <= 100 THEN greatest(took_us, 0)
            ELSE ceil(ln(took_us / 100) / ln(1.01) - 1e-9)::INT + 100 END AS bucket,
        count(*) AS records, max(took_us) AS top_us
    FROM took GROUP BY ALL
),
ranked AS (
    SELECT bin, bucket, records, top_us,
        sum(records) OVER (PARTITION BY bin ORDER BY bucket) AS up_to,
        sum(records) OVER (PARTITION BY bin) AS total
    FROM counted
)
SELECT bin, sum(records) AS records, min(bucket) FILTER (up_to >= total * 0.5) AS p50,
    min(bucket) FILTER (up_to >= total * 0.9) AS p90,
    min(bucket) FILTER (up_to >= total * 0.99) AS p99,
    min(bucket) FILTER (up_to >= total * 0.999) AS p999, max(top_us) AS top_us
FROM ranked GROUP BY bin ORDER BY bin;

-- step: latency to the reader, percentiles by bin
WITH matched AS (
    SELECT r.t_us AS read_us, b.t_us, b.latency_us[
        r.first_record - b.first_record + 1 : r.first_record - b.first_record + r.record_count
    ] AS latency_us
    FROM '{run}/trace/reads/*.parquet' r ASOF JOIN '{run}/trace/client_batches/*.parquet' b
    ON r.producer_index = b.producer_index AND r.topic = b.topic AND r.partition = b.partition
        AND r.first_record >= b.first_record
    WHERE r.producer_index >= 0
),
took AS (
    SELECT t_us - took_us AS meant_us, read_us - t_us + took_us AS took_us
    FROM (SELECT t_us, read_us, unnest(latency_us) AS took_us FROM matched)
),
counted AS (
    SELECT meant_us // {width} AS bin,
        CASE WHEN took_us <= 100 THEN greatest(took_us, 0)
            ELSE ceil(ln(took_us / 100) / ln(1.01) - 1e-9)::INT + 100 END AS bucket,
        count(*) AS records, max(took_us) AS top_us
    FROM took GROUP BY ALL
),
ranked AS (
    SELECT bin, bucket, records, top_us,
        sum(records) OVER (PARTITION BY bin ORDER BY bucket) AS up_to,
        sum(records) OVER (PARTITION BY bin) AS total
    FROM counted
)
SELECT bin, sum(records) AS records, min(bucket) FILTER (up_to >= total * 0.5) AS p50,
    min(bucket) FILTER (up_to >= total * 0.99) AS p99, max(top_us) AS top_us
FROM ranked GROUP BY bin ORDER BY bin;

-- step: stages of produce requests
WITH ways AS (
    SELECT b.t_us // {width} AS bin, b.first_sent_us - b.created_us AS client_queue,
        r.arrived_us - b.last_sent_us AS on_the_way, r.started_us - r.arrived_us AS waiting,
        r.decided_us - r.started_us AS append, r.t_us - r.decided_us AS replication,
        b.t_us - r.t_us AS response
    FROM '{run}/trace/client_batches/*.parquet' b JOIN '{run}/trace/requests/*.parquet' r
    ON r.client = b.producer AND r.node = b.answered_by AND r.correlation = b.correlation
    WHERE b.outcome = 'ok' AND b.last_sent_us >= 0 AND r.kind = 'Produce'
)
SELECT bin, count(*) AS batches, avg(client_queue), avg(on_the_way), avg(waiting), avg(append),
    avg(replication), avg(response), max(replication)
FROM ways GROUP BY bin ORDER BY bin;

-- step: gaps in which a partition served no producer
WITH batches AS (
    SELECT topic, partition, outcome, t_us, t_us - latency_us[1] AS start_us
    FROM '{run}/trace/client_batches/*.parquet' WHERE len(latency_us) > 0
),
instants AS (
    SELECT topic, partition, instant, sum(opened) AS opened, max(served) AS served
    FROM (
        SELECT topic, partition, start_us AS instant, 1 AS opened, 0 AS served FROM batches
        UNION ALL
        SELECT topic, partition, t_us, -1, (outcome = 'ok')::INT FROM batches
    ) GROUP BY ALL
),
opened AS (
    SELECT *, sum(opened) OVER (PARTITION BY topic, partition ORDER BY instant) AS open FROM instants
),
gaps AS (
    SELECT topic, partition, open, lead(instant) OVER (
        PARTITION BY topic, partition ORDER BY instant
    ) - instant AS gap_us
    FROM opened WHERE served > 0 OR open = 0 OR open = opened
)
SELECT topic, partition, max(gap_us) AS longest_us, count(*) FILTER (gap_us > 1000000) AS listed
FROM gaps WHERE open > 0 GROUP BY ALL ORDER BY ALL;

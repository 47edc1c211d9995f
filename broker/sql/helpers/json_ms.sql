-- queen.json_ms: a time as JSON in the format of administrative answers: "2026-02-03T04:05:06.123Z" with quotes, or null.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c that build long lists as text
create or replace function queen.json_ms(p_time timestamptz)
returns text
language sql stable parallel safe
as $$
    select coalesce(to_char(p_time at time zone 'UTC', '"\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\""'), 'null')
$$;

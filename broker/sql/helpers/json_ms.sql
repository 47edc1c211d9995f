-- queen.json_ms: a time as administrative answers write it, in JSON: "2026-02-03T04:05:06.123Z" with its quotes, or null.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c that put long lists together as text
create or replace function queen.json_ms(p_time timestamptz)
returns text
language sql stable parallel safe
as $$
    select coalesce(to_char(p_time at time zone 'UTC', '"\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\""'), 'null')
$$;

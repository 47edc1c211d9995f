-- queen.iso_ms: a time in the format of administrative answers, "2026-02-03T04:05:06.123Z".
--
-- called by  the functions behind broker/src/api/sql_endpoint.c
create or replace function queen.iso_ms(p_time timestamptz)
returns text
language sql stable parallel safe
as $$
    select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- queen.iso_s: the time of a bucket in the format of administrative answers, "2026-02-03T04:05:00Z".
--
-- called by  the functions behind broker/src/api/monitoring/analytics.c
create or replace function queen.iso_s(p_time timestamptz)
returns text
language sql stable parallel safe
as $$
    select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

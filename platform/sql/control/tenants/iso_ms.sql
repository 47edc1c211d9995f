-- platform.iso_ms: formats a time for replies: "2026-02-03T04:05:06.123Z".
-- called by: functions that build JSON
-- in: a time          out: text, null for null          locks: none          raises: nothing
create or replace function platform.iso_ms(p_time timestamptz) returns text
language sql stable parallel safe
as $$
    select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- crm.iso_ms(at): formats a time for replies: UTC, milliseconds.
-- called by: statements and functions that build JSON
-- in: a time or null          out: text or null          locks: none          raises: nothing
create or replace function crm.iso_ms(p_at timestamptz) returns text
language sql stable
as $$ select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

-- queen.vacuum_grace: how long the last report of vacuum about a table is used.
--
-- called by  queen.rows_stuck
create or replace function queen.vacuum_grace()
returns interval
language sql immutable
as $$
    select interval '10 minutes'
$$;

-- queen.vacuum_grace: for how long what vacuum has reported about a table is believed.
--
-- called by  queen.rows_stuck
create or replace function queen.vacuum_grace()
returns interval
language sql immutable
as $$
    select interval '10 minutes'
$$;

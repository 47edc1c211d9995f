-- queen.dead_rows_limit: the number of dead rows of a table that vacuum cannot reclaim at which removal pauses.
--
-- called by  queen.rows_stuck
create or replace function queen.dead_rows_limit()
returns bigint
language sql immutable
as $$
    select 200000::bigint
$$;

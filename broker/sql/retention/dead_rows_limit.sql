-- queen.dead_rows_limit: how many removed rows of a table may lie there that vacuum cannot free, before nothing more is removed.
--
-- called by  queen.rows_stuck
create or replace function queen.dead_rows_limit()
returns bigint
language sql immutable
as $$
    select 200000::bigint
$$;

-- queen.dead_versions_limit: the number of dead rows of a small table at which it is rewritten.
--
-- called by  queen.rewrite_bloated_table
create or replace function queen.dead_versions_limit()
returns bigint
language sql immutable
as $$
    select 10000::bigint
$$;

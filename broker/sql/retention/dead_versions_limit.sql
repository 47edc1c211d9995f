-- queen.dead_versions_limit: how many dead versions a small table may hold before it is written anew.
--
-- called by  queen.rewrite_bloated_table
create or replace function queen.dead_versions_limit()
returns bigint
language sql immutable
as $$
    select 10000::bigint
$$;

-- queen.key_partitions: the names of the partitions of a key, one for each priority: the reverse of queen.partition_key. A key that ends
-- like a priority has none without one (queen.partition_named): that is a partition of another key.
--
-- called by  queen.limits_elsewhere
create or replace function queen.key_partitions(p_key text)
returns text[]
language sql immutable
as $$
    select case when p_key ~ '.~p[0-9]$' then '{}' else array[p_key] end || array(select p_key || '~p' || i from generate_series(0, 9) i)
$$;

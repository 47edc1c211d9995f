-- queen.key_partitions: the names of the partitions of a key, one for each priority: the reverse of queen.partition_key.
--
-- called by  queen.limits_elsewhere
create or replace function queen.key_partitions(p_key text)
returns text[]
language sql immutable
as $$
    select array[p_key] || array(select p_key || '~p' || i from generate_series(0, 9) i)
$$;

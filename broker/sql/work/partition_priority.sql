-- queen.partition_priority: the priority of the messages of a partition, 0 (the default) to 9. Its name ends with it, as in "Default~p7".
--
-- called by  queen.pending_lanes, queen.partition_key
--
-- broker/src/broker/queue/lanes.c derives the same from names.
create or replace function queen.partition_priority(p_name text)
returns int
language sql immutable
as $$
    select case when p_name ~ '.~p[0-9]$' then right(p_name, 1)::int else 0 end
$$;

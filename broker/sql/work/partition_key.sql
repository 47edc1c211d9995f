-- queen.partition_key: the key whose limits a partition of a work queue shares: its name without the priority.
--
-- called by  queen.claim_work
create or replace function queen.partition_key(p_name text)
returns text
language sql immutable
as $$
    select case when p_name ~ '.~p[0-9]$' then left(p_name, -3) else p_name end
$$;

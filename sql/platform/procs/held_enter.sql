-- platform.held_enter(queue, partition, partition_id, epoch): a partition has a new owner; the lanes it begins with.
-- called by: src/ingest/lanes.c
-- in:  partition_id, epoch: of the ownership, as the broker gave it
-- out: the lanes, with wait_ms until they are tried next
-- locks: the row of the partition: behind it no earlier owner can say anything about its lanes
-- raises: 55000 when a later owner was here first
create or replace function platform.held_enter(p_queue text, p_partition text, p_partition_id text, p_epoch bigint)
returns table (tenant text, attempts int, wait_ms bigint)
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    insert into platform.held_partition as h (queue, partition, partition_id, epoch)
    values (p_queue, p_partition, p_partition_id, p_epoch)
        on conflict on constraint held_partition_pkey do update
       set partition_id = excluded.partition_id, epoch = excluded.epoch
     where h.partition_id <> excluded.partition_id or h.epoch <= excluded.epoch;
    if not found then
        raise exception 'partition % of % has another owner by now', p_partition, p_queue using errcode = '55000';
    end if;
    -- A statement of its own: its snapshot is younger than the lock.
    return query
    select l.tenant, l.attempts, greatest(0, extract(epoch from l.next_attempt_at - clock_timestamp()) * 1000)::bigint
      from platform.held_lane l
     where l.queue = p_queue and l.partition = p_partition;
end
$$;

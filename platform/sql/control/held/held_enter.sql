-- platform.held_enter(queue, partition, partition_id, epoch, instead_of): records a new owner of a partition and returns
-- its lanes.
--
-- After a restore of the broker's database the recorded epoch may be later than the broker's.  A refused owner asks the
-- broker whether its own epoch is current.  If so, it enters again with the refusing epoch as instead_of.
-- called by: platform/src/ingest/lanes.c
-- in:  partition_id, epoch: of the ownership, from the broker; instead_of: null, or a recorded epoch that is invalid
-- out: the lanes, with wait_ms until the next attempt; replay: the tenant has lost events, which are applied first.  If a
-- later owner has entered: one row without a tenant, whose wait_ms is the epoch of that owner
-- locks: the row of the partition: after it no earlier owner can change its lanes
-- raises: nothing
create or replace function platform.held_enter(p_queue text, p_partition text, p_partition_id text, p_epoch bigint, p_instead_of bigint)
returns table (tenant text, attempts int, wait_ms bigint, replay boolean)
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    insert into platform.held_partition as h (queue, partition, partition_id, epoch)
    values (p_queue, p_partition, p_partition_id, p_epoch)
        on conflict on constraint held_partition_pkey do update
       set partition_id = excluded.partition_id, epoch = excluded.epoch
     where h.partition_id <> excluded.partition_id or h.epoch <= excluded.epoch or h.epoch = p_instead_of;
    if not found then
        return query
        select null::text, 0, h.epoch, false from platform.held_partition h where h.queue = p_queue and h.partition = p_partition;
        return;
    end if;
    -- A separate statement, so that its snapshot is newer than the lock.
    return query
    select l.tenant, l.attempts, greatest(0, extract(epoch from l.next_attempt_at - clock_timestamp()) * 1000)::bigint, l.replay
      from platform.held_lane l
     where l.queue = p_queue and l.partition = p_partition;
end
$$;

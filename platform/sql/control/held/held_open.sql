-- platform.held_open(queue, partition, partition_id, epoch, tenant, wait_ms, why, replay): records a lane before its first
-- event is pushed.
-- needs: held_owner
-- called by: platform/src/ingest/lane.c
-- in:  wait_ms: until the first attempt; replay: the tenant has lost events, which are applied before those in the lane
-- out: nothing        locks: the partition, shared; the lane
-- raises: 55000 when the partition has another owner
create or replace function platform.held_open(p_queue text, p_partition text, p_partition_id text, p_epoch bigint, p_tenant text,
                                              p_wait_ms bigint, p_why text, p_replay boolean) returns void
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    perform platform.held_owner(p_queue, p_partition, p_partition_id, p_epoch);
    insert into platform.held_lane as h (queue, partition, tenant, since, attempts, next_attempt_at, last_error, replay)
    values (p_queue, p_partition, p_tenant, clock_timestamp(), 1, clock_timestamp() + p_wait_ms * interval '1 ms', p_why, p_replay)
        on conflict (queue, partition, tenant) do update
       set last_error = excluded.last_error, replay = h.replay or excluded.replay;
end
$$;

-- platform.held_note(queue, partition, partition_id, epoch, tenant, attempts, wait_ms, why): records a failed attempt.
-- needs: held_owner
-- called by: platform/src/ingest/lane.c
-- in:  attempts: so far; wait_ms: until the next        out: nothing        locks: the partition, shared; the lane
-- raises: 55000 when the partition has another owner
create or replace function platform.held_note(p_queue text, p_partition text, p_partition_id text, p_epoch bigint, p_tenant text,
                                              p_attempts int, p_wait_ms bigint, p_why text) returns void
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    perform platform.held_owner(p_queue, p_partition, p_partition_id, p_epoch);
    -- The lane is missing if it was found at the broker, or if this database was restored from a backup.
    insert into platform.held_lane as h (queue, partition, tenant, since, attempts, next_attempt_at, last_error)
    values (p_queue, p_partition, p_tenant, clock_timestamp(), p_attempts, clock_timestamp() + p_wait_ms * interval '1 ms', p_why)
        on conflict (queue, partition, tenant) do update
       set attempts = excluded.attempts, next_attempt_at = excluded.next_attempt_at, last_error = excluded.last_error;
end
$$;

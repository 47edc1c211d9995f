-- platform.held_note(queue, partition, partition_id, epoch, tenant, attempts, wait_ms, why): an attempt has failed.
-- needs: held_owner
-- called by: src/ingest/lane.c
-- in:  attempts: so far; wait_ms: until the next        out: nothing        locks: the partition, shared; the lane
-- raises: 55000 when the partition has another owner
create or replace function platform.held_note(p_queue text, p_partition text, p_partition_id text, p_epoch bigint, p_tenant text,
                                              p_attempts int, p_wait_ms bigint, p_why text) returns void
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    perform platform.held_owner(p_queue, p_partition, p_partition_id, p_epoch);
    update platform.held_lane h
       set attempts = p_attempts, next_attempt_at = clock_timestamp() + p_wait_ms * interval '1 ms', last_error = p_why
     where h.queue = p_queue and h.partition = p_partition and h.tenant = p_tenant;
end
$$;

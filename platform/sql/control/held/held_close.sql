-- platform.held_close(queue, partition, partition_id, epoch, tenant): deletes a lane that was found empty.
-- needs: held_owner
-- called by: platform/src/ingest/lane.c
-- in:  the owner        out: nothing        locks: the partition, shared; the lane
-- raises: 55000 when the partition has another owner, for whom the lane may contain events again
create or replace function platform.held_close(p_queue text, p_partition text, p_partition_id text, p_epoch bigint, p_tenant text)
returns void
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    perform platform.held_owner(p_queue, p_partition, p_partition_id, p_epoch);
    delete from platform.held_lane h where h.queue = p_queue and h.partition = p_partition and h.tenant = p_tenant;
end
$$;

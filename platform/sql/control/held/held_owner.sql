-- platform.held_owner(queue, partition, partition_id, epoch): whoever speaks of the lanes of a partition is its owner.
--
-- Epochs of a partition grow.  A caller of a later epoch than the noted one has entered the partition before this database was restored from a
-- backup: it is noted again.
-- called by: platform.held_open, held_note, held_close, each before it changes anything
-- in:  partition_id, epoch: as which the caller has entered the partition (platform.held_enter)
-- out: nothing        locks: the row of the partition, shared: a new owner waits for what the old one has begun
-- raises: 55000 when somebody has entered it since
create or replace function platform.held_owner(p_queue text, p_partition text, p_partition_id text, p_epoch bigint) returns void
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    perform from platform.held_partition h
    where h.queue = p_queue and h.partition = p_partition and h.partition_id = p_partition_id and h.epoch = p_epoch
    for share;
    if found then
        return;
    end if;
    insert into platform.held_partition as h (queue, partition, partition_id, epoch)
    values (p_queue, p_partition, p_partition_id, p_epoch)
        on conflict on constraint held_partition_pkey do update set epoch = excluded.epoch
     where h.partition_id = excluded.partition_id and h.epoch <= excluded.epoch;
    if not found then
        raise exception 'partition % of % has another owner by now', p_partition, p_queue using errcode = '55000';
    end if;
end
$$;

-- platform.held_owner(queue, partition, partition_id, epoch): checks that the caller owns the partition.
--
-- Epochs of a partition grow.  A caller with a later epoch than the recorded one entered the partition before this database
-- was restored from a backup: its epoch is recorded again.
-- called by: platform.held_open, held_note, held_close, each before it changes anything
-- in:  partition_id, epoch: as the caller entered the partition (platform.held_enter)
-- out: nothing        locks: the row of the partition, shared: a new owner waits for calls of the old one
-- raises: 55000 when another owner has entered it since
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

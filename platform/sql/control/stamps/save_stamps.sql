-- platform.save_stamps(queue, tenants, partitions, stamps): records stamps that tenants' databases have committed.
-- called by: platform/src/ingest/stamps.c, every few seconds for the tenants that had events
-- in:  tenants, partitions, stamps: arrays of one length, each pair of tenant and partition once
-- out: nothing        locks: rows of ingest_stamp, by tenant and partition; new ones also the row of platform.tenant, shared
-- raises: nothing; unknown tenants are ignored, and an older stamp does not replace a later one
create or replace function platform.save_stamps(p_queue text, p_tenants text[], p_partitions text[], p_stamps bigint[]) returns void
language sql
set search_path = platform, pg_temp
as $$
    insert into platform.ingest_stamp as s (tenant, queue, partition, stamp)
    select n.tenant, p_queue, n.partition, n.stamp
      from unnest(p_tenants, p_partitions, p_stamps) n(tenant, partition, stamp)
      join platform.tenant t on t.name = n.tenant and t.state <> 'gone'
     order by n.tenant, n.partition
        on conflict (tenant, queue, partition) do update set stamp = excluded.stamp
     where s.stamp < excluded.stamp;
$$;

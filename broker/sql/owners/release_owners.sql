-- queen.release_owners: POST /api/v1/consumer-groups/:group/queues/:queue/owners/release.
--
-- needs: read_owned, lock_owned, change_hands, notify_group
-- called by  broker/src/api/admin/owners.c
-- in         body.owner; body.partitions: [{"partition", "epoch"}]
-- out        {"released": n}: other processors may claim these at once. Partitions that the owner has lost are left alone. The processor
--            that requested a partition stays in its record until it is claimed: the others leave the partition to it for a while
-- locks      as queen.lock_owned
create or replace function queen.release_owners(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_group    text := p_args ->> 'group';
    v_owner    text := p_args -> 'body' ->> 'owner';
    v_released int := 0;
    v_ended    boolean := false;
    w          record;
begin
    perform queen.lock_owned(array(select r.lane from queen.read_owned(p_args) r where r.lane is not null), v_group, false);
    for w in select * from queen.read_owned(p_args) order by lane, idx loop
        update queen.owners o
           set owner = null, epoch = o.epoch + 1, since = clock_timestamp(), expires_at = clock_timestamp()
         where o.lane = w.lane and o.grp = v_group and o.owner = v_owner and o.epoch = w.epoch;
        if found then
            v_released := v_released + 1;
            insert into queen.owner_changes (at, queue_id, grp, partition, epoch, previous, owner, expired)
            select clock_timestamp(), l.queue_id, v_group, l.name, w.epoch + 1, v_owner, null, false from queen.lanes l where l.num = w.lane;
            v_ended := queen.change_hands(w.lane, v_group, null, false) or v_ended;
        end if;
    end loop;
    if v_ended then
        perform queen.notify_group(p_args ->> 'queue', v_group);
    end if;
    return json_build_object('released', v_released);
end
$$;

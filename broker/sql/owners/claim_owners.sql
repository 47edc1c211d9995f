-- queen.claim_owners: POST /api/v1/consumer-groups/:group/queues/:queue/owners/claim.
--
-- needs: read_owned, lock_owned, change_hands, notify_group, option_int, option_bool
-- called by  broker/src/api/admin/owners.c
-- in         body.owner; body.partitions: [{"partition", "epoch"}], epoch: the last known one, 0 if there was no record;
--            body.expirySeconds (60), body.steal: also from an owner that has not expired, body.manualCheckpoints: deliver again the
--            messages after the last checkpoint when the owner changes
-- out        {"results":[...]}, one per partition in order: success with the new epoch, or error with the current owner and epoch
-- locks      as queen.lock_owned
-- raises     QN001 for a malformed request
create or replace function queen.claim_owners(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_group   text := p_args ->> 'group';
    v_body    jsonb := p_args -> 'body';
    v_expiry  interval := queen.option_int(v_body, 'expirySeconds', 60, 1) * interval '1 second';
    v_steal   boolean := queen.option_bool(v_body, 'steal', false);
    v_manual  boolean := queen.option_bool(v_body, 'manualCheckpoints', false);
    v_results json[] := '{}';
    v_ended   boolean := false;
    v_now     timestamptz;
    w         record;
    o         queen.owners%rowtype;
    v_error   text;
begin
    perform queen.lock_owned(array(select r.lane from queen.read_owned(p_args) r where r.lane is not null), v_group, true);
    for w in select * from queen.read_owned(p_args) order by lane, idx loop
        v_error := null;
        select * into o from queen.owners where lane = w.lane and grp = v_group; -- locked
        if not found and w.lane is not null then -- its group was deleted, or the partition created, after the locks were taken
            raise exception 'partition "%" was modified concurrently', w.partition using errcode = '40001';
        elsif not found then
            v_results[w.idx] := json_build_object('partition', w.partition, 'success', false, 'error', 'no such partition',
                                                  'owner', null, 'epoch', 0);
            continue;
        end if;
        v_now := clock_timestamp();
        if o.epoch <> w.epoch then
            v_error := 'the epoch has changed';
        elsif o.owner <> v_body ->> 'owner' and o.expires_at > v_now and not v_steal then
            v_error := 'it has another owner';
        else
            v_ended := queen.change_hands(w.lane, v_group, case when v_manual then o.checkpoint end, true) or v_ended;
            insert into queen.owner_changes (at, queue_id, grp, partition, epoch, previous, owner, expired)
            select v_now, l.queue_id, v_group, l.name, o.epoch + 1, o.owner, v_body ->> 'owner', o.owner is not null and o.expires_at <= v_now
              from queen.lanes l where l.num = w.lane;
            o.epoch := o.epoch + 1;
            o.owner := v_body ->> 'owner';
            update queen.owners
               set owner = o.owner, epoch = o.epoch, since = v_now, expires_at = v_now + v_expiry, wanted_by = null, wanted_at = null,
                   checkpoint = case when v_manual then o.checkpoint end,
                   checkpoint_at = case when v_manual then o.checkpoint_at end
             where lane = w.lane and grp = v_group;
        end if;
        v_results[w.idx] := json_build_object('partition', w.partition, 'partitionId', w.lane_id, 'success', v_error is null,
                                              'error', v_error, 'owner', o.owner, 'epoch', o.epoch);
    end loop;
    if v_ended then
        perform queen.notify_group(p_args ->> 'queue', v_group);
    end if;
    return json_build_object('results', v_results);
end
$$;

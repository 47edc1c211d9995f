-- queen.ask_owners: POST /api/v1/consumer-groups/:group/queues/:queue/owners/ask.
--
-- needs: read_owned
-- called by  broker/src/api/admin/owners.c
-- in         body.owner: the processor that wants the partitions; body.partitions: [{"partition", "epoch"}]
-- out        {"asked": n}: the owners find the request in the list, finish their work and release the partitions. The first request is
--            kept; a partition whose owner has changed is left alone
-- locks      rows of owners by lane
create or replace function queen.ask_owners(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_asked int := 0;
    w       record;
begin
    for w in select * from queen.read_owned(p_args) order by lane, idx loop
        update queen.owners o
           set wanted_by = coalesce(o.wanted_by, p_args -> 'body' ->> 'owner'), wanted_at = coalesce(o.wanted_at, clock_timestamp())
         where o.lane = w.lane and o.grp = p_args ->> 'group' and o.epoch = w.epoch and o.owner is not null;
        v_asked := v_asked + found::int;
    end loop;
    return json_build_object('asked', v_asked);
end
$$;

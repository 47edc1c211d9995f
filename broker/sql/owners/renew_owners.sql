-- queen.renew_owners: POST /api/v1/consumer-groups/:group/queues/:queue/owners/renew.
--
-- needs: read_owned, option_int
-- called by  broker/src/api/admin/owners.c
-- in         body.owner; body.partitions: [{"partition", "epoch"}]; body.expirySeconds (60)
-- out        {"renewed": n, "lost": ["3", ...]}: lost ones have another owner now. A claim that has expired, but whose partition has not
--            been claimed by another processor, is renewed, too
-- locks      rows of owners by lane
create or replace function queen.renew_owners(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_body   jsonb := p_args -> 'body';
    v_expiry interval := queen.option_int(v_body, 'expirySeconds', 60, 1) * interval '1 second';
    v_lanes  bigint[];
    v_kept   bigint[];
    v_lost   json;
begin
    v_lanes := array(select w.lane from queen.read_owned(p_args) w where w.lane is not null);
    perform o.lane from queen.owners o
      where o.lane = any (v_lanes) and o.grp = p_args ->> 'group' order by o.lane for update;
    with kept as (
        update queen.owners o set expires_at = clock_timestamp() + v_expiry
          from queen.read_owned(p_args) w
         where o.lane = w.lane and o.grp = p_args ->> 'group' and o.owner = v_body ->> 'owner' and o.epoch = w.epoch
        returning o.lane)
    select array_agg(k.lane) into v_kept from kept k;
    select coalesce(json_agg(w.partition order by w.idx), '[]') into v_lost
      from queen.read_owned(p_args) w where w.lane = any (v_kept) is not true;
    return json_build_object('renewed', coalesce(cardinality(v_kept), 0), 'lost', v_lost);
end
$$;

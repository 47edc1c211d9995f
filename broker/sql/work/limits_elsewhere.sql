-- queen.limits_elsewhere: the use of limits by other partitions of a work queue.
--
-- needs: latest_state, count_leased, expired_leases
-- called by  queen.limit_work
-- in         p_consumer: of the group p_group, not counted; p_key: only partitions of this key, one for each priority; null: all of
--            the queue; p_count: count leases
-- out        lanes: their number, with retry lanes; leased: messages under leases (0 without p_count); rate_at, key_rate_at: the latest
create or replace function queen.limits_elsewhere(
    p_consumer bigint, p_queue uuid, p_group text, p_key text, p_count boolean, p_now timestamptz,
    out lanes bigint, out leased bigint, out rate_at timestamptz, out key_rate_at timestamptz)
language plpgsql stable
as $$
declare
    v_lanes bigint[];
begin
    if p_key is null then
        v_lanes := array(select l.num from queen.lanes l where l.queue_id = p_queue
                          union all
                         select l.num from queen.lanes l where l.origin_queue = p_queue and l.name = p_group and l.origin is not null);
    else
        v_lanes := array(select l.num from unnest(queen.key_partitions(p_key)) n(name)
                          cross join lateral (select k.num from queen.lanes k where k.queue_id = p_queue and k.name = n.name offset 0) l);
        v_lanes := v_lanes || array(select r.num from unnest(v_lanes) u(num)
                                     cross join lateral (select k.num from queen.lanes k
                                                          where k.origin = u.num and k.origin is not null and k.name = p_group offset 0) r);
    end if;
    select count(*), max(s.rate_at), max(s.key_rate_at),
           coalesce(sum(case when not p_count then 0
                             when s.taken_seq is null then case when s.lease_until > p_now then s.batch_size - s.acked else 0 end
                             when s.batch_size = 0 or s.leased = 0 then 0
                             when s.leased is null
                             then (select h.leased from queen.count_leased(s.consumer, s.holds_from, s.walk_seq, s.swept_at, s.batch_size, p_now) h)
                             else s.leased - (select e.messages from queen.expired_leases(s.consumer, s.holds_from, s.walk_seq, s.leases_at,
                                                                                          p_now, 10000) e) end), 0)
      into lanes, rate_at, key_rate_at, leased
      from unnest(v_lanes) l(num)
      join queen.consumers c on c.lane = l.num and c.grp = p_group
      cross join lateral queen.latest_state(c.num) s
     where c.num <> p_consumer;
end
$$;

-- queen.limit_work: how many messages of a work queue a group may get now, by maxInFlight and rateLimit.
--
-- needs: latest_state, newest_hold, count_leased, expired_leases
-- called by  queen.claim_work, which has locked the consumer and has the advisory lock of (queue, group), so no other claim of the
--            group is under way
-- in         st: the state of the consumer; p_queue, p_group; options of the queue: p_most (maxInFlight), p_rate, p_burst; 0: no limit
-- out        leased, leases_at: for its next state. room: messages that may be leased; tokens: messages that may be delivered (null: any
--            number); used_at: as rate_at of a state, before this claim; alone: the group has no other partition here; partial: many
--            leases have expired, and not all of them were counted
--
-- The count of a partition follows its claims and acknowledgements. Leases that expire are subtracted here, each once: those that end
-- from leases_at on are still in the count. Partitions of the group in which nothing was claimed since are read, but not changed.
--
-- A rate is a point in time, up to which it is used up: it moves by 1 / p_rate for each delivered message, and is at most p_burst
-- messages behind. It is the latest of all partitions of the group, so no row of its own is needed.
create or replace function queen.limit_work(
    st queen.consumer_states, p_queue uuid, p_group text, p_most int, p_rate double precision, p_burst int, p_now timestamptz,
    out leased int, out leases_at timestamptz, out room bigint, out tokens bigint, out used_at timestamptz, out alone boolean,
    out partial boolean)
language plpgsql
as $$
declare
    v_expired record;
    v_others  bigint;
    v_n       int;
begin
    partial := false;
    if p_most > 0 then
        leased := st.leased;
        leases_at := p_now;
        if st.batch_size = 0 then
            leased := 0;
        elsif leased is null then -- the option is new
            leased := (queen.count_leased(st.consumer, st.holds_from, st.walk_seq, st.swept_at, st.batch_size, p_now)).leased;
        elsif leased > 0 then
            for i in 1 .. 10 loop
                select * into v_expired from queen.expired_leases(st.consumer, st.holds_from, st.walk_seq, st.leases_at, p_now, 2000);
                leased := leased - v_expired.messages;
                st.leases_at := v_expired.upto;
                exit when st.leases_at = p_now;
            end loop;
            leases_at := st.leases_at;
            partial := leases_at < p_now;
        end if;
    end if;

    select count(*), max(s.rate_at),
           sum(case when s.taken_seq is null then case when s.lease_until > p_now then s.batch_size - s.acked else 0 end
                    when s.batch_size = 0 or s.leased = 0 or p_most = 0 then 0
                    when s.leased is null
                    then (select h.leased from queen.count_leased(s.consumer, s.holds_from, s.walk_seq, s.swept_at, s.batch_size, p_now) h)
                    else s.leased - (select e.messages from queen.expired_leases(s.consumer, s.holds_from, s.walk_seq, s.leases_at,
                                                                                 p_now, 10000) e) end)
      into v_n, used_at, v_others
      from (select l.num from queen.lanes l where l.queue_id = p_queue
             union all
            select l.num from queen.lanes l where l.origin_queue = p_queue and l.name = p_group and l.origin is not null) l
      join queen.consumers c on c.lane = l.num and c.grp = p_group
      cross join lateral queen.latest_state(c.num) s
     where c.num <> st.consumer;
    alone := v_n = 0;
    if p_most > 0 then
        room := greatest(p_most - leased - coalesce(v_others, 0), 0);
    end if;
    if p_rate > 0 then
        used_at := greatest(used_at, st.rate_at, p_now - p_burst / p_rate * interval '1 second');
        -- A microsecond more, because times are rounded.
        tokens := greatest(floor((extract(epoch from p_now - used_at)::float8 + 0.000001) * p_rate), 0);
    else
        used_at := null;
    end if;
end
$$;

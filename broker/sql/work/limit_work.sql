-- queen.limit_work: how many messages of a work queue a group may get now from one partition, by the limits of the queue and of the key.
--
-- needs: count_leased, expired_leases, limits_elsewhere
-- called by  queen.claim_work, which has locked the consumer and has the advisory lock of queen.lock_limits, so no other claim that the
--            limits concern is under way
-- in         st: the state of the consumer; p_queue, p_group; p_key: key of the partition; options of the queue: p_most (maxInFlight), p_rate,
--            p_burst, and of each key: p_key_most, p_key_rate, p_key_burst; 0: no limit
-- out        leased, leases_at: for its next state. room: messages that may be leased; tokens: messages that may be delivered (null: any
--            number); queue_room, queue_tokens: likewise, by the limits of the queue alone; used_at, key_used_at: as rate_at and
--            key_rate_at of a state, before this claim; look: wait so long for room that no acknowledgement of this partition makes;
--            partial: many leases have expired, and not all of them were counted
--
-- The count of a partition follows its claims and acknowledgements. Leases that expire are subtracted here, each once: those that end
-- from leases_at on are still in the count. Other partitions of the group, in which nothing was claimed since, are read but not changed.
--
-- A rate is a point in time, up to which it is used up: it moves by 1 / rate for each delivered message, and is at most its burst behind.
-- It is the latest of all partitions of the group, or of the key, so no row of its own is needed.
create or replace function queen.limit_work(
    st queen.consumer_states, p_queue uuid, p_group text, p_key text, p_most int, p_rate double precision, p_burst int,
    p_key_most int, p_key_rate double precision, p_key_burst int, p_now timestamptz,
    out leased int, out leases_at timestamptz, out room bigint, out tokens bigint, out queue_room bigint, out queue_tokens bigint,
    out used_at timestamptz, out key_used_at timestamptz, out look interval, out partial boolean)
language plpgsql
as $$
declare
    v_expired record;
    v_other   record;
begin
    partial := false;
    look := '5 seconds';
    if p_most > 0 or p_key_most > 0 then
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

    if p_most > 0 or p_rate > 0 then
        select * into v_other from queen.limits_elsewhere(st.consumer, p_queue, p_group, null, p_most > 0, p_now);
        look := case when v_other.lanes = 0 then '1 second' else '100 milliseconds' end;
        if p_most > 0 then
            queue_room := greatest(p_most - leased - v_other.leased, 0);
        end if;
        if p_rate > 0 then
            used_at := greatest(v_other.rate_at, st.rate_at, p_now - p_burst / p_rate * interval '1 second');
            -- A microsecond more, because times are rounded.
            queue_tokens := greatest(floor((extract(epoch from p_now - used_at)::float8 + 0.000001) * p_rate), 0);
        end if;
    end if;
    room := queue_room;
    tokens := queue_tokens;
    if p_key_most > 0 or p_key_rate > 0 then
        select * into v_other from queen.limits_elsewhere(st.consumer, p_queue, p_group, p_key, p_key_most > 0, p_now);
        look := least(look, case when v_other.lanes = 0 then '5 seconds' else '100 milliseconds' end::interval);
        if p_key_most > 0 then
            room := least(room, greatest(p_key_most - leased - v_other.leased, 0));
        end if;
        if p_key_rate > 0 then
            key_used_at := greatest(v_other.key_rate_at, st.key_rate_at, p_now - p_key_burst / p_key_rate * interval '1 second');
            tokens := least(tokens, greatest(floor((extract(epoch from p_now - key_used_at)::float8 + 0.000001) * p_key_rate), 0)::bigint);
        end if;
    end if;
end
$$;

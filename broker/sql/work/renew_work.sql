-- queen.renew_work: extend leases of work queues. A lease is never shortened, and an expired lease is not renewed.
--
-- numbers:   why renew_why
-- needs: leased_holds, latest_state
-- called by  queen.renew_leases, which has locked the consumers
-- in         one element per lease: key of the lease id, seconds from now; p_key: one message of it, null: all of them
-- out        one row per lease that is known here, in order: why 0 ok, 2 expired, or settled; expires_at: its earliest expiry
--
-- A single message whose time is extended leaves its hold: it gets one of its own, with the same lease.
create or replace function queen.renew_work(p_lease uuid[], p_seconds int[], p_key uuid[])
returns table (idx int, why int2, expires_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_slot   "char";
    v_now    timestamptz;
    st       queen.consumer_states%rowtype;
    h        queen.holds;
    v_longer timestamptz;
    v_lane   bigint;
    v_bit    int;
    v_open   boolean;
begin
    select r.active into v_slot from queen.rotation r;
    for i in 1 .. cardinality(p_lease) loop
        idx := i - 1;
        why := null;
        expires_at := null;
        for h in select * from queen.leased_holds(array[p_lease[i]]) loop
            if st.consumer is distinct from h.consumer then
                select * into st from queen.latest_state(h.consumer);
            end if;
            v_now := greatest(clock_timestamp(), st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
            why := coalesce(why, 2);
            continue when st.taken_seq is null or h.hold < st.holds_from or h.first_seq < st.walk_seq or h.until is null or h.until <= v_now;
            v_longer := greatest(h.until, v_now + p_seconds[i] * interval '1 second');
            if p_key[i] is not null then
                select c.lane into v_lane from queen.consumers c where c.num = h.consumer;
                v_bit := queen.find_message(v_lane, p_key[i]) - h.first_seq;
                continue when (v_bit between 0 and h.count - 1) is not true;
                v_open := h.done is null or get_bit(h.done, v_bit) = 0;
                continue when not v_open;
            end if;
            why := 0;
            expires_at := least(expires_at, v_longer);
            continue when v_longer = h.until;
            if p_key[i] is null or h.count = 1 then
                insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
                values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, v_slot, h.at, v_longer, h.lease, h.done);
            else
                h.done := set_bit(coalesce(h.done, decode(repeat('00', (h.count + 7) / 8), 'hex')), v_bit, 1);
                insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
                values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, v_slot, h.at,
                        case when bit_count(h.done) < h.count then h.until end, h.lease, h.done),
                       (h.consumer, h.first_seq + v_bit, st.ver + 1, 1, 1, h.deliveries, h.retries, v_slot, h.at, v_longer, h.lease, null);
                -- The number of the new hold is that of a new version of the state.
                st.ver := st.ver + 1;
                st.slot := v_slot;
                insert into queen.consumer_states select (st).*;
            end if;
        end loop;
        if why is not null then
            return next;
        end if;
    end loop;
end
$$;

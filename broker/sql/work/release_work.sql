-- queen.release_work: give back the messages of leases of work queues. They can be delivered again at once.
--
-- needs: leased_holds, latest_state
-- called by  queen.release_leases, which has locked p_consumer
-- in         p_lease: keys of lease ids. p_consumer: consumers whose lock the caller has
-- out        the consumers that have messages again. A delivery that the client has not seen does not count, so the number of
--            deliveries goes back by one. Holds with settled messages are not released
create or replace function queen.release_work(p_lease uuid[], p_consumer bigint[])
returns table (consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_slot "char";
    v_now  timestamptz;
    st     queen.consumer_states%rowtype;
    h      queen.holds;
begin
    select r.active into v_slot from queen.rotation r;
    for h in select k.* from queen.leased_holds(p_lease) k where k.consumer = any (p_consumer) loop
        if st.consumer is distinct from h.consumer then
            select * into st from queen.latest_state(h.consumer);
            v_now := greatest(clock_timestamp(), st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
            if st.taken_seq is not null then
                st.leased := st.leased - coalesce((
                    select sum(k.count) from queen.leased_holds(p_lease) k
                     where k.consumer = h.consumer and k.hold >= st.holds_from and k.first_seq >= st.walk_seq
                       and k.until > st.leases_at and k.done is null), 0);
                st.ver := st.ver + 1;
                st.slot := v_slot;
                insert into queen.consumer_states select (st).*;
                consumer := h.consumer;
                return next;
            end if;
        end if;
        continue when st.taken_seq is null or h.hold < st.holds_from or h.first_seq < st.walk_seq or h.until is null or h.done is not null;
        insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
        values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, v_slot, h.at, null, h.lease, h.done),
               (h.consumer, h.first_seq, st.ver, 1, h.count, h.deliveries - 1, h.retries, v_slot, null, v_now, null, null);
    end loop;
end
$$;

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
    k      record; -- the holds of a consumer
    h      queen.holds;
begin
    select r.active into v_slot from queen.rotation r;
    for k in
        select o.consumer, array_agg(o::queen.holds order by o.hold desc, o.first_seq) as holds
          from queen.leased_holds(p_lease) o where o.consumer = any (p_consumer) group by o.consumer
    loop
        select * into st from queen.latest_state(k.consumer);
        continue when st.taken_seq is null;
        v_now := greatest(clock_timestamp(), st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
        st.leased := st.leased - coalesce((
            select sum(o.count) from unnest(k.holds) o
             where o.hold >= st.holds_from and o.first_seq >= st.walk_seq and o.until > st.leases_at and o.done is null), 0);
        st.ver := st.ver + 1;
        st.slot := v_slot;
        insert into queen.consumer_states select (st).*;
        consumer := k.consumer;
        return next;
        foreach h in array k.holds loop
            continue when h.hold < st.holds_from or h.first_seq < st.walk_seq or h.until is null or h.done is not null;
            insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
            values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, v_slot, h.at, null, h.lease, h.done),
                   (h.consumer, h.first_seq, st.ver, 1, h.count, h.deliveries - 1, h.retries, v_slot, null, v_now, null, null);
        end loop;
    end loop;
end
$$;

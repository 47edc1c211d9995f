-- queen.drop_work: settle messages of a work queue that are not to be delivered any more.
--
-- needs: hold_of, work_floor
-- called by  queen.step_over, queen.set_aside, which have locked the consumer
-- in         st: the newest state of the consumer; p_seqs: places in its lane
-- out        the next state, which is stored if it differs
create or replace function queen.drop_work(st queen.consumer_states, p_seqs bigint[])
returns queen.consumer_states
language plpgsql
as $$
declare
    v_slot  "char";
    v_seq   bigint;
    v_n     int := 0;
    h       queen.holds;
begin
    select r.active into v_slot from queen.rotation r;
    foreach v_seq in array p_seqs loop
        select * into h from queen.hold_of(st.consumer, st.holds_from, st.walk_seq, v_seq);
        continue when h.consumer is null;
        h.done := set_bit(coalesce(h.done, decode(repeat('00', (h.count + 7) / 8), 'hex')), (v_seq - h.first_seq)::int, 1);
        insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
        values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, v_slot, h.at,
                case when bit_count(h.done) < h.count then h.until end, h.lease, h.done);
        v_n := v_n + 1;
        st.leased := st.leased - (h.lease is not null and h.until > st.leases_at)::int;
    end loop;
    if v_n > 0 then
        st.batch_size := st.batch_size - v_n;
        select w.cursor_seq, w.walk_seq into st.cursor_seq, st.walk_seq
          from queen.work_floor(st.consumer, st.walk_seq, st.holds_from, st.taken_seq, st.batch_size) w;
        st.ver := st.ver + 1;
        st.slot := v_slot;
        insert into queen.consumer_states select (st).*;
    end if;
    return st;
end
$$;

-- queen.step_over: move the consumers of a lane past a message that was removed for them.
--
-- needs: drop_work, latest_state, next_unskipped, past_settled
-- called by  queen.remove_message, queen.move_to_dlq
-- in         p_group null: all groups
-- out        true if a lease has ended because nothing is left to acknowledge
-- locks      none: the caller has locked the lane and its consumers (queen.lock_lane)
--
-- Under a lease the message counts as acknowledged, so that the batch completes without it. If there is no lease and
-- it was the next message, the cursor moves now; otherwise queen.claim_careful moves it later.
create or replace function queen.step_over(p_lane bigint, p_seq bigint, p_group text)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_next  bigint;
    v_dirty boolean;
    v_freed boolean := false;
    c       record;
    st      queen.consumer_states%rowtype;
begin
    for c in
        select c.num, c.grp from queen.consumers c
         where c.lane = p_lane and (p_group is null or c.grp = p_group) order by c.num
    loop
        select * into st from (
            (select * from queen.consumer_states_a a where a.consumer = c.num order by ver desc limit 1)
            union all
            (select * from queen.consumer_states_b b where b.consumer = c.num order by ver desc limit 1)
        ) slots order by ver desc limit 1;
        v_dirty := false;
        if st.taken_seq is not null then
            st := queen.drop_work(st, array[p_seq]);
            continue;
        end if;
        if st.lease_until > v_now then
            if p_seq between st.lease_first and st.lease_last then
                st.acked_mask := coalesce(st.acked_mask, decode(repeat('00', st.batch_size / 8 + 1), 'hex'));
                if get_bit(st.acked_mask, (p_seq - st.lease_first)::int) = 0 then
                    st.acked_mask := set_bit(st.acked_mask, (p_seq - st.lease_first)::int, 1);
                    st.acked := st.acked + 1;
                    v_dirty := true;
                end if;
                if not exists (select from generate_series(greatest(st.cursor_seq + 1, st.lease_first), st.lease_last) q(seq)
                                where get_bit(st.acked_mask, (q.seq - st.lease_first)::int) = 0) then
                    st.lease_until := null;
                    v_freed := true;
                end if;
            end if;
        else
            st.lease_until := null;
        end if;
        if st.lease_until is null then
            v_next := queen.next_unskipped(p_lane, c.grp, st.cursor_seq + 1, st.settled);
            if v_next > st.cursor_seq + 1 then
                select p.cursor_seq, p.settled into st.cursor_seq, st.settled from queen.past_settled(v_next - 1, st.settled) p;
                st.retries := 0;
                st.retry_at := null;
                v_dirty := true;
            end if;
            st.lease := null; st.lease_text := null; st.lease_at := null;
            st.lease_first := null; st.lease_last := null;
            st.batch_size := 0; st.acked := 0; st.acked_mask := null;
        end if;
        if v_dirty then
            st.ver := st.ver + 1;
            select r.active into st.slot from queen.rotation r;
            insert into queen.consumer_states select (st).*;
        end if;
    end loop;
    return v_freed;
end
$$;

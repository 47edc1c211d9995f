-- queen.change_hands: end the leases of the old owner of a partition.
--
-- needs: latest_state
-- called by  queen.claim_owners, queen.release_owners
-- in         p_checkpoint: deliver again the messages after it; null: continue at the cursor
--            p_lost: the owner did not give the partition up. Its lease counts as expired, because one of the messages may have crashed it
-- out        true if a lease ended or the cursor moved: brokers must be notified
-- locks      the consumers of the partition and of its retry lane, in num order
--
-- This is the fencing: acknowledgements, extensions and transactions name their lease, and it has ended.
create or replace function queen.change_hands(p_lane bigint, p_group text, p_checkpoint bigint, p_lost boolean)
returns boolean
language plpgsql
as $$
declare
    v_consumers bigint[];
    v_back      bigint; -- the cursor of the partition moves back to this, if it is after it
begin
    select array_agg(k.num) into v_consumers
      from (select c.num from queen.consumers c
             where c.grp = p_group
               and c.lane in (select p_lane
                               union all
                              select r.num from queen.lanes l join queen.lanes r on r.queue_id = l.id and r.name = p_group
                               where l.num = p_lane)
             order by c.num for no key update) k;
    if p_checkpoint is not null then -- messages removed by retention cannot be delivered again
        select greatest(p_checkpoint, s.first_seq - 1) into v_back
          from queen.segments s where s.lane = p_lane order by s.first_seq limit 1;
    end if;
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, retry_at, retries, slot, settled, past_lease,
            lease, lease_first, lease_last, lease_at, lease_until, batch_size, expired, suspects_to, suspect_times)
    select st.consumer, st.ver + 1, least(st.cursor_seq, b.seq), st.total_messages, st.total_batches,
           st.last_at, st.retry_at, st.retries, r.active, st.settled, st.past_lease,
           case when k.expires then st.lease end, case when k.expires then st.lease_first end,
           case when k.expires then st.lease_last end, case when k.expires then st.lease_at end,
           case when k.expires then clock_timestamp() end, case when k.expires then st.batch_size else 0 end,
           case when k.expires then st.expired end, st.suspects_to, st.suspect_times
      from queen.consumers c
      cross join lateral queen.latest_state(c.num) st
      cross join lateral (select case when c.lane = p_lane then v_back end) b(seq)
      cross join lateral (select p_lost and st.lease_until > clock_timestamp() and (b.seq < st.cursor_seq) is not true) k(expires)
      cross join queen.rotation r
     where c.num = any (v_consumers) and (st.lease_until > clock_timestamp() or b.seq < st.cursor_seq);
    return found;
end
$$;

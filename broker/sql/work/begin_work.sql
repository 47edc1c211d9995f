-- queen.begin_work: the state of a consumer as that of a work queue.
--
-- called by  queen.claim_work, queen.settle
-- in         st: its newest state. taken_seq null: the queue was ordered, or a procedure has moved the cursor since: no hold counts any more
create or replace function queen.begin_work(st queen.consumer_states)
returns queen.consumer_states
language plpgsql immutable
as $$
begin
    if st.taken_seq is null then
        st.taken_seq := st.cursor_seq;
        st.holds_from := st.ver + 1;
        st.walk_seq := st.cursor_seq + 1;
        st.lease := null; st.lease_text := null; st.lease_at := null; st.lease_until := null;
        st.lease_first := null; st.lease_last := null; st.acked := 0; st.acked_mask := null;
        st.leased := null; st.leases_at := null;
        st.batch_size := 0; st.retries := 0; st.retry_at := null;
        st.expired := null; st.suspects_to := null; st.suspect_times := null;
    end if;
    return st;
end
$$;

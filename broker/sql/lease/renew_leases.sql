-- queen.renew_leases: extend leases. A lease is never shortened, and an expired lease is not renewed.
--
-- numbers:   why renew_why
-- needs: latest_state, renew_work
-- called by  queen.renew_briefly, for the broker; queen.renew_lease_v2
-- in         one element per lease: key of the lease id, seconds from now, key of a message: only that one (work queues); null: all
-- out        one row per lease, in order: why 0 ok, 1 not found, 2 already expired, 3 a message of a queue that is no work queue;
--            expires_at: the earliest expiry among the lanes under the lease
-- locks      consumers in num order
create or replace function queen.renew_leases(p_lease uuid[], p_seconds int[], p_key uuid[] default null)
returns table (idx int, why int2, expires_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
begin
    perform c.num
       from queen.consumers c
      where c.num = any (array(
            select a.consumer from queen.consumer_states_a a where a.lease = any (p_lease)
             union select b.consumer from queen.consumer_states_b b where b.lease = any (p_lease)
             union select a.consumer from queen.holds_a a where a.lease = any (p_lease) and a.until is not null
             union select b.consumer from queen.holds_b b where b.lease = any (p_lease) and b.until is not null))
      order by c.num for no key update;
    v_now := clock_timestamp();

    return query
    with work as materialized (
        select w.idx, w.why, w.expires_at from queen.renew_work(p_lease, p_seconds, p_key) w
    ), leased as materialized (
        select u.ord, u.seconds, st.*
          from unnest(p_lease, p_seconds) with ordinality u(key, seconds, ord)
          join lateral (select a.consumer from queen.consumer_states_a a where a.lease = u.key
                         union select b.consumer from queen.consumer_states_b b where b.lease = u.key) c on true
          cross join lateral queen.latest_state(c.consumer) st
         where st.lease = u.key
    ), alive as (
        select h.*, greatest(h.lease_until, v_now + h.seconds * interval '1 second') as longer
          from leased h where h.lease_until > v_now and p_key[h.ord] is null
    ), written as (
        -- If a lease occurs twice in one call, the longer time wins.
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                last_at, lease_at, lease_until, retry_at, batch_size, acked, retries, slot, lease,
                lease_text, acked_mask, settled, past_lease, expired, suspects_to, suspect_times)
        select distinct on (a.consumer) a.consumer, a.ver + 1, a.cursor_seq, a.lease_first, a.lease_last,
               a.total_messages, a.total_batches, a.last_at, a.lease_at, a.longer, a.retry_at,
               a.batch_size, a.acked, a.retries, r.active, a.lease, a.lease_text, a.acked_mask,
               a.settled, a.past_lease, a.expired, a.suspects_to, a.suspect_times
          from alive a cross join queen.rotation r
         order by a.consumer, a.longer desc
    )
    select u.ord::int - 1,
           case when exists (select from alive a where a.ord = u.ord) then 0
                when w.why is not null then w.why
                when not exists (select from leased h where h.ord = u.ord) then 1
                when p_key[u.ord] is not null then 3
                else 2 end::int2,
           least((select min(a.longer) from alive a where a.ord = u.ord), w.expires_at)
      from unnest(p_lease) with ordinality u(key, ord)
      left join work w on w.idx = u.ord - 1
     order by u.ord;
end
$$;

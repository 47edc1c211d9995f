-- queen.renew_leases: extend leases. A lease is never shortened, and an expired lease is not renewed.
--
-- needs: latest_state
-- called by  queen.renew_briefly, for the broker; queen.renew_lease_v2
-- in         one element per lease: key of the lease id, seconds from now
-- out        one row per lease, in order: why 0 ok, 1 not found, 2 already expired;
--            expires_at: the earliest expiry among the lanes under the lease
-- locks      consumers in num order
create or replace function queen.renew_leases(p_lease uuid[], p_seconds int[])
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
             union select b.consumer from queen.consumer_states_b b where b.lease = any (p_lease)))
      order by c.num for no key update;
    v_now := clock_timestamp();

    return query
    with held as materialized (
        select u.ord, u.seconds, st.*
          from unnest(p_lease, p_seconds) with ordinality u(key, seconds, ord)
          join lateral (select a.consumer from queen.consumer_states_a a where a.lease = u.key
                         union select b.consumer from queen.consumer_states_b b where b.lease = u.key) c on true
          cross join lateral queen.latest_state(c.consumer) st
         where st.lease = u.key
    ), alive as (
        select h.*, greatest(h.lease_until, v_now + h.seconds * interval '1 second') as longer
          from held h where h.lease_until > v_now
    ), written as (
        -- If a lease occurs twice in one call, the longer time wins.
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                last_at, lease_at, lease_until, retry_at, batch_size, acked, retries, slot, lease,
                lease_text, acked_mask, settled, past_lease)
        select distinct on (a.consumer) a.consumer, a.ver + 1, a.cursor_seq, a.lease_first, a.lease_last,
               a.total_messages, a.total_batches, a.last_at, a.lease_at, a.longer, a.retry_at,
               a.batch_size, a.acked, a.retries, r.active, a.lease, a.lease_text, a.acked_mask,
               a.settled, a.past_lease
          from alive a cross join queen.rotation r
         order by a.consumer, a.longer desc
    )
    select u.ord::int - 1,
           case when exists (select from alive a where a.ord = u.ord) then 0
                when exists (select from held h where h.ord = u.ord) then 2
                else 1 end::int2,
           (select min(a.longer) from alive a where a.ord = u.ord)
      from unnest(p_lease) with ordinality u(key, ord)
     order by u.ord;
end
$$;

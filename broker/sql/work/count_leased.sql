-- queen.count_leased: how many messages of a work queue are leased now.
--
-- needs: newest_hold
-- called by  queen.refresh_stats
-- in         columns of the state of a consumer: p_from (holds_from), p_walk, p_swept (swept_at); p_open: messages delivered and not settled
-- out        leased: under a lease that has not expired; until: when the first of these leases may end. Of messages that were given back, and
--            of leases that have expired and were not delivered again yet, the first 1000 rows are read: leased is too high if there are more
create or replace function queen.count_leased(
    p_consumer bigint, p_from bigint, p_walk bigint, p_swept timestamptz, p_open int, p_now timestamptz, out leased bigint, out until timestamptz)
language sql stable
as $$
    with open as materialized (
        select n.until, n.lease, n.count - coalesce(bit_count(n.done), 0) as messages
          from (
                -- Expired, or given back: it can be delivered now.
                (select a.first_seq, a.hold, a.ver from queen.holds_a a
                  where a.consumer = p_consumer and a.until is not null and a.until >= coalesce(p_swept, '-infinity') and a.until <= p_now
                  order by a.until limit 1000)
                union
                (select b.first_seq, b.hold, b.ver from queen.holds_b b
                  where b.consumer = p_consumer and b.until is not null and b.until >= coalesce(p_swept, '-infinity') and b.until <= p_now
                  order by b.until limit 1000)
                union
                -- Given back for later.
                (select a.first_seq, a.hold, a.ver from queen.holds_a a
                  where a.consumer = p_consumer and a.until > p_now and a.until is not null and a.lease is null order by a.until limit 1000)
                union
                (select b.first_seq, b.hold, b.ver from queen.holds_b b
                  where b.consumer = p_consumer and b.until > p_now and b.until is not null and b.lease is null order by b.until limit 1000)
                union
                -- The next leases that end.
                (select a.first_seq, a.hold, a.ver from queen.holds_a a
                  where a.consumer = p_consumer and a.until > p_now and a.until is not null order by a.until limit 64)
                union
                (select b.first_seq, b.hold, b.ver from queen.holds_b b
                  where b.consumer = p_consumer and b.until > p_now and b.until is not null order by b.until limit 64)) k
          cross join lateral queen.newest_hold(p_consumer, k.first_seq, k.hold) n
         where n.ver = k.ver and n.until is not null and n.hold >= p_from and n.first_seq >= p_walk
    )
    select greatest(p_open - coalesce(sum(o.messages) filter (where o.until <= p_now or o.lease is null), 0), 0)::bigint,
           min(o.until) filter (where o.until > p_now)
      from open o
$$;

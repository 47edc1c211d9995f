-- queen.expired_leases: how many messages of a work queue are in leases that have expired after a point in time.
--
-- needs: newest_hold
-- called by  queen.limit_work
-- in         p_from, p_walk: holds_from and walk_seq of the consumer's state; p_after: leases that ended later, up to p_now; p_rows: rows
--            to read, and all others with the time of the last one
-- out        messages: not settled, and under such a lease that ended at upto at the latest; upto: p_now if nothing is left to read
create or replace function queen.expired_leases(
    p_consumer bigint, p_from bigint, p_walk bigint, p_after timestamptz, p_now timestamptz, p_rows int, out messages int, out upto timestamptz)
language sql stable
as $$
    with due as materialized (
        select * from (
            (select a.until, a.first_seq, a.hold, a.ver from queen.holds_a a
              where a.consumer = p_consumer and a.until is not null and a.until > p_after and a.until <= p_now and a.lease is not null
              order by a.until fetch first (p_rows) rows with ties)
            union -- rotation copies rows from one slot to the other
            (select b.until, b.first_seq, b.hold, b.ver from queen.holds_b b
              where b.consumer = p_consumer and b.until is not null and b.until > p_after and b.until <= p_now and b.lease is not null
              order by b.until fetch first (p_rows) rows with ties)) d
         order by d.until fetch first (p_rows) rows with ties
    )
    select coalesce(sum(n.count - coalesce(bit_count(n.done), 0)) filter (where n.ver = d.ver and n.until is not null), 0)::int,
           case when count(*) < p_rows then p_now else max(d.until) end
      from due d
      left join lateral (select h.* from queen.newest_hold(p_consumer, d.first_seq, d.hold) h
                          where h.hold >= p_from and h.first_seq >= p_walk) n on true
$$;

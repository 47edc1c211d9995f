-- queen.newest_hold: the newest version of a hold.
--
-- called by  procedures of work queues that have locked the consumer; for other callers the result is a hint
create or replace function queen.newest_hold(p_consumer bigint, p_first bigint, p_hold bigint)
returns setof queen.holds
language sql stable rows 1
as $$
    select * from (
        (select * from queen.holds_a a
          where a.consumer = p_consumer and a.first_seq = p_first and a.hold = p_hold order by a.ver desc limit 1)
        union all
        (select * from queen.holds_b b
          where b.consumer = p_consumer and b.first_seq = p_first and b.hold = p_hold order by b.ver desc limit 1)
    ) both_slots
    order by ver desc limit 1
$$;

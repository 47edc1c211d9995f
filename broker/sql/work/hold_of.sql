-- queen.hold_of: the open hold that contains a message which is not settled, or no row.
--
-- needs: newest_hold
-- called by  queen.settle_work, queen.drop_work
-- in         p_from, p_walk: holds_from and walk_seq of the consumer's state
--
-- A hold has at most 256 messages, so it begins less than 256 before the message.
create or replace function queen.hold_of(p_consumer bigint, p_from bigint, p_walk bigint, p_seq bigint)
returns setof queen.holds
language sql stable rows 1
as $$
    select n.*
      from (select a.first_seq, a.hold from queen.holds_a a
             where a.consumer = p_consumer and a.first_seq between greatest(p_seq - 255, p_walk) and p_seq and a.first_seq + a.count > p_seq
               and a.hold >= p_from and a.until is not null
             union
            select b.first_seq, b.hold from queen.holds_b b
             where b.consumer = p_consumer and b.first_seq between greatest(p_seq - 255, p_walk) and p_seq and b.first_seq + b.count > p_seq
               and b.hold >= p_from and b.until is not null) k
      cross join lateral queen.newest_hold(p_consumer, k.first_seq, k.hold) n
     where n.until is not null and n.first_seq + n.count > p_seq
       and (n.done is null or get_bit(n.done, (p_seq - n.first_seq)::int) = 0)
     limit 1
$$;

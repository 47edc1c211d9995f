-- queen.leased_holds: the newest versions of the holds of leases, also of those that have ended.
--
-- needs: newest_hold
-- called by  queen.settle_work, queen.renew_work, queen.release_work
-- in         p_lease: keys of lease ids
-- out        in order of consumer, the newest hold first: a message whose time was extended has left its old hold for one of its own under
--            the same lease (queen.renew_work), and the newest hold that contains a message decides about it. A hold that has ended is known until the slot that contains it is emptied (queen.rotate)
create or replace function queen.leased_holds(p_lease uuid[])
returns setof queen.holds
language sql stable
as $$
    select n.*
      from (select a.consumer, a.first_seq, a.hold from queen.holds_a a where a.lease = any (p_lease) and a.until is not null
             union
            select b.consumer, b.first_seq, b.hold from queen.holds_b b where b.lease = any (p_lease) and b.until is not null) k
      cross join lateral queen.newest_hold(k.consumer, k.first_seq, k.hold) n
     order by k.consumer, k.hold desc, k.first_seq
$$;

-- queen.lock_owned: lock the rows that a change of owners affects.
--
-- called by  queen.claim_owners, queen.release_owners
-- in         p_lanes: partitions; p_make: create missing rows of owners
-- locks      the lanes in num order, against deletion; rows of owners by lane; consumers of the lanes and their retry lanes in num order
create or replace function queen.lock_owned(p_lanes bigint[], p_group text, p_make boolean)
returns void
language plpgsql
as $$
begin
    perform l.num from queen.lanes l where l.num = any (p_lanes) order by l.num for key share;
    if p_make then
        insert into queen.owners (lane, grp)
        select k.num, p_group
          from (select l.num from queen.lanes l where l.num = any (p_lanes) order by l.num) k
            on conflict do nothing;
    end if;
    perform o.lane from queen.owners o where o.lane = any (p_lanes) and o.grp = p_group order by o.lane for update;
    perform c.num from queen.consumers c
      where c.grp = p_group
        and c.lane = any (p_lanes || array(select r.num from queen.lanes r where r.origin = any (p_lanes) and r.name = p_group))
      order by c.num for no key update;
end
$$;

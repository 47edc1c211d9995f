-- queen.pending_lanes: partitions with pending messages for a group, and the group's retry lanes of these partitions.
--
-- needs: latest_state, partition_priority
-- called by  queen.discover, queen.discover_page
-- in         p_lanes: partitions on which the group has consumers; p_all: also those without pending messages
-- out        the highest priority first, but for about one pop in ten all are equal, so that none starves; then least recently served first;
--            a retry lane is named "retry:" and its id, which callers never show. lease_us: remaining time
--            of the current lease (null: none)
create or replace function queen.pending_lanes(p_group text, p_lanes bigint[], p_all boolean)
returns table (lane bigint, lane_id uuid, lane_name text, consumer bigint, pending boolean, lease_us bigint)
language sql stable
as $$
    select l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, c.num, head.next_seq is not null,
           case when st.lease_until > now()
                then (extract(epoch from st.lease_until - now()) * 1000000)::bigint end
      -- Not joins: a plan made when there was one lane would scan all lanes, or all consumers, for each.
      from unnest(p_lanes) u(num)
      cross join lateral (
           select p.num, p.id, p.name, p.origin, p.name as partition from queen.lanes p where p.num = u.num
            union all
           (select r.num, r.id, r.name, r.origin, p.name
              from (select p.id, p.name from queen.lanes p where p.num = u.num offset 0) p
              cross join lateral (select r.num, r.id, r.name, r.origin from queen.lanes r
                                   where r.queue_id = p.id and r.name = p_group offset 0) r)) l
      cross join lateral (select c.num from queen.consumers c where c.lane = l.num and c.grp = p_group offset 0) c
      cross join lateral queen.latest_state(c.num) st
      left join lateral (select s.first_seq + s.count as next_seq, s.count from queen.segments s
                          where s.lane = l.num order by s.first_seq desc limit 1) head
        on head.next_seq > st.cursor_seq + 1 and head.count > 0
     where p_all or head.next_seq is not null
     order by case when extract(microseconds from now())::int % 10 > 0 then queen.partition_priority(l.partition) end desc,
              st.last_at nulls first, l.num
$$;

-- queen.discover: what a group can find on a queue.
--
-- needs: ensure_consumers, subscribe, latest_state
-- called by  src/broker/group.c (call "discover") at first contact of a group with a queue, and
--            again when something may have changed behind the broker's back
-- in         p_partition null: all partitions; p_mode, p_from: the subscription to record
-- out        the lanes with something after the cursor, least recently served first, the group's retry lanes (named "retry:" and their
--            id, which no caller shows) among them; with p_partition that lane and its retry lane in any case (pending tells).  lease_us: how long the current lease still runs (null: none)
-- effects    records the subscription, even for a queue that does not exist yet; creates the
--            group's consumers on every lane; notes an empty scan in queen.consumer_watermarks
create or replace function queen.discover(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text)
returns table (lane bigint, lane_id uuid, lane_name text, consumer bigint, pending boolean, lease_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_queue_id uuid;
begin
    perform queen.subscribe(p_group, case when p_namespace = '' and p_task = '' then p_queue else '' end,
                            coalesce(p_partition, ''), p_namespace, p_task, p_mode, p_from);
    select id into v_queue_id from queen.queues where name = p_queue;
    if not found then
        return;
    end if;
    perform queen.ensure_consumers(array_agg(l.num), array_agg(p_group))
       from queen.lanes l
      where l.queue_id = v_queue_id and (p_partition is null or l.name = p_partition)
     having count(*) > 0;

    return query
    select l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, c.num, head.next_seq is not null,
           case when st.lease_until > now()
                then (extract(epoch from st.lease_until - now()) * 1000000)::bigint end
      from (select l.num, l.id, l.name, l.origin, l.name as partition_name from queen.lanes l where l.queue_id = v_queue_id
             union all
            select r.num, r.id, r.name, r.origin, o.name
              from queen.lanes r
              cross join lateral (select o.name from queen.lanes o where o.num = r.origin offset 0) o
             where r.origin_queue = v_queue_id and r.name = p_group and r.origin is not null) l
      -- Not a join: one planned while there was a single lane would walk all consumers for each.
      cross join lateral (select c.num from queen.consumers c where c.lane = l.num and c.grp = p_group offset 0) c
      cross join lateral queen.latest_state(c.num) st
      left join lateral (select s.first_seq + s.count as next_seq, s.count from queen.segments s
                          where s.lane = l.num order by s.first_seq desc limit 1) head
        on head.next_seq > st.cursor_seq + 1 and head.count > 0
     where case when p_partition is null then head.next_seq is not null else l.partition_name = p_partition end
     order by st.last_at nulls first, l.num;

    if not found and p_partition is null then
        insert into queen.consumer_watermarks as w (queue_name, consumer_group)
        values (p_queue, p_group)
            on conflict (queue_name, consumer_group)
            do update set last_empty_scan_at = now(), updated_at = now()
         where w.updated_at < now() - interval '30 seconds';
    end if;
end
$$;

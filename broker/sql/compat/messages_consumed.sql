-- queen.messages_consumed: how many messages every consumer group has settled on every partition.
--
-- needs: latest_state
-- One row per (partition, group) with its totals, not one per acknowledgement, so it costs nothing to maintain. acked_at: the last time.
create or replace view queen.messages_consumed as
select lpad(to_hex(c.num), 32, '0')::uuid as id, l.id as partition_id, c.grp::varchar as consumer_group,
       least(greatest(st.total_messages - f.n, 0), 2147483647)::int as messages_completed,
       least(f.n, 2147483647)::int as messages_failed, st.last_at as acked_at
  from queen.consumers c
  join queen.lanes l on l.num = c.lane
  cross join lateral queen.latest_state(c.num) st
  cross join lateral (select count(*) as n from queen.dead_letter_queue d
                       where d.lane = c.lane and d.consumer_group = c.grp) f
 where st.total_messages > 0 and l.origin is null;

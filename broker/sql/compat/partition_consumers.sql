-- queen.partition_consumers: the state of every consumer group on every partition that it has used.
--
-- needs: latest_state, stored_id, skipped, delete_through_consumers
-- last_consumed_id is all zeros, and its time null, if nothing was consumed or that message is gone. Supports DELETE:
-- the group then starts as a new group there.
create or replace view queen.partition_consumers as
select lpad(to_hex(c.num), 32, '0')::uuid as id, l.id as partition_id, c.grp::varchar as consumer_group,
       coalesce(queen.stored_id(c.lane, st.cursor_seq), '00000000-0000-0000-0000-000000000000') as last_consumed_id,
       done.created_at as last_consumed_created_at,
       st.total_messages as total_messages_consumed, st.total_batches as total_batches_consumed,
       st.last_at as last_consumed_at, st.lease_until as lease_expires_at, st.lease_at as lease_acquired_at,
       null::jsonb as message_batch, st.batch_size, st.acked as acked_count,
       coalesce(st.lease_text, st.lease::text)::varchar as worker_id,
       coalesce(greatest(head.next_seq - greatest(st.cursor_seq + 1, front.first_seq), 0), 0)
       - case when l.skipping
              then queen.skipped(l.num, c.grp, greatest(st.cursor_seq + 1, front.first_seq) - 1, head.next_seq - 1)
              else 0 end as pending_estimate,
       null::timestamptz as last_stats_update, st.retries as batch_retry_count, c.created_at
  from queen.consumers c
  join queen.lanes l on l.num = c.lane
  cross join lateral queen.latest_state(c.num) st
  left join lateral (select s.first_seq + s.count as next_seq from queen.segments s
                      where s.lane = c.lane order by s.first_seq desc limit 1) head on true
  left join lateral (select s.first_seq from queen.segments s
                      where s.lane = c.lane and s.count > 0 order by s.first_seq limit 1) front on true
  left join lateral (select s.created_at
                       from (select * from queen.segments s
                              where s.lane = c.lane and s.first_seq <= st.cursor_seq
                              order by s.first_seq desc limit 1) s
                      where st.cursor_seq < s.first_seq + s.count) done on true
 where l.origin is null;

create or replace trigger delete_through_consumers instead of delete on queen.partition_consumers
    for each row execute function queen.delete_through_consumers();

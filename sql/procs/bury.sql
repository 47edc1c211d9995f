-- queen.bury: put a message into the dead-letter queue of a group.
--
-- needs: stored_id
-- called by  queen.settle
create or replace function queen.bury(
    p_lane bigint, p_lane_id uuid, p_seq bigint, p_group text, p_error text, p_retries int)
returns void
language sql
as $$
    insert into queen.dead_letter_queue
           (message_id, partition_id, consumer_group, error_message, retry_count,
            original_created_at, lane, seq)
    select queen.stored_id(p_lane, p_seq), p_lane_id, p_group,
           coalesce(nullif(p_error, ''), 'Retries exhausted'), p_retries, s.created_at, p_lane, p_seq
      from queen.segments s
     where s.lane = p_lane and s.first_seq <= p_seq
     order by s.first_seq desc limit 1
$$;

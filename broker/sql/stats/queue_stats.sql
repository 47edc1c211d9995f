-- queen.queue_stats: the statistics of every queue, or of one.
--
-- called by  the status pages; SQL sessions
-- in         p_queue: a name; null: all. Call queen.freshen_stats() in a separate statement before, to include recent changes
-- out        one row per existing queue, also without messages:
--              partitions        ever written to
--              total             messages stored
--              pending           not consumed by at least one group (without groups: all), without those under a lease
--              processing        under an active lease of at least one group
--              completed         stored, consumed by every group, and not a dead letter
--              dead_letter       dead letters, one per message and group
--              oldest_pending_at of the first message not consumed; newest_message_at
--              ever_pushed, ever_consumed   since the queue was created; consumed counts each group
--            At most STATS_INTERVAL_MS old.  The cost follows the number of requested queues.
create or replace function queen.queue_stats(p_queue text default null)
returns table (queue_id uuid, name text, partitions bigint, total bigint, pending bigint, processing bigint,
               completed bigint, dead_letter bigint, oldest_pending_at timestamptz, newest_message_at timestamptz,
               ever_pushed bigint, ever_consumed bigint)
language sql volatile
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    select q.id, q.name::text, coalesce(s.child_count, 0), coalesce(s.total_messages, 0),
           greatest(coalesce(s.pending_messages, 0), 0), coalesce(s.processing_messages, 0),
           coalesce(s.completed_messages, 0), coalesce(s.dead_letter_messages, 0),
           s.oldest_pending_at, s.newest_message_at, coalesce(s.ever_pushed, 0), coalesce(s.ever_consumed, 0)
      from queen.queues q
      left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
     where p_queue is null or q.name = p_queue
$$;
